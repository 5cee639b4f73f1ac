"""Receiving: what is there, at once and without a generator; and the wait for what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.ledger.stages import CLOSED, OPEN
from redelivery.client.operations.acknowledge import dispatched
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.orders import carry_out
from redelivery.client.operations.reattach import arrival, await_loss, await_return
from redelivery.client.session.state import NEVER, SessionState, ended
from redelivery.model.errors import ConnectionLostError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Arrival, Flow, T


def next_ready(s: SessionState, consumer: ConsumerState, hand: list[Received], hold: bool) -> Received | None:
    """The next delivery that is there, without waiting; noted in ``hand`` in the same step.

    ``hold``: the application holds it from now on; otherwise it is settled, and the caller acknowledges it.
    """
    ledger = s.ledger
    if s.inbox or s.arrivals:
        s.take_in()
    if not s.running or ledger.orders:
        return None
    now = 0.0
    if ledger.delayed:
        now = s.now()
        if ledger.delayed[0][0] <= now:
            return None  # `receive` looks first what the wire has
    elif consumer.not_before:
        now = s.now()
    return ledger.take(consumer, now, hand, hold=hold)


def receive(
    s: SessionState,
    consumers: Sequence[ConsumerState],
    timeout: float | None,
    hand: list[Received],
    delivery: Received | None,
    *,
    hold: bool,
) -> Flow[Received | None]:
    """The next delivery for one of the consumers; None after ``timeout`` seconds or once one is being closed.

    Of several that have one the first is served.
    ``hand``: what the caller has taken; it is put there, and released (`SessionState.release`) if the caller fails.
    ``delivery``: what `next_ready` has found already, and orders are to carry out.

    Raises:
        ConnectionLostError: the connection is gone.
        JMSError: the broker has ended a consumer.
    """
    deadline = None if timeout is None else s.now() + timeout
    before, s.hand = s.hand, hand
    try:
        if delivery is None:
            if timeout == 0:
                for consumer in consumers:
                    yield from _fetch(s, consumer)
            delivery = yield from _awaited(s, consumers, deadline, hand, hold=hold)
        while s.ledger.orders:
            if not (yield from carry_out(s, deadline)):
                if delivery is not None and delivery in hand:  # the next call finds it again
                    hand.remove(delivery)
                    s.ledger.put_back(delivery)
                return None
            if delivery not in hand:  # or no more: the connection was lost meanwhile
                delivery = yield from _awaited(s, consumers, deadline, hand, hold=hold)
    finally:
        s.hand = before
    return delivery


def collect(
    s: SessionState,
    consumers: Sequence[ConsumerState],
    most: int,
    deadline: float,
    hand: list[Received],
    *,
    hold: bool,
    fits: Callable[[Received], bool] = lambda _: True,
) -> Flow[None]:
    """Put up to ``most`` deliveries of the consumers into ``hand``, and no more than come until ``deadline``.

    ``hold``: the application acknowledges them itself, as it must where there are several consumers.
    ``fits``: asked of each; the first that does not is the last of ``hand``, and its caller's to settle.
    """
    parked_in_batch: list[Received] = []
    while len(hand) < most:
        delivery = _next_of(s, consumers, hand, hold=True)
        if delivery is None or s.ledger.orders:
            if delivery is None and not _widen_window(s, consumers[0], hand, parked_in_batch):
                break
            delivery = yield from receive(s, consumers, max(0.0, deadline - s.now()), hand, delivery, hold=True)
        if delivery is None or not fits(delivery):
            break
        if hold:
            dispatched(s, delivery)
    _forget_lost(hand, parked_in_batch)
    if parked_in_batch:  # they are to be acknowledged now; where the call fails, `SessionState.release` does this
        s.epoch.channel.unpark(parked_in_batch)


def take(s: SessionState, hand: list[Received], step: Callable[[list[Received]], Flow[T]]) -> Flow[T]:
    """A ``step`` that hands over at its end what is in ``hand``; again where the connection was lost and comes back."""
    while True:
        number = s.epoch.number
        try:
            with _collecting(s, hand):
                return (yield from step(hand))
        except ConnectionLostError:
            if not s.comes_back:
                raise
        s.hand = hand[:]
        s.release(s.hand)
        hand.clear()
        yield from await_known(s, number)


def await_known(s: SessionState, number: int) -> Flow[None]:
    """Until a loss is known, by one who has met it, and began in the epoch of this number."""
    try:
        yield from await_loss(s, since=number)
    finally:
        s.hand = []


def _fetch(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    """For a receive that does not wait: "what is there" is what the broker has."""
    _check_serving(consumer)
    if not s.running or consumer.stage is not OPEN or s.epoch.lost is not None:
        return
    try:
        if consumer.link.spec.pulls:
            s.epoch.channel.pull(consumer.link)
        yield from s.epoch.channel.fetch(consumer.link)
    except ConnectionLostError as error:
        yield from await_loss(s, error)


def _widen_window(
    s: SessionState, consumer: ConsumerState, hand: list[Received], parked_in_batch: list[Received]
) -> bool:
    """Before one who collects waits for more: what is in ``hand`` gives its place in the window to others.

    It is acknowledged later all the same, when all of it is handed over.
    ``parked_in_batch``: those of ``hand`` that have done so. False: no more will come until some is acknowledged.
    """
    _forget_lost(hand, parked_in_batch)
    new, ledger, channel = hand[len(parked_in_batch) :], s.ledger, s.epoch.channel
    if not new or s.epoch.lost is not None or s.mode in (AckMode.CLIENT, AckMode.TRANSACTED):  # see `dispatched`
        return True
    if channel.has_room(consumer.link, len(ledger.held) + len(ledger.condemned) + ledger.delayed_count):
        return True  # as most often; the rest takes a hand-over and frames
    parked_in_batch += new
    return channel.widen_window(new)


@contextmanager
def _collecting(s: SessionState, hand: list[Received]) -> Iterator[None]:
    """The application gets what is in ``hand`` at the end and not before: a loss empties it, and dooms nothing by it.

    Where the loss is not known yet, until `await_loss` is done.
    """
    s.hand = hand
    try:
        yield
    except ConnectionLostError:
        raise
    except BaseException:
        s.hand = []
        raise
    s.hand = []


def _forget_lost(hand: list[Received], parked_in_batch: list[Received]) -> None:
    """A loss has emptied the hand, which ``parked_in_batch`` was the beginning of."""
    if parked_in_batch and (not hand or hand[0] is not parked_in_batch[0]):
        parked_in_batch.clear()


def _next_of(
    s: SessionState, consumers: Sequence[ConsumerState], hand: list[Received], *, hold: bool
) -> Received | None:
    """`next_ready` of the first that has one, or where orders are to carry out."""
    for consumer in consumers:
        delivery = next_ready(s, consumer, hand, hold)
        if delivery is not None or s.ledger.orders:
            return delivery
    return None


def _awaited(
    s: SessionState, consumers: Sequence[ConsumerState], deadline: float | None, hand: list[Received], *, hold: bool
) -> Flow[Received | None]:
    """`_waiting`, as it says; for the one who follows it, too."""
    flow = _waiting(s, consumers, deadline, hand, hold=hold)
    return flow if s.tracer is None else s.tracer.receiving(flow)


def _waiting(
    s: SessionState, consumers: Sequence[ConsumerState], deadline: float | None, hand: list[Received], *, hold: bool
) -> Flow[Received | None]:
    """As `receive`; None after ``deadline``, once one is closed, or where orders are to carry out."""
    polled = False
    ledger = s.ledger
    while True:
        if not (yield from _all_served(s, consumers, deadline)):
            return None
        now = s.now() if ledger.delayed and s.running else 0.0
        if ledger.delayed and ledger.delayed[0][0] <= now:
            yield from arrival(s, Arrival(poll=True))  # what the wire has brought goes first, or short waits starve it
            s.take_in()
            ledger.tick(now)
        delivery = _next_of(s, consumers, hand, hold=hold)
        if delivery is not None or ledger.orders:
            return delivery
        if not _serving(s, consumers):
            return None
        until = min(map(ledger.next_deadline, consumers)) if s.running else NEVER
        if deadline is not None:
            until = min(until, deadline)
            if s.now() >= deadline:
                if polled:
                    return None
                polled = True  # what the socket holds already counts as there
        pull(s, *consumers)
        yield from arrival(s, Arrival(None if until == NEVER else until))


def _all_served(s: SessionState, consumers: Sequence[ConsumerState], deadline: float | None) -> Flow[bool]:
    for consumer in consumers:
        if (s.epoch.lost is not None or not consumer.attached) and not (yield from _served(s, consumer, deadline)):
            return False
    return True


def _served(s: SessionState, consumer: ConsumerState, deadline: float | None) -> Flow[bool]:
    """Once the connection is there, and the consumer attached; False: not in time."""
    while True:
        if s.epoch.lost is not None and not (yield from await_return(s, deadline, consumer)):
            return False
        if consumer.attached or consumer.stage is not OPEN:
            return True
        yield from attach_late(s, consumer)


def _serving(s: SessionState, consumers: Sequence[ConsumerState]) -> bool:
    """False: the session or one of them is being closed. Raises JMSError: the broker has ended one."""
    for consumer in consumers:
        _check_serving(consumer)
    return not s.closing and all(consumer.stage is OPEN for consumer in consumers)


def _check_serving(consumer: ConsumerState) -> None:
    if consumer.error is not None and consumer.stage is not CLOSED:
        raise ended(consumer, "receive")


def pull(s: SessionState, *consumers: ConsumerState) -> None:
    """One more message than each has, where its link `pulls`; the wait that follows meets a loss."""
    for consumer in consumers:
        if consumer.link.spec.pulls and not consumer.not_before and s.running:
            with suppress(ConnectionLostError):
                s.epoch.channel.pull(consumer.link)
