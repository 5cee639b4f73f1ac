"""Opening a transport: of the one broker, or of the first of a list that answers, round after round."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from redelivery.client.connection.temporaries import Temporaries
from redelivery.client.connection.unowned import UnownedConnection
from redelivery.client.options import ConnectionOptions
from redelivery.model.errors import ConfigError, JMSError, SecurityError, UnsupportedError
from redelivery.model.events import ReconnectFailed
from redelivery.transports.failover import attempt_order
from redelivery.transports.registry import transport_class
from redelivery.transports.runtime import Runtime
from redelivery.transports.seam import ConnectionEvents, Flow, Parked, Transport
from redelivery.transports.wire.clock import monotonic, utc_now
from redelivery.transports.wire.threads.runtime import NOTICING

log = logging.getLogger(__name__)
_FINAL = (SecurityError, ConfigError, UnsupportedError)  # to ask again would end no better


class Dialer:
    """Who dials for one connection, which it does not keep alive.

    Attributes:
        last: the URL of the broker that was connected last, which is asked last after it was lost.
        parked: where its driver waits.
        patience: seconds that an answer may take which a transport gives that is made ready.
    """

    def __init__(
        self, options: ConnectionOptions, events: ConnectionEvents, runtime: Runtime | None, temporaries: Temporaries
    ) -> None:
        self._options = options
        self._temporaries = temporaries
        self.parked = (runtime or NOTICING).new_waiter()
        self.patience = options.transport.request_timeout
        self._restoring: Transport | None = None  # open, and not the connection's yet
        self._new_events: Callable[[], UnownedConnection] = UnownedConnection.maker(events)
        self._runtime = NOTICING if runtime is None and options.reconnect is not None else runtime
        self.last: str | None = None
        self.ended = False  # nobody wants a connection any more

    @property
    def transport(self) -> Transport:
        """The one that is made ready; while one is opened, its socket alone is waited for (see `Wired`)."""
        assert self._restoring is not None, "a flow that opens a transport waits for its socket only"
        return self._restoring

    def end(self) -> None:
        """Nobody wants a connection any more."""
        self.ended = True
        restoring = self._restoring
        if restoring is not None:
            restoring.abort()
        self.parked.wake()

    def open(self, *, again: bool) -> Flow[tuple[Transport, UnownedConnection]]:
        """A transport that is open, and its events, to be adopted. ``again``: after a loss, not at the start.

        Raises:
            ConnectError, ProtocolError: nobody answered, as often as the policy says; of the last one asked.
            SecurityError: a login was refused, which ends it at once.
            ConfigError, UnsupportedError: likewise.
        """
        policy = self._options.reconnect
        if policy is None:
            return (yield from self._dial(next(iter(self._options.servers))))
        rounds = 0
        if again:
            yield Parked(monotonic() + policy.delay(1))  # ActiveMQ: before the first one, too
        while True:
            rounds += 1
            error: JMSError | None = None
            for url in attempt_order(tuple(self._options.servers), policy, failed=self.last):
                if self.ended:
                    break
                try:
                    return (yield from self._dial(url))
                except _FINAL:
                    raise
                except JMSError as failure:
                    error = failure
            if error is None:
                raise ConfigError("the connection was closed while it was being connected")
            last = policy.exhausted(rounds, startup=not again)
            wait = 0.0 if last else policy.delay(rounds + again)
            self._failed(error, rounds, None if last else wait, warns=policy.warns(rounds))
            if last:
                raise error
            yield Parked(monotonic() + wait)

    def _dial(self, url: str) -> Flow[tuple[Transport, UnownedConnection]]:
        events = self._new_events()
        server = self._options.servers[url]
        transport = transport_class(server.scheme)(server, events, self._runtime)
        yield from transport.open()
        self._check_capable(transport)
        self.last = url
        yield from self._restore(transport)
        return transport, events

    def _check_capable(self, transport: Transport) -> None:
        peer = transport.peer
        if self._options.deduplicate_sends and peer.capabilities.duplicate_id_property is None:
            transport.abort()
            raise UnsupportedError(
                f"deduplicate_sends: {peer.provider_name} over {peer.protocol} does not drop what is sent twice"
            )

    def _restore(self, transport: Transport) -> Flow[None]:
        """What the broker has removed with the lost connection. Raises JMSError: it is lost, too."""
        self._restoring = transport
        try:
            if not self.ended:  # looked at last: `end` aborts what it finds
                yield from self._temporaries.renew(transport, self.parked)
        except BaseException:
            transport.abort()
            raise
        finally:
            self._restoring = None

    def _failed(self, error: JMSError, rounds: int, wait: float | None, *, warns: bool) -> None:
        url = self._options.url.masked
        more = "that was the last attempt" if wait is None else f"the next attempt is in {wait:.3g} s"
        log.log(
            logging.WARNING if warns else logging.DEBUG,
            "%s: attempt %d to connect failed, %s: %s",
            url,
            rounds,
            more,
            error,
        )
        if self._options.observed is not None:
            again_at = None if wait is None else utc_now() + timedelta(seconds=wait)
            self._options.observed.notify(ReconnectFailed(url, error, rounds, again_at))


class Redialled(Protocol):
    """A connection that comes back."""

    @property
    def dialer(self) -> Dialer:
        """Who dials for it."""

    def reconnected(self, transport: Transport, events: UnownedConnection) -> bool:
        """There is another transport; False: it is lost again by now."""

    def not_reconnected(self, error: JMSError) -> None:
        """There will be no other transport."""


def redial(lost: Callable[[], Redialled | None]) -> Flow[None]:
    """Until the connection is there again, or there will be none, or nobody wants it; it keeps no connection alive."""
    done = False
    while not done:
        connection = lost()
        if connection is None:
            return
        dialer = connection.dialer
        del connection
        try:
            opened = yield from dialer.open(again=True)
        except JMSError as error:
            connection = lost()
            if connection is not None:
                connection.not_reconnected(error)
            return
        connection = lost()
        if connection is None:
            opened[0].abort()
            return
        done = connection.reconnected(*opened)
        del connection
