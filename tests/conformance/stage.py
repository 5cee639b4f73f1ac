"""What the tests of the suite have in common: a queue of their own, and who looks at it from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from datetime import timedelta
from time import monotonic
from typing import Any

from tests.conformance.lives import Lives
from tests.conformance.pairs import CLASSIC, DEAD_LETTERS, Pair
from tests.run import again

import redelivery
from redelivery import AckMode, Connection, Consumer, Message, MessageFormatError, RedeliveryPolicy, Session

# Long enough for a busy machine; a test that waits this long for something fails.
SOON = 10.0
# The same where what a lost connection had held may come late: for 10 s at a time (docs/brokers/artemis.md).
LATE = 30.0
_COMES_LATE = "stomp-artemis"
# How long we look before we believe that nothing comes; the embedded broker is asked what is left.
NOTHING = 0.4
NOTHING_EMBEDDED = 0.1  # of what is on its way through a socket, or waits for a redelivery of `QUICK`

_patience = ContextVar("patience", default=NOTHING)
_soon = ContextVar("soon", default=SOON)

QUICK = RedeliveryPolicy(maximum_redeliveries=6, initial_redelivery_delay=0.02, redelivery_delay=0.02)


class Stage:
    """Opens connections to the pair and closes them all after the test; ``queue`` is the test's own.

    ``more``: names of further queues of its own, where their names cannot be made up.
    ``said``: what the messages of a queue say that they were sent to, where it is not the name that was given.
    """

    def __init__(
        self,
        pair: Pair,
        queue: str,
        opened: ExitStack,
        more: Iterator[str] | None = None,
        said: Callable[[str], str] = str,
    ) -> None:
        self.pair = pair
        self.queue = queue
        self.said = said
        self._opened = opened
        self._more, self._beside = more, dict[str, str]()
        self.late = pair.kind.name == _COMES_LATE
        _patience.set(NOTHING if pair.real else NOTHING_EMBEDDED)
        _soon.set(LATE if self.late else SOON)

    def beside(self, word: object) -> str:
        """Another queue of the test's own; the same one for the same word."""
        name = str(word)
        if name not in self._beside:
            self._beside[name] = f"{self.queue}.{name}" if self._more is None else next(self._more)
        return self._beside[name]

    def under(self, rule: str) -> str:
        """A queue of the test's own for which the broker has a rule, by how its name begins."""
        return f"{rule}.{self.queue.partition('::')[0]}"

    def connect(self, *, start: bool = True, **options: Any) -> Connection:
        """A connection with a quick redelivery policy, unless another is given."""
        if "redelivery_policies" not in options:
            options.setdefault("redelivery_policy", QUICK)
        lives = options.setdefault("observer", Lives())
        self._opened.callback(lives.check)  # when all is closed
        return self._opened.enter_context(self._open(start=start, **options))

    def _open(self, **options: Any) -> Connection:
        return redelivery.connect(**{"url": self.pair.url, **options})

    def session(self, mode: AckMode, **options: Any) -> Session:
        """A session on a connection of its own."""
        return self.connect(**options).session(mode)

    def consuming(self, mode: AckMode, **options: Any) -> tuple[Session, Consumer]:
        """A session on a connection of its own, and a consumer of the queue."""
        session = self.session(mode, **options)
        return session, session.consumer(self.queue)

    def send(self, *bodies: Any, queue: str | None = None, **options: Any) -> None:
        """Send from a connection of its own, in one transaction where there are any. ``ref`` of each is the queue."""
        properties = {"ref": self.queue, **options.pop("properties", {})}
        mode = AckMode.TRANSACTED if self.pair.can("transactions") else AckMode.AUTO
        with redelivery.connect(self.pair.url) as connection, connection.session(mode) as session:
            producer = session.producer(queue or self.queue)
            for body in bodies:
                producer.send(body, properties=properties, **options)
            if session.transacted:
                session.commit()

    def left(self, queue: str | None = None, at_least: int = 0) -> list[Message]:
        """Take all that is on a queue (the test's own), as another client; closes nothing of the test's.

        ``at_least``: what must be there is waited for, since a broker that has just started is slow with its first.
        """
        return self._take(queue or self.queue, at_least)

    def left_bodies(self, queue: str | None = None, at_least: int = 0) -> list[Any]:
        return [message.body for message in self.left(queue, at_least)]

    def dead_letters(self, queue: str = DEAD_LETTERS, at_least: int = 0) -> list[Message]:
        """The test's own dead letters, of a queue that real brokers have for all; others leave theirs there.

        RabbitMQ has no selectors, and Classic looks no further than 200 messages for one: these are emptied.
        """
        selects = self.pair.real and self.pair.kind.broker not in CLASSIC and self.pair.can("selectors")
        return self._take(queue, at_least, f"ref = '{self.queue}'" if selects else None, self._own)

    def _own(self, message: Message) -> bool:
        try:
            return message.properties.get("ref") == self.queue
        except MessageFormatError:  # what other programs wrote, in a test of that
            return False

    def _take(
        self,
        queue: str,
        at_least: int = 0,
        selector: str | None = None,
        wanted: Callable[[Message], bool] = lambda _: True,
    ) -> list[Message]:
        found: list[Message] = []
        with redelivery.connect(self.pair.url) as connection, connection.session() as session:
            held = self._in_flight(queue)
            consumer = session.consumer(queue, selector=selector)
            while True:
                message = self._next(consumer, queue, held, soon() if len(found) < at_least else NOTHING)
                if message is None:
                    return found
                if wanted(message):
                    _ = message.body
                    found.append(message)

    def _next(self, consumer: Consumer, queue: str, held: set[int], patience: float) -> Message | None:
        """The next message; None after ``patience`` seconds, or as soon as the broker says that no more will come."""
        if self.pair.embedded is None:
            return consumer.receive(timeout=patience)
        end = monotonic() + max(patience, SOON)  # a store on a busy disk may pause; it says when there is no more
        while True:
            message = consumer.receive(timeout=0.02)
            if message is not None or monotonic() > end:
                return message
            entries = self.pair.embedded.core.call(lambda engine, _now: engine.entries(queue))
            if {entry.order for entry in entries} <= held:
                return None

    def _in_flight(self, queue: str) -> set[int]:
        """What other consumers hold of a queue of the embedded broker: it does not come."""
        if self.pair.embedded is None:
            return set()
        entries = self.pair.embedded.core.call(lambda engine, _now: list(engine.browsed(queue).found))
        return {entry.order for entry in entries if entry.backlog is None}  # in memory; the rest waits in the store


