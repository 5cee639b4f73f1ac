"""The inside of a session: its ledger, its channel, and what other threads have notified it of.

1. One thread (or task) at a time is the holder of the session, and it alone touches the ledger; the shells of `sync`
   see to that.
2. Deliveries, and what becomes of links, of the connection and of consumers, come from other threads as entries of
   `inbox`, in their order, which is the only thing that they share.
3. A delivery is always in one place: `inbox`, `arrivals`, the ledger, or the hand of a call, which an interrupted call
   releases.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count

from redelivery.client.connection.lifecycle import SESSION, Lifecycle, SessionStage
from redelivery.client.connection.shared import Shared, begins_anew
from redelivery.client.epoch import CloseAsked, Epoch, Interrupted, LinkEnded, Lost, News, Report, Restored, Returned
from redelivery.client.ledger import ConsumerState, Ledger, Poison, Received, Unpark
from redelivery.client.ledger.history import LIGHT, Trace, trace
from redelivery.client.ledger.losses import interrupted
from redelivery.client.ledger.state import ACCEPTED
from redelivery.client.observing.near_limits import NearLimits
from redelivery.client.observing.traced import SessionTracer
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError, RequestTimeoutError
from redelivery.model.events import ConsumerEnded
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Channel, Delivery, Link, Pending, Transport
from redelivery.transports.wire.answers import finish
from redelivery.transports.wire.clock import epoch_ms, follow, session_time, utc_now

NEVER = float("inf")
SILENCE = 0.02  # seconds without an answer after which one looks whether the connection is there before one asks
_UNSURE = 100  # deliveries: a broker sends no more of its usual window before it knows what became of the first
_NUMBERS = count(1)


class SessionState:
    """What the operations of one session work on."""

    def __init__(self, transport: Transport, shared: Shared, mode: AckMode, report: Report) -> None:
        self.options = options = shared.options
        self.mode = mode
        self.report = report
        self.number = next(_NUMBERS)  # of all sessions of this process
        self.observed = options.observed
        self.tracer: SessionTracer | None = None  # with the first channel, where the observer follows work
        self.connection = shared.life
        self.running = False  # follows the connection's start and stop
        self.life = Lifecycle("session", SESSION, SessionStage.OPEN)
        self.irregular = False  # not OPEN, or about to leave it: the fast path asks this one flag
        self.heard = 0.0  # when the broker last answered, or one looked whether it has said anything
        self.inbox: deque[Received] = deque()
        self.news = False  # `inbox` may hold something that is not a delivery; set before it is put there
        self.arrivals: deque[Received] = deque()  # taken out of `inbox`, and on its way to the ledger
        self.hand: list[Received] = []  # of the call under way: the application has not got them yet
        self.history, self.suspects, self.lines = shared.history, shared.suspects, shared.lines
        # settled without an answer: a loss may have undone that
        self.unsure: deque[Received | Trace | None] | None = (
            None if options.reconnect is None else deque(maxlen=_UNSURE)
        )
        self.waiter = transport.new_waiter()
        follow(self.waiter)
        self.ledger = Ledger(mode, wall_ms=epoch_ms, non_blocking=options.non_blocking_redelivery)
        self.dead_letters = shared.dead_letters
        self.near: NearLimits | None = None  # with the first consumer of a queue that gives messages up
        self.temporaries = shared.temporaries
        self.subscriptions = shared.subscriptions
        self.unanswered: deque[Pending] = deque()  # of asynchronous sends
        self.sent: list[Message] = []  # in the open transaction
        self.listener: object = None  # the shell's, where one is set
        self.poisoned = 0  # messages that a failure has made dead letters
        self.browsing: list[Channel] = []  # of its browsers, each with an inbox of its own
        self.epoch = Epoch(transport)  # its part in its connection to a broker now

    @property
    def listens(self) -> bool:
        """Whether the caller is one of its listeners; for the shells, whose `listener` is a thread or a task."""
        return False

    def now(self) -> float:
        """Monotonic seconds as applications wait; the operations have no other clock but `wall`."""
        return session_time()

    def wall(self) -> datetime:
        """The time of the wall clock, aware: what messages are stamped with."""
        return utc_now()

    # what the transport says, on whichever thread reads

    def on_deliveries(self, deliveries: Sequence[Received]) -> None:
        """See SessionEvents."""
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link[ConsumerState], error: JMSError) -> None:
        """See SessionEvents: the consumer ends, its session goes on."""
        consumer = link.consumer
        self.notify(LinkEnded(consumer, error))
        again = begins_anew(consumer, self.options.reconnect)  # a line says when
        self.report(error, deadly=consumer.listening and not again, logged=again)

    def on_lost(self, error: JMSError, at: datetime, *, comes_back: bool = False, planned: bool = False) -> None:
        """The connection is gone, since ``at`` as far as is known; for the connection.

        ``comes_back``: there will be another one, or another loss. ``planned``: see Interrupted.
        """
        if comes_back and not planned:
            self.remember(error)  # before there is another one, on which another session may get it
        self.irregular = True
        self.notify(Interrupted(error, planned) if comes_back else Lost(error, at))

    def lose_unanswered(self, error: JMSError) -> None:
        """There will be no other connection: answers end that a loss has not ended (see `reattach`)."""
        for each in list(self.unanswered):
            finish(each, ConnectionLostError(str(error)))

    def on_returned(self, transport: Transport) -> None:
        """There is another connection; for the connection."""
        self.notify(Restored(transport))

    def release(self, hand: Iterable[Received]) -> None:
        """Deliveries of a call that failed or was interrupted: the application has not got them. From any thread."""
        self.notify(Returned(tuple(hand)))

    def notify(self, news: News) -> None:
        """From any thread: the holder of the session takes it in, after what came before it."""
        self.news = True
        self.inbox.append(news)  # type: ignore[arg-type]  # `take_in` finds it, by `news`
        self.waiter.wake()

    # its stage

    @property
    def lost(self) -> JMSError | None:
        """Why the connection is gone; known before the session has taken it in."""
        return self.connection.error

    @property
    def comes_back(self) -> bool:
        """Whether its connection, after a loss, is or will be another one."""
        return self.options.reconnect is not None and self.lost is None

    @property
    def closing(self) -> bool:
        """Whether somebody has begun to close it."""
        return self.life.stage is SessionStage.CLOSING

    def step(self, event: str, why: str = "", error: JMSError | None = None, at: datetime | None = None) -> None:
        """See `lifecycle`."""
        self.life.step(event, why, error, at)
        if self.life.stage is SessionStage.OPEN:
            self.irregular = False
        if (
            self.life.stage is not SessionStage.OPEN or self.epoch.lost or self.epoch.leaving or self.lost is not None
        ):  # looked at last: another may step too
            self.irregular = True

    @property
    def in_use(self) -> bool:
        """Whether somebody is inside; for the shells, who let them in."""
        return False

    @property
    def left(self) -> bool:
        """After a planned `on_lost`, while the connection is there: whether nothing is open on it any more."""
        if self.in_use:
            return self.epoch.lost is not None and not self.waiter.awaits
        return self.epoch.lost is not None or self.at_rest

    @property
    def at_rest(self) -> bool:
        """Whether nothing of it is under way that a loss would undo or leave in doubt; a guess from other threads."""
        return not self.sent and not self.ledger.held and all(each.done for each in list(self.unanswered))

    # who may come in: of the holder of the session

    def ended(self, action: str) -> JMSError | None:
        """The error of a call that comes too late. For the holder of `use`; a callback goes on while it is closed."""
        if self.news:
            self.take_in()  # it may be lost
        if not self.life.ended or (self.closing and self.listens):
            return None
        return self.life.problem(action)

    def listened(self, action: str) -> JMSError | None:
        """The error of a call from outside of the listeners, where one is set."""
        if self.listener is None or self.listens:
            return None
        return IllegalStateError(
            f"{action}: a message listener is set, so only its callbacks may use this session; "
            "use another session, connection.publisher() to send, or remove the listener with listen(None)"
        )

    # what has arrived, by the holder of the session

    def take_in(self) -> None:
        """Hand what has arrived to the ledger."""
        arrivals = self.arrivals
        if not self.inbox and not arrivals and self.epoch.leaving is None:
            return
        with suppress(IndexError):  # in one step: until that says that there is no more
            arrivals.extend(iter(self.inbox.popleft, None))
        if self.news:
            self._take_news()
            return
        if self.history.places:
            self.history.mark(arrivals)
        if self.near is not None:
            self.near.arrived(arrivals)
        self.ledger.arrived(arrivals)

    def _take_news(self) -> None:
        self.news = False  # before `inbox` is looked at again: a thread that puts something there sets it first
        self.arrivals.extend(self.inbox.popleft() for _ in range(len(self.inbox)))
        arrivals = self.arrivals
        if self.epoch.leaving is not None:
            self._leave(self.epoch.leaving)
        while arrivals:
            match arrivals.popleft():
                case LinkEnded() | Lost() | Interrupted() | Restored() as news:
                    self._wire_changed(news)
                case CloseAsked(consumer):
                    self.ledger.close_consumer(consumer)
                case Returned(deliveries):
                    for delivery in reversed(deliveries):
                        self.ledger.put_back(delivery)
                    if self.epoch.lost is None:  # see `make_room`
                        self.ledger.orders.append(Unpark(tuple(deliveries)))
                    if self.observed is not None:
                        self.observed.released(self.number, deliveries)
                case delivery:
                    self.history.mark((delivery,))
                    if self.near is not None:
                        self.near.arrived((delivery,))
                    self.ledger.arrived([delivery])

    def _wire_changed(self, news: LinkEnded | Lost | Interrupted | Restored) -> None:
        match news:
            case LinkEnded(consumer, error):
                self.remember(error, consumer)
                self.ledger.link_ended(consumer, error)
                if self.observed is not None:
                    self.observed.notify(ConsumerEnded(self.number, consumer.link.destination, error))
            case Lost(error, at):
                self.ledger.transport_lost()
                self.step("lose", "the connection was lost", error, at)
            case Interrupted(error, planned):
                self._leave(error) if planned else self._interrupted(error)
            case Restored(transport):
                if self.epoch.leaving is not None:  # it was left all the same
                    self._interrupted(self.epoch.leaving)
                self.epoch.successor = transport

    def came_back(self) -> None:
        """It has a channel again, and its consumers are attached."""
        self.epoch.begin()
        self.irregular = self.life.stage is not SessionStage.OPEN or self.lost is not None
        if self.news:  # looked at last: another loss may have been notified meanwhile
            self.irregular = True
        self.waiter.wake()  # a listener's thread that is parked reads again

    def _leave(self, error: JMSError) -> None:
        """The connection, as soon as nothing is open on it, which is looked at again whenever something is taken in."""
        if self.at_rest:
            self._interrupted(error)
        else:
            self.epoch.leaving, self.news = error, True

    def _interrupted(self, error: JMSError) -> None:
        self.remember(error)  # what was delivered since it was notified
        if self.unsure is not None:
            self.unsure.clear()
        gone = interrupted(self.ledger)
        held = tuple(each for each in gone if each not in self.hand)
        self.hand[:] = [each for each in self.hand if each.state is ACCEPTED]  # the call that waits collects anew
        doomed = self.mode == AckMode.TRANSACTED and bool(held or (self.sent and not self.options.deduplicate_sends))
        self.epoch.end(error, held, doomed=doomed, stale=self.mode == AckMode.CLIENT)
        if self.epoch.doomed is not None:
            self.sent.clear()
        if self.observed is not None:
            self.observed.released(self.number, dict.fromkeys((*gone, *self.epoch.late)))
            self.observed.too_late(self.number, self.epoch.late)
        self.epoch.late.clear()
        self.browsing.clear()

    # what the application has had, and may be delivered again

    def remember(self, error: JMSError, of: ConsumerState | None = None) -> None:
        """What it has had (of one consumer) is the broker's again, because of ``error``, or may be. From any thread."""
        ledger, unseen = self.ledger, set(self.hand)
        had = [each for each in tuple(ledger.held) if each not in unseen]
        failed = [each for consumer in tuple(ledger.consumers) for each in tuple(consumer.ready) if each.earlier]
        failed += [each for entry in tuple(ledger.delayed) for each in entry[3]]
        failed += [each.delivery for each in tuple(ledger.orders) if isinstance(each, Poison) and each.delivery.earlier]
        if of is not None:
            had, failed = ([each for each in some if each.link is of.link] for some in (had, failed))
        traces = [trace(each, had=True) for each in had]
        traces += [trace(each, had=False) for each in failed]
        if of is None and self.unsure:
            settled = tuple(self.unsure)
            traces += [trace(each, had=True) if isinstance(each, Delivery) else each for each in settled]
        self.history.note(traces, error)

    def settled(self, deliveries: Iterable[Received]) -> None:
        """The application is done with them, and no answer will say that the broker knows it."""
        if self.unsure is not None:
            self.unsure += [each if each.weight() <= LIGHT else trace(each, had=True) for each in deliveries]
        if self.history.places:
            self.history.forget(deliveries)

    # answers that nobody waits for

    def watch(self, pending: Pending) -> None:
        """The session's close waits for it."""
        self._forget_answered()
        self.unanswered.append(pending)

    def awaits_more_than(self, count: int) -> bool:
        """Whether so many answers are still to come; one that has come counts until those before it have."""
        self._forget_answered()
        return len(self.unanswered) > count

    def _forget_answered(self) -> None:
        unanswered = self.unanswered
        while unanswered and unanswered[0].done:
            unanswered.popleft()

    def unwatch(self, pending: Pending) -> None:
        """An interrupt came before its caller had the future: no close waits for an answer that may never come."""
        with suppress(ValueError):
            self.unanswered.remove(pending)

    def end_unanswered(self, why: str) -> None:
        """No answer will be seen any more: the futures fail, and say so."""
        for pending in list(self.unanswered):
            if not pending.done:
                finish(pending, RequestTimeoutError(why))
        self.unanswered.clear()
