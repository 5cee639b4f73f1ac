"""Moving a connection that works to a priority broker: ActiveMQ's priorityBackup.

While the connection has another broker, the priority ones are dialled in the background, with the delays of the policy.
When one has answered, the connection is left for it: when no transaction is open and no answer awaited, after `_REST`
seconds in any case. To its sessions that is a loss; but the broker that is left is said goodbye to, so that what was
written to it before is answered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from redelivery.client.connection.dialing import Dialer, Opened
from redelivery.client.connection.weak import WeakConnectionEvents
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError
from redelivery.transports.failover import attempt_order
from redelivery.transports.seam import NO_ANSWER, Flow, Parked, Transport
from redelivery.transports.wire.clock import session_time

log = logging.getLogger(CONNECTIONS)
_REST: Final = 10.0  # seconds that sessions have to end what they are doing
_LEAVE: Final = 5.0  # seconds that one has which has begun another transaction just then
_LOOK: Final = 0.02  # seconds until one looks again whether they have


class Movable(Protocol):
    """A connection that can be moved."""

    @property
    def at_rest(self) -> bool:
        """True: no session has a transaction open, or an unacknowledged message."""

    def leave(self, error: JMSError) -> Transport | None:
        """The sessions have no connection from now on; the transport that it had. None where it has none anyway."""

    @property
    def left(self) -> bool:
        """After `leave`: whether every session knows it, and waits for no answer any more."""

    def moved(self, transport: Transport, events: WeakConnectionEvents) -> None:
        """Go on with another transport."""

    def not_moved(self, error: JMSError) -> None:
        """The broker that answered is lost again, and the other one was left."""


class PriorityBackup:
    """The search for a priority broker; it does not keep the connection alive. A `Driven`."""

    def __init__(self, dialer: Dialer) -> None:
        policy = dialer.options.reconnect
        assert policy is not None, "a connection that has priorities comes back"
        self.policy = policy
        self.parked = dialer.new_waiter()
        self.patience = min(dialer.patience, dialer.options.close_timeout)
        self.ended = False  # the connection was lost, or nobody wants it any more
        self._dialer = dialer
        self._in_hand: Transport | None = None  # that answers are awaited from

    @property
    def transport(self) -> Transport:
        """The one that is left, or made ready; see `Wired`."""
        assert self._in_hand is not None, "a flow that opens a transport waits for its socket only"
        return self._in_hand

    def end(self) -> None:
        """The connection was lost, or nobody wants it any more."""
        self.ended = True
        self.parked.wake()

    def find(self, rounds: int) -> Flow[tuple[str, Opened] | None]:
        """One that answers, and its URL; None where none does."""
        for url in attempt_order(self._dialer.options.priority, self.policy):
            if self.ended:
                break
            try:
                return url, (yield from self._dialer.dial(url))
            except JMSError as error:
                level = logging.INFO if self.policy.warns(rounds) else logging.DEBUG
                log.log(level, "the priority broker %s has not answered: %s", url, error)
        return None

    def replace(self, old: Transport, new: Transport, url: str) -> Flow[None]:
        """Say goodbye to the one, and make the other ready. Raises JMSError: it is lost, too."""
        self._in_hand = old
        try:
            yield from old.close(self.parked)
        except NO_ANSWER as error:
            log.debug("a broker that was left has not answered: %s", error)
        finally:
            old.abort()
        self.parked.place = None
        self._in_hand, self._dialer.last = new, url
        yield from self._dialer.restore(new, self.parked)


def move(lost: Callable[[], Movable | None], backup: PriorityBackup) -> Flow[None]:
    """Until the connection has a priority broker, or is lost, or nobody wants it; it keeps no connection alive."""
    rounds = 0
    while not backup.ended:
        rounds += 1
        yield Parked(session_time() + _delay(backup, rounds))
        found = None if backup.ended else (yield from backup.find(rounds))
        if found is not None and (yield from _moved(lost, backup, *found)):
            return


def _delay(backup: PriorityBackup, rounds: int) -> float:
    try:
        return backup.policy.delay(rounds)
    except ConfigError as error:  # a strategy of the policy's fails
        log.warning("the search for a priority broker goes on without it: %s", error)
        return backup.policy.maximum_delay


def _moved(lost: Callable[[], Movable | None], backup: PriorityBackup, url: str, opened: Opened) -> Flow[bool]:
    """Move the connection; False: the broker was lost before the connection was moved to it."""
    transport, events = opened
    moving, why = False, f"it is moved to its priority broker {url}"
    try:
        yield from _until(lost, lambda each: each.at_rest, _REST, ended=lambda: backup.ended or events.lost is not None)
        if events.lost is not None and not backup.ended:
            return False
        connection = None if backup.ended else lost()
        old = None if connection is None else connection.leave(ConnectionLostError(why))
        moving = old is not None
        if old is None:
            return True
        del connection
        yield from _until(lost, lambda each: each.left, _LEAVE)
        yield from backup.replace(old, transport, url)
        connection = lost()
        if connection is not None:
            moving = False
            connection.moved(transport, events)
            opened = None  # type: ignore[assignment]  # it is the connection's
        return True
    except JMSError as error:
        connection = lost()
        if moving and connection is not None:
            connection.not_moved(error)
        return True
    finally:
        if opened is not None:
            transport.abort()


def _until(
    lost: Callable[[], Movable | None],
    condition: Callable[[Movable], bool],
    seconds: float,
    ended: Callable[[], bool] = lambda: False,
) -> Flow[None]:
    until = session_time() + seconds
    while not ended() and session_time() < until and not _holds(lost, condition):
        yield Parked(session_time() + _LOOK)


def _holds(lost: Callable[[], Movable | None], condition: Callable[[Movable], bool]) -> bool:
    connection = lost()
    return connection is None or condition(connection)
