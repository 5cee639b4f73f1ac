"""The inside of a session: one thread at a time, a ledger, a channel, and how that thread waits.

1. `use` is the session's one lock. It is taken without waiting by every public call, so that a second thread gets an
   error that says so instead of a race; only `close`, `listen` and the listener thread wait for it, bounded.
2. It is never held while application code runs.
3. The ledger is touched by the holder of `use` only. Deliveries come from whichever thread reads the wire, through
   `inbox`, which is the only thing that they share.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from redelivery.client.dead_letters import DeadLetters
from redelivery.client.flows import NEVER, run, wait_for
from redelivery.client.ledger import Detach, Ledger, Order, Park, Poison, Release, Station, Unpark
from redelivery.client.lifecycle import Lifecycle
from redelivery.client.options import Options
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Channel, Delivery, Flow, Link, Pending, T, Transport
from redelivery.transports.wire.clock import epoch_ms, monotonic

log = logging.getLogger(__name__)


class SessionCore:
    """What Session, Consumer, Producer and the listener thread of one session share."""

    def __init__(
        self,
        transport: Transport,
        options: Options,
        mode: AckMode,
        dead_letters: DeadLetters,
        report: Callable[[JMSError], None],
        *,
        running: bool,
    ) -> None:
        self.transport = transport
        self.options = options
        self.mode = mode
        self.report = report
        self.running = running  # follows the connection's start and stop
        self.life = Lifecycle("session")
        self.irregular = False  # closing, lost, or a listener is set: the fast path asks this one flag
        self.closing = False
        self.lost: JMSError | None = None
        self.heard = 0.0  # when the broker last answered a commit (monotonic seconds)
        self.until = NEVER  # while it is being closed: when that must have ended (monotonic seconds)
        self.listener_thread: int | None = None
        self.inbox: deque[Delivery] = deque()
        self.waiter = transport.new_waiter()
        self.use = threading.Lock()
        self.ledger = Ledger(mode, wall_ms=epoch_ms, non_blocking=options.non_blocking_redelivery)
        self.dead_letters = dead_letters
        self.sent: list[Message] = []  # in the open transaction
        self.channel = transport.channel(mode, self)
        self.browsing: list[Channel] = []  # of its browsers, each with an inbox of its own

    # what the transport says, on whichever thread reads

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """See SessionEvents."""
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents: the consumer ends, its session goes on."""
        if link.consumer is not None:
            link.consumer.closing = True
        self.report(error)
        self.waiter.wake()

    def on_lost(self, error: JMSError) -> None:
        """The connection is gone."""
        self.lost = error
        self.irregular = True
        self.waiter.wake()

    # who may come in

    def enter(self, action: str) -> None:
        """Take `use` for a public call; release it in a finally.

        Raises:
            IllegalStateError: another thread is inside, a listener has the session, or the session is closed.
            ConnectionLostError: the connection is gone.
        """
        if not self.use.acquire(blocking=False) and not self._wait_in_callback():
            raise self._busy(action)
        if self.irregular:
            problem = self._problem(action)
            if problem is not None:
                self.use.release()
                raise problem

    def _wait_in_callback(self) -> bool:
        """A callback's own call waits while another thread closes a consumer or sets a listener."""
        return self.listener_thread == threading.get_ident() and self.use.acquire(timeout=self.options.close_timeout)

    def _busy(self, action: str) -> JMSError:
        return self._listened(action) or IllegalStateError(
            f"{action}: another thread is using this session; a JMS session serves one thread at a time, "
            "so give each thread a session of its own"
        )

    def _listened(self, action: str) -> JMSError | None:
        if self.listener_thread in (None, threading.get_ident()):
            return None
        return IllegalStateError(
            f"{action}: a message listener is set, so only its callbacks may use this session; "
            "use another session, or remove the listener with listen(None)"
        )

    def check_open(self, action: str) -> None:
        """Raise where the session is closed or lost; a listener may be set. For the holder of `use`."""
        problem = self._ended(action)
        if problem is not None:
            raise problem

    def _problem(self, action: str) -> JMSError | None:
        return self._ended(action) or self._listened(action)

    def _ended(self, action: str) -> JMSError | None:
        if self.life.over:
            return self.life.problem(action)
        if self.lost is not None:
            self.ledger.transport_lost()
            self.life.step("lose", "the connection was lost", self.lost)
            return self.life.problem(action)
        return None

    # what the session does, by the holder of `use`

    def receive(self, station: Station, timeout: float | None, *, hold: bool) -> Delivery | None:
        """The next delivery for a consumer; None after ``timeout`` seconds or once it is being closed.

        ``hold``: the application holds it from now on; otherwise it is settled, and the caller acknowledges it.

        Raises:
            ConnectionLostError: the connection is gone.
        """
        delivery = self.next(station, hold)
        if delivery is not None:
            return delivery
        if timeout == 0 and self.running:
            self.do(self.channel.fetch(station.link))  # "what is there" is what the broker has
        deadline = None if timeout is None else monotonic() + timeout
        looked = False
        while True:
            if self.closing or station.closing:
                return None
            remaining = self._remaining(station, deadline)
            if remaining == 0.0 and deadline is not None and monotonic() >= deadline:
                if looked:
                    return None
                looked = True  # what the socket holds already counts as there
            self.transport.wait(self.waiter, remaining)
            delivery = self.next(station, hold)
            if delivery is not None:
                return delivery

    def next(self, station: Station, hold: bool) -> Delivery | None:
        """The next delivery that is there, without waiting."""
        ledger = self.ledger
        if self.inbox:
            self.take_in()
        if not self.running:
            return None
        now = 0.0
        if ledger.delayed:
            now = monotonic()
            if ledger.delayed[0][0] <= now:
                self.overtake()
            ledger.tick(now)
        elif station.not_before:
            now = monotonic()
        delivery = ledger.dispatch(station, now) if hold else ledger.take(station, now)
        if ledger.orders:
            self.carry_out_before(delivery)
        return delivery

    def _remaining(self, station: Station, deadline: float | None) -> float | None:
        """Seconds until the time-out or until something becomes ready by itself; None: neither is to come."""
        until = self.ledger.next_deadline(station) if self.running else NEVER
        if deadline is not None and deadline < until:
            until = deadline
        return None if until == NEVER else max(0.0, until - monotonic())

    def overtake(self) -> None:
        """Before a non-blocking wait ends: what the wire has brought goes first, or short waits would starve it."""
        self.transport.wait(self.waiter, 0)
        if self.inbox:
            self.take_in()

    def take_in(self) -> None:
        """Hand what has arrived to the ledger."""
        inbox = self.inbox
        self.ledger.arrived([inbox.popleft() for _ in range(len(inbox))])

    def do(self, flow: Flow[T]) -> T:
        """Drive a flow, each answer within `request_timeout`."""
        return run(flow, self.transport, self.waiter, self.options.request_timeout, self.until)

    def answer(self, pending: Pending) -> JMSError | None:
        """Wait for one answer; the error is that none came."""
        return wait_for(pending, self.transport, self.waiter, self.options.request_timeout)

    def carry_out(self) -> None:
        """Carry out what the ledger ordered; a dead letter that cannot be written is reported and tried again later."""
        while self.ledger.orders:
            for order in self.ledger.take_orders():
                self._carry_out(order)

    def carry_out_before(self, delivery: Delivery | None) -> None:
        """`carry_out`, of what stands before a delivery: interrupted or failed, the delivery was not handed out."""
        try:
            self.carry_out()
        except BaseException:
            if delivery is not None:
                self.ledger.put_back(delivery)
            raise

    def _carry_out(self, order: Order) -> None:
        channel = self.channel
        match order:
            case Poison():
                self._poison(order)
            case Park(deliveries):
                channel.park(deliveries)
            case Unpark(deliveries):
                channel.unpark(deliveries)
            case Release(deliveries):
                channel.release(deliveries)
            case Detach(link):
                self.do(channel.detach(link))
            case _:
                raise AssertionError(order)

    def _poison(self, order: Poison) -> None:
        delivery = order.delivery
        try:
            verdict = self.dead_letters.decide(order, self.transport.peer.capabilities)
            if verdict.drop:
                self.channel.accept((delivery,), lazy=False)
            else:
                self.do(self.channel.poison(delivery, order.cause, verdict.copy))
        except ConnectionLostError:
            raise
        except JMSError as error:
            self.ledger.poison_failed(order, monotonic())
            problem = JMSError(
                f"a message of {delivery.link.destination} could not be dead-lettered; it stays unacknowledged "
                f"and is tried again: {error}"
            )
            problem.__cause__ = error
            self.report(problem)
