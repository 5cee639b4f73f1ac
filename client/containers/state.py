"""A container's words about itself: what it consumes, what it has done, and why it is not healthy."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Protocol

from redelivery.client.connection.looking import away_reason, stuck_reason
from redelivery.client.connection.state import ConnectionState
from redelivery.client.containers.lanes import Lane
from redelivery.client.containers.plan import Counters, InProgress, Outage, Plan
from redelivery.client.containers.settings import Settings
from redelivery.client.containers.workers import Tasks, Threads
from redelivery.client.observing.log_lines import WORKERS, shown_destination
from redelivery.model.destinations import Destination
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import NO_LIMIT

log = logging.getLogger(WORKERS)


class ContainerConnection(Protocol):
    """The part of a connection that a container needs."""

    def session(self, ack_mode: AckMode) -> Any:
        """A new session; of tasks: to be awaited."""

    _core: ConnectionState

    @property
    def connected(self) -> bool:
        """True: it is connected."""

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost."""

    def stuck(self, destination: Destination) -> int:
        """The number of messages of a consumer's destination that cannot be dead-lettered now."""


class ContainerState:
    """The part of a container that tells; any thread may ask."""

    _connection: ContainerConnection
    _settings: Settings
    _workers: Threads | Tasks
    _plan: Plan
    _lanes: set[Lane]
    _exit: BaseException | None
    _started: bool

    @property
    def counters(self) -> Counters:
        """The counts of what it has done until now."""
        return self._plan.counters

    @property
    def in_progress(self) -> tuple[InProgress, ...]:
        """The messages that handlers have now, the longest first; see ``handler_warning_after``."""
        return self._plan.in_progress

    @property
    def attempts(self) -> int:
        """The most attempts that it has needed with a message which is in the handler now; 0: none is."""
        return max((each.attempt for each in self.in_progress), default=0)

    @property
    def last_error(self) -> BaseException | None:
        """The last failure of the handler, of a commit or of a session; None: there was none."""
        return self._plan.last_error

    @property
    def healthy(self) -> bool:
        """True: it consumes, as it is started, connected, with at least one worker, and not in an outage: see `outage`.

        False too while the broker has ended its workers' consumers (its queue was deleted, say), and while a message of
        its destination cannot be dead-lettered, on this connection.
        """
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not `healthy`, each in a few words; none where it is."""
        return tuple(self._why())

    @property
    def outage(self) -> Outage | None:
        """Since when it is in an outage, why, and what it waits for; None: it is in none, or knows of none.

        Only ``outage_on`` says what an outage looks like.
        """
        return self._plan.outage

    @property
    def _about(self) -> tuple[Destination, str, str | None]:
        """The destination that it consumes, the name of its handler, and that of the subscription, if it has one."""
        named = self._settings.named
        return self._settings.destination, self._settings.name, None if named is None else named.name

    @property
    def _ended(self) -> bool:
        """True: it was stopped, and its handlers have returned."""
        return self._workers.stopping.is_set() and self.counters.workers == 0 and self._exit is None

    def __repr__(self) -> str:
        state = "stopped" if self._workers.stopping.is_set() else "started" if self._started else "not started"
        return f"<ListenerContainer {self._settings.destination} {self._settings.name} {state}>"

    def _why(self) -> Iterator[str]:
        workers, connection = self.counters.workers, self._connection
        if not self._started:
            yield "it is not started"
        elif self._workers.stopping.is_set() and self._exit is None:
            yield "it is draining" if workers else "it was stopped"
        elif not workers:
            yield f"it has ended: {self._exit!r}" if self._exit is not None else "it has ended"
        elif connection.connected and all(each.consumer.closed for each in tuple(self._lanes)):
            yield "no worker has a consumer" if self.last_error is None else f"no consumer: {self.last_error}"
        if not connection.connected:
            yield from away_reason(connection._core)
        elif not connection._core.started:
            yield "the connection is stopped"
        if self.outage is not None:
            yield str(self.outage)
        yield from stuck_reason(connection.stuck(self._settings.destination))

    def _say_listening(self) -> None:
        """Log what it consumes; and, as a warning, that a lost connection is its end, which is no news of ``vm://``."""
        settings, (lane, *_) = self._settings, self._lanes
        most_redeliveries = lane.consumer.redelivery_policy.maximum_redeliveries
        few, most = settings.minimum, settings.maximum
        log.info(
            "%s: listening on %s, %s, %s",
            settings.name,
            shown_destination(settings.destination),
            f"{few}\u2013{most} workers" if few < most else "1 worker" if most == 1 else f"{most} workers",
            "no limit" if most_redeliveries == NO_LIMIT else f"limit {most_redeliveries}",
        )
        core = self._connection._core
        if not core.comes_back and core.options.transport.scheme != "vm":
            log.warning(
                "%s: when the connection to %s is lost, this container ends: give connect() a policy, "
                "reconnect=ReconnectPolicy(), or a failover: URL, and it goes on when the broker is back",
                settings.name,
                core.url,
            )