def in_time(expected: Sequence[float], took: Callable[[], Sequence[float]], early: float, late: float) -> None:
    """Each of the times that ``took`` measures is the expected one, in seconds.

    None is ever ``early`` seconds less. One may be ``late`` seconds more where a machine or a broker was held up, so
    all are then measured again, twice.
    """
    for number in range(3):
        if number:
            again.note(again.MEASURED)
        times = took()
        assert len(times) == len(expected)
        assert all(time > wanted - early for time, wanted in zip(times, expected, strict=True)), f"too early: {times}"
        if all(time < wanted + late for time, wanted in zip(times, expected, strict=True)):
            return
    raise AssertionError(f"late each time: {times} for {expected}")


def soon() -> float:
    """`SOON`, or `LATE` on the pair of this test."""
    return _soon.get()


def receive(consumer: Consumer) -> Message:
    """The next message; fails when none comes soon."""
    message = consumer.receive(timeout=soon())
    assert message is not None, f"nothing came from {consumer.destination} within {soon()} s"
    return message


def receive_all(consumer: Consumer, count: int) -> list[Message]:
    return [receive(consumer) for _ in range(count)]


def bodies(messages: Iterable[Message]) -> list[Any]:
    return [message.body for message in messages]


def nothing_comes(*consumers: Consumer) -> bool:
    return all(consumer.receive(timeout=_patience.get()) is None for consumer in consumers)


def numbered(count: int) -> Sequence[str]:
    """``m0001``, ``m0002`` and so on."""
    return [f"m{number:04}" for number in range(1, count + 1)]


def milliseconds(delta: timedelta) -> float:
    return delta / timedelta(milliseconds=1)
