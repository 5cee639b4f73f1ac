"""Opening a transport: of the one broker, or of the first of a list that answers, round after round."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeAlias

from redelivery.client.connection.weak import Adopter, WeakConnectionEvents
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.options import ConnectionOptions
from redelivery.client.session.shared import Shared
from redelivery.model.errors import ConfigError, ConnectError, JMSError, SecurityError, UnsupportedError, forget_frames
from redelivery.model.events import ReconnectFailed
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.dialects.detect import ContradictedError
from redelivery.transports.failover import attempt_order
from redelivery.transports.registry import transport_class
from redelivery.transports.runtime import Runtime
from redelivery.transports.seam import Flow, Parked, Transport, Waiter
from redelivery.transports.wire.clock import follow, session_time, utc_now
from redelivery.transports.wire.threads.runtime import NOTICING

log = logging.getLogger(CONNECTIONS)
Opened: TypeAlias = tuple[Transport, WeakConnectionEvents]  # and its events, which are to be adopted
GoesOn: TypeAlias = Callable[[JMSError], bool]
"""Whether to try again after this failure; asked after each attempt, and again and again in the pause after it."""
_LOOK = 0.1  # seconds, of the pause, after which it is asked again
_LONG = 30.0  # seconds after which a connection has lived long, whatever was waited for before it
_FORGET = 30.0  # seconds after which one that refused is asked again: it may have been starting, and no other may come
_LATE = 0.1  # seconds that a broker may take to end what it has read of a connection that was lost
_STORES = 2.0  # times as long as it has needed of late to store what was sent
_LATEST = 5.0  # seconds, whatever it has needed
_REFUSED = (SecurityError, UnsupportedError, ContradictedError)  # to ask this broker again would end no better


def _always(_error: JMSError) -> bool:
    return True


class Dialer:
    """Dials for one connection, which it does not keep alive.

    ``last``: the URL of the broker that was connected last, which is asked last after it was lost. ``parked`` and
    ``patience``: see `redelivery.client.connection.reconnecting.Driven`.
    """

    def __init__(self, options: ConnectionOptions, events: Adopter, runtime: Runtime | None, shared: Shared) -> None:
        self.options = options
        self._temporaries = shared.temporaries
        self._lines = shared.lines
        self._storing = shared.storing
        self._new_waiter: Callable[[], Waiter] = (runtime or NOTICING).new_waiter
        self.parked = self.new_waiter()
        self.patience = options.transport.request_timeout
        self._restoring: Transport | None = None  # open, and not the connection's yet
        self._new_events: Callable[[], WeakConnectionEvents] = WeakConnectionEvents.maker(events)
        self._runtime = runtime or NOTICING  # a dead broker must not look alive
        self.last: str | None = None
        self.ended = False  # nobody wants a connection any more
        self._waits = 0  # since the back-off began
        self._waited = 0.0  # seconds, the last one
        self._began: float | None = None  # the connection that there is

    def new_waiter(self) -> Waiter:
        """A place to wait by the session's time."""
        waiter = self._new_waiter()
        follow(waiter)
        return waiter

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

    @property
    def prior(self) -> bool:
        """True: it is connected as its policy prefers. A connection to another URL looks for one of those."""
        policy = self.options.reconnect
        return policy is None or not policy.priority_backup or self.last in self.options.priority

    def open(self, *, again: bool, goes_on: GoesOn | None = None) -> Flow[Opened]:
        """A transport that is open, and its events. ``again``: after a loss, not at the start.

        Raises:
            ConnectError, ProtocolError: nobody answered, as often as the policy or ``goes_on`` says; of a list the
                text names each.
            SecurityError: the login was refused, by every broker of the list that answers; one that refuses it is not
                asked again for a while, as others may have it. At the start, where the policy has no limit, those that
                do not answer are asked once: the standby of a pair never answers.
            UnsupportedError, ContradictedError, and ConnectError of a certificate at the start: likewise.
            ConfigError: an option does not fit, which ends it at once.
        """
        policy = self.options.reconnect
        if policy is None:
            return (yield from self._whole(next(iter(self.options.servers))))
        rounds, began = 0, session_time()
        refusals: dict[str, JMSError] = {}  # by URL
        asked = began  # since when they are these
        limited = again or policy.limited
        if again:  # ActiveMQ: before the first one, too
            yield from self._pause(self._next_wait(policy))
        while True:
            rounds += 1
            failures: dict[str, JMSError] = {}  # by URL
            if session_time() - asked >= _FORGET:
                refusals, asked = {}, session_time()
            opened = yield from self._round(policy, refusals, failures, again=again)
            if opened is not None:
                return opened
            if not failures:
                raise ConfigError("the connection was closed while it was being connected")
            if refusals and not limited:
                raise _refusal("no other one answers", {**refusals, **failures})
            error = _failure(refusals, failures)
            yield from self._await_next(error, rounds, began, again=again, goes_on=goes_on or _always)

    def _round(
        self, policy: ReconnectPolicy, refusals: dict[str, JMSError], failures: dict[str, JMSError], *, again: bool
    ) -> Flow[Opened | None]:
        """Dial each broker that has not refused; None: no one takes it. Refusals and failures are added, by URL."""
        urls = tuple(url for url in self.options.servers if url not in refusals)
        for url in attempt_order(urls, policy, priority=self.options.priority, failed=self.last):
            if self.ended:
                break
            try:
                return (yield from self._whole(url, again=again))
            except _REFUSED as refusal:
                self._refused(url, refusal, refusals)
            except ConfigError:
                raise
            except JMSError as failure:
                if not again and isinstance(failure.__cause__, ssl.SSLCertVerificationError):
                    self._refused(url, failure, refusals)
                else:
                    failures[url] = failure
        return None

    def _await_next(self, error: JMSError, rounds: int, began: float, *, again: bool, goes_on: GoesOn) -> Flow[None]:
        """Until the next attempt is due. Raises ``error``: there is none."""
        policy = self.options.reconnect
        assert policy is not None, "without one there is one attempt"
        left = float("inf") if policy.maximum_time is None else policy.maximum_time - (session_time() - began)
        elapsed = session_time() - began
        last = policy.exhausted(rounds, startup=not again, elapsed=elapsed) or left <= 0 or not goes_on(error)
        wait = 0.0 if last else min(self._next_wait(policy, elapsed), left)
        self._failed(error, rounds, None if last else wait, warns=policy.warns(rounds))
        if last:
            raise error
        yield from self._pause(wait, None if goes_on is _always else partial(goes_on, error))
        if not goes_on(error):
            raise error

    def adopted(self) -> None:
        """The connection is there."""
        self._began = session_time()

    def lost(self, *, suspicious: bool = False) -> None:
        """Note the loss. The back-off begins anew where the connection has lived as long as was waited for it.

        Else a broker that takes each login, and closes the connection at what follows, would be dialled without end.
        ``suspicious``: it was lost again and again right after subscribing to the same, and lives no longer for that:
        a queue that counts what comes back would give up in a second what it has there.
        """
        policy, began, self._began = self.options.reconnect, self._began, None
        if policy is None or began is None or suspicious:
            return
        if session_time() - began >= min(max(self._waited, policy.initial_delay), _LONG):
            self._waits, self._waited = 0, 0.0

    def _next_wait(self, policy: ReconnectPolicy, elapsed: float = 0.0) -> float:
        self._waits += 1
        self._waited = policy.delay(self._waits, None, elapsed)
        return self._waited

    def _pause(self, seconds: float, wanted: Callable[[], bool] | None = None) -> Flow[None]:
        until = session_time() + seconds
        while not self.ended and (now := session_time()) < until and (wanted is None or wanted()):
            yield Parked(until if wanted is None else min(until, now + _LOOK))

    def dial(self, url: str) -> Flow[Opened]:
        """A transport to this broker, as yet without the connection's temporary destinations. Raises as `open`."""
        events = self._new_events()
        server = self.options.servers[url]
        transport = transport_class(server.scheme)(server, events, self._runtime)
        yield from transport.open()
        self._check_capable(transport)
        return transport, events

    def restore(self, transport: Transport, waiter: Waiter) -> Flow[None]:
        """Make what the broker has removed with the connection before. Raises JMSError: it is lost, too."""
        return self._temporaries.renew(transport, waiter)

    def _whole(self, url: str, *, again: bool = False) -> Flow[Opened]:
        opened = yield from self.dial(url)
        self.last = url
        yield from self._restore(opened[0], again=again)
        return opened

    def _check_capable(self, transport: Transport) -> None:
        peer = transport.peer
        if self.options.deduplicate_sends and peer.capabilities.duplicate_id_property is None:
            transport.abort()
            raise UnsupportedError(
                f"deduplicate_sends: {peer.provider_name} over {peer.protocol} does not drop what is sent twice"
            )

    def _restore(self, transport: Transport, *, again: bool) -> Flow[None]:
        self._restoring = transport
        try:
            if not self.ended:  # looked at last: `end` aborts what it finds
                yield from self.restore(transport, self.parked)
            if again and self.options.deduplicate_sends:
                # A broker checks a duplicate id when a message comes, and notes it when it has stored it: what is sent
                # again before that is stored twice. From now on: it may have been stopped until it let us in
                yield from self._pause(max(_LATE, min(_STORES * self._storing.seconds, _LATEST)))
        except BaseException:
            transport.abort()
            raise
        finally:
            self._restoring = None

    def _refused(self, url: str, error: JMSError, refusals: dict[str, JMSError]) -> None:
        """A broker is passed over from now on. Raises ``error``, or one that names all: there is no other."""
        refusals[url] = error
        if len(self.options.servers) == 1:
            raise error
        forget_frames(error)
        log.warning("%s: it refuses, and is not asked again while others are: %s", url, error)
        if len(refusals) == len(self.options.servers):
            raise _refusal("every broker of the list refuses", refusals) from error

    def _failed(self, error: JMSError, rounds: int, wait: float | None, *, warns: bool) -> None:
        forget_frames(error)
        url = self.options.url.masked
        more = "that was the last attempt" if wait is None else f"the next attempt is in {wait:.3g} s"
        log.log(
            self._lines.level(logging.WARNING, f"{url}: failed attempts to connect") if warns else logging.DEBUG,
            "%s: attempt %d to connect failed, %s: %s",
            url,
            rounds,
            more,
            error,
        )
        if self.options.observed is not None:
            again_at = None if wait is None else utc_now() + timedelta(seconds=wait)
            self.options.observed.notify(ReconnectFailed(url, error, rounds, again_at))


def _refusal(said: str, errors: Mapping[str, JMSError]) -> JMSError:
    """The error where no broker of a list takes the connection; ``errors``: by URL, the refusals first."""
    kind = next((SecurityError for each in errors.values() if isinstance(each, SecurityError)), None)
    return (kind or type(next(iter(errors.values()))))(f"{said}: {_each(errors)}")


def _failure(refusals: Mapping[str, JMSError], failures: Mapping[str, JMSError]) -> JMSError:
    """The error of a round in which no broker could be connected to."""
    last = list(failures.values())[-1]
    if len(refusals) + len(failures) == 1:
        return last
    error = ConnectError(f"no broker of the list can be connected to: {_each({**refusals, **failures})}")
    error.__cause__ = last
    return error


def _each(errors: Mapping[str, JMSError]) -> str:
    return "; ".join(f"{url}: {error}" for url, error in errors.items())


class Redialled(Protocol):
    """A connection that comes back."""

    @property
    def dialer(self) -> Dialer:
        """The dialer of this connection."""

    def reconnected(self, transport: Transport, events: WeakConnectionEvents) -> bool:
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
