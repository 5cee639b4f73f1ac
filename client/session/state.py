"""The inside of a session: its ledger, its channel, and what other threads have notified it of.

1. One thread (or task) at a time is the holder of the session, and it alone touches the ledger; the shells of `sync`
   see to that.
2. Other threads put deliveries and news into its `inbox`, in their order, which is the only thing that they share.
3. A delivery is always in one place: `inbox`, `arrivals`, the ledger, or the hand of a call, which an interrupted call
   releases.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count

from redelivery.client.ledger import ConsumerState, Ledger, Poison, Received, Unpark
from redelivery.client.ledger.history import LIGHT, Trace, trace
from redelivery.client.ledger.state import ACCEPTED
from redelivery.client.lifecycle import SESSION, EpochStage, Lifecycle, SessionStage
from redelivery.client.observing.near_limits import NearLimits
from redelivery.client.observing.traced import SessionTracer
from redelivery.client.session.epoch import Epoch
from redelivery.client.session.inbox import (
    CloseAsked,
    Inbox,
    Interrupted,
    LinkEnded,
    Lost,
    ReportError,
    Restored,
    Returned,
)
from redelivery.client.session.shared import Shared
from redelivery.client.session.subscriptions import begins_anew
from redelivery.client.session.unanswered import Unanswered
from redelivery.model.errors import IllegalStateError, JMSError
from redelivery.model.events import ConsumerEnded
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Channel, Delivery, Flow, Link, Transport, Wish
from redelivery.transports.wire.clock import epoch_ms, follow, session_time, utc_now

NEVER = float("inf")
SILENCE = 0.02  # seconds without an answer after which one looks whether the connection is there before one asks
_UNSURE = 100  # deliveries: a broker sends no more of its usual window before it knows what became of the first
_NUMBERS = count(1)


class SessionState:
    """The state that the operations of one session work on."""

    def __init__(self, transport: Transport, shared: Shared, mode: AckMode, report: ReportError) -> None:
        self.options = options = shared.options
        self.mode = mode
        self.report = report
        self.number = next(_NUMBERS)  # of all sessions of this process
        self.observed = options.observed
        self.tracer: SessionTracer | None = None  # with the first channel, where the observer follows work
        self.connection = shared.life
        self.running = False  # follows the connection's start and stop
        self.life = Lifecycle("session", SESSION, SessionStage.OPEN)
        self.needs_check = False  # see `recheck`: the fast path asks this one flag
        self.heard = 0.0  # when the broker last answered, or one looked whether it has said anything
        self.waiter = transport.new_waiter()
        follow(self.waiter)
        self.inbox = Inbox(self.waiter)
        self.arrivals: deque[Received] = deque()  # taken out of `inbox`, and on its way to the ledger
        self.hand: list[Received] = []  # of the call under way: the application has not got them yet
        self.history, self.suspects, self.lines = shared.history, shared.suspects, shared.lines
        self.storing = shared.storing
        # settled without an answer: a loss may have undone that
        self.unsure: deque[Received | Trace | None] | None = (
            None if options.reconnect is None else deque(maxlen=_UNSURE)
        )
        self.ledger = Ledger(mode, wall_ms=epoch_ms, non_blocking=options.non_blocking_redelivery)
        self.dead_letters = shared.dead_letters
        self.near: NearLimits | None = None  # with the first consumer of a queue that gives messages up
        self.temporaries = shared.temporaries
        self.subscriptions = shared.subscriptions
        self.unanswered = Unanswered()
        self.sent: list[Message] = []  # in the open transaction
        self.listener: object = None  # the shell's, where one is set
        self.handlers: dict[ConsumerState, str] = {}  # their names, also of those that are called no more
        self.poisoned = 0  # messages that a failure has made dead letters
        self.unfinished: list[tuple[Flow[None], Wish]] = []  # a dead letter that has begun: the next holder goes on
        self.browsing: list[Channel] = []  # of its browsers, each with an inbox of its own
        self.epoch = Epoch(transport)  # its part in its connection to a broker now

    @property
    def listens(self) -> bool:
        """True: the caller is one of its listeners. For the shells, whose `listener` is a thread or a task."""
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
        self.inbox.notify(LinkEnded(consumer, error))
        again = begins_anew(consumer, self.options.reconnect)  # a line says when
        self.report(error, deadly=consumer.listening and not again, logged=again)

    def on_lost(self, error: JMSError, at: datetime, *, comes_back: bool = False, planned: bool = False) -> None:
        """The connection is gone, noticed at ``at``; for the connection.

        ``comes_back``: there will be another one, or another loss. ``planned``: see Interrupted.
        """
        if comes_back and not planned:
            self.remember(error)  # before there is another one, on which another session may get it
        self.inbox.notify(Interrupted(error, planned) if comes_back else Lost(error, at))
        self.needs_check = True  # behind it: see `recheck`

    def on_returned(self, transport: Transport) -> None:
        """There is another connection; for the connection."""
        self.inbox.notify(Restored(transport))

    def release(self, hand: Iterable[Received]) -> None:
        """Deliveries of a call that failed or was interrupted: the application has not got them. From any thread."""
        self.inbox.notify(Returned(tuple(hand)))

    # its stage

    @property
    def lost(self) -> JMSError | None:
        """Why the connection is gone; known before the session has taken it in."""
        return self.connection.error

    @property
    def comes_back(self) -> bool:
        """True: its connection, after a loss, is or will be another one."""
        return self.options.reconnect is not None and self.lost is None

    @property
    def closing(self) -> bool:
        """True: somebody has begun to close it."""
        return self.life.stage is SessionStage.CLOSING

    def step(self, event: str, why: str = "", error: JMSError | None = None, at: datetime | None = None) -> None:
        """See `lifecycle`."""
        self.life.step(event, why, error, at)
        self.recheck()

    def recheck(self) -> None:
        """Set `needs_check`, after a step of its life or epoch: a call looks first. From any thread."""
        self.needs_check = False
        usual = self.life.stage is SessionStage.OPEN and self.epoch.stage is EpochStage.ATTACHED
        if not usual or self.lost is not None or self.inbox.news:  # looked at last: another may step too
            self.needs_check = True

    @property
    def in_use(self) -> bool:
        """True: somebody is inside. For the shells, who let them in."""
        return False

    @property
    def left(self) -> bool:
        """After a planned `on_lost`, while the connection is there: whether nothing is open on it any more."""
        if self.in_use:
            return self.epoch.lost is not None and not self.waiter.awaits
        return self.epoch.lost is not None or self.at_rest

    @property
    def at_rest(self) -> bool:
        """True: nothing of it is under way that a loss would undo or leave in doubt; a guess from other threads."""
        return not self.sent and not self.ledger.held and self.unanswered.all_done

    def finish_later(self) -> None:
        """Go on with what is `unfinished` as soon as nobody is inside; for the shells, who begin a thread or a task."""

    # who may come in: of the holder of the session

    def ended(self, action: str) -> JMSError | None:
        """The error of a call that comes too late. For the holder of `use`; a callback goes on while it is closed."""
        if self.inbox.news:
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
        if self.inbox.news:
            self._take_news()
            return
        if self.history.places:
            self.history.mark(arrivals)
        if self.near is not None:
            self.near.arrived(arrivals)
        self.ledger.arrived(arrivals)

    def _take_news(self) -> None:
        self.inbox.news = False  # before `inbox` is looked at again: a thread that puts something there sets it first
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
                    if self.epoch.lost is None:  # see `widen_window`
                        self.ledger.orders.append(Unpark(tuple(deliveries)))
                    if self.observed is not None:
                        self.observed.released(self.number, deliveries)
                case delivery:
                    self.history.mark((delivery,))
                    if self.near is not None:
                        self.near.arrived((delivery,))
                    self.ledger.arrived([delivery])
        self.recheck()

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
                self.epoch.come(transport)

    def came_back(self) -> None:
        """Go on, with a channel again and its consumers attached."""
        self.epoch.attach()
        self.recheck()
        self.waiter.wake()  # a listener's thread that is parked reads again

    def _leave(self, error: JMSError) -> None:
        """The connection, as soon as nothing is open on it, which is looked at again whenever something is taken in."""
        if self.epoch.lost is not None or self.at_rest:
            self._interrupted(error)
        else:
            self.epoch.leave(error)
            self.inbox.news = True

    def _interrupted(self, error: JMSError) -> None:
        self.remember(error)  # what was delivered since it was notified
        if self.unsure is not None:
            self.unsure.clear()
        gone = self.ledger.interrupted()
        held = tuple(each for each in gone if each not in self.hand)
        self.hand[:] = [each for each in self.hand if each.state is ACCEPTED]  # the call that waits collects anew
        epoch = self.epoch
        epoch.lose(error)
        if self.mode == AckMode.TRANSACTED and (held or (self.sent and not self.options.deduplicate_sends)):
            epoch.rollback_only = epoch.rollback_only or error
        if self.mode == AckMode.CLIENT:
            epoch.from_lost_connection += held
        if epoch.rollback_only is not None:
            self.sent.clear()
        if self.observed is not None:
            self.observed.released(self.number, dict.fromkeys((*gone, *epoch.acked_after_loss)))
            self.observed.too_late(self.number, epoch.acked_after_loss)
        epoch.acked_after_loss.clear()
        self.browsing.clear()

    # what the application has had, and may be delivered again

    def remember(self, error: JMSError, of: ConsumerState | None = None) -> None:
        """Remember what it has had (of one consumer) and may go back to the broker by ``error``. From any thread."""
        ledger, unseen = self.ledger, set(self.hand)
        had = [each for each in tuple(ledger.held) if each not in unseen]
        failed = [each for consumer in tuple(ledger.consumers) for each in tuple(consumer.ready) if each.earlier]
        failed += [each for entry in tuple(ledger.delayed) for each in entry[3]]
        failed += [each.delivery for each in tuple(ledger.orders) if isinstance(each, Poison) and each.delivery.earlier]
        if of is not None:
            had, failed = ([each for each in some if each.link is of.link] for some in (had, failed))
        now = epoch_ms()
        traces = [trace(each, had=True, failed_at=now) for each in had]
        if of is None and self.unsure:
            settled = tuple(self.unsure)
            traces += [trace(each, had=True) if isinstance(each, Delivery) else each for each in settled]
        self.history.note(traces, error)
        self.history.note_failed(failed)

    def settled(self, deliveries: Iterable[Received]) -> None:
        """The application is done with them, and no answer will say that the broker knows it."""
        if self.unsure is not None:
            self.unsure += [each if each.weight() <= LIGHT else trace(each, had=True) for each in deliveries]
        if self.history.places:
            self.history.forget(deliveries)


def ended(consumer: ConsumerState, action: str) -> JMSError:
    """The error for a call that needs a consumer that the broker has ended, in the broker's words."""
    error = consumer.error
    assert error is not None, "it has ended"
    problem = type(error)(f"{action}: the broker has ended the consumer of {consumer.link.destination}: {error}")
    problem.__cause__ = error
    return problem
