"""An outage is not poison: random programs of poison, a dependency that comes and goes, and good messages."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any, Final

import pytest
from tests.conformance.blocking import Shell
from tests.conformance.stage import LATE, Stage
from tests.run.forms import brief

from redelivery import Message, RedeliveryPolicy, SharedDeadLetterStrategy

GOOD, BAD, SICK = "good", "bad", "sick"  # handled; always ValueError; always what an outage raises
PROBES: Final = 3  # that fail in each outage, before the dependency is back
SEEDS: Final = (1, 2, 10) if brief() else range(24)
OUTAGE_ON: Final[tuple[Any, ...]] = (
    None,
    ConnectionError,
    (TimeoutError, ConnectionError),
    lambda error: "database" in str(error),
    Exception,
)


@dataclass
class Program:
    """What is sent, and what the handler does with it. Numbers are of calls."""

    seed: int
    transacted: bool
    kinds: list[str] = field(default_factory=list)
    falls: set[int] = field(default_factory=set)  # good messages at whose first delivery the dependency goes away
    options: dict[str, Any] = field(default_factory=dict)
    limit: int = 0
    after: int = 0
    handled: Counter[int] = field(default_factory=Counter)
    attempts: dict[int, list[int]] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    container: Any = None
    down: bool = False
    probes: int = 0

    def __post_init__(self) -> None:
        rng = Random(self.seed)  # noqa: S311  # a test's
        detects = rng.choice(OUTAGE_ON)
        after = rng.choice((1, 2, 3))
        self.limit = rng.choice((1, 2, 4))
        self.kinds = [rng.choice((GOOD, GOOD, BAD, SICK)) for _ in range(rng.randint(4, 10))] + [GOOD] * (after + 2)
        rng.shuffle(self.kinds)
        self.kinds += [GOOD] * (after + 2)  # an outage is only known by messages that are there
        good = [number for number, kind in enumerate(self.kinds) if kind == GOOD][: -after - 2]
        if detects is not None:
            self.falls = set(rng.sample(good, min(len(good), rng.randint(1, 2))))
        self.after = after
        outage = {"outage_on": detects, "outage_after": after, "probe_interval": 0.02}
        self.options = {
            **({} if detects is None else outage),
            "concurrency": rng.choice((1, 1, 2, 3)),
            "prefetch": rng.choice((0, 1, 5, None)),
            "ack_mode": rng.choice(("transacted", "client")) if self.transacted else "client",
            "redelivery_policy": RedeliveryPolicy(
                maximum_redeliveries=self.limit, initial_redelivery_delay=0.01, redelivery_delay=0.01
            ),
        }

    def called(self, message: Message) -> None:
        number = int(message.properties["number"])  # type: ignore[arg-type]  # a string over STOMP
        with self.lock:
            self.attempts.setdefault(number, []).append(message.delivery_count)
            if number in self.falls:
                self.falls.remove(number)
                if len(self.numbers(GOOD)) - self.handled.total() > self.after + 2:
                    self.down, self.probes = True, 0  # else it is poison, for all that is known
            if self.down and self.container.outage is not None:
                self.probes += 1
                self.down = self.probes <= PROBES
            kind = self.kinds[number]
            if kind == BAD:
                raise ValueError("no price in the database")
            if kind == SICK or self.down:
                raise ConnectionError("the database does not answer")
            self.handled[number] += 1

    def numbers(self, *kinds: str) -> list[int]:
        return [number for number, kind in enumerate(self.kinds) if kind in kinds]

    def done(self) -> bool:
        """Whether every good message has been handled."""
        return self.handled.total() >= len(self.numbers(GOOD))


def until(holds: Callable[[], bool]) -> None:
    """Wait for it; a program has many steps, and a machine that others keep busy takes its time."""
    event, end = threading.Event(), monotonic() + LATE
    while not holds():
        assert monotonic() < end, "it did not happen"
        event.wait(0.01)


def send(stage: Stage, kinds: Sequence[str], first: int) -> None:
    with stage.connect() as connection, connection.session() as session:
        producer = session.producer(stage.queue)
        for number, kind in enumerate(kinds, first):
            producer.send(kind, properties={"number": number})


def play(stage: Stage, shell: Shell, program: Program) -> list[int]:
    """Returns which messages are dead."""
    dead = stage.beside("dead")
    send(stage, program.kinds, 0)
    letters: list[int] = []

    def script() -> None:
        until(program.done)
        with stage.connect() as connection, connection.session() as session:
            consumer = session.consumer(dead)
            for _ in range(4 * len(program.kinds)):
                if len(letters) == len(program.numbers(BAD, SICK)):
                    break
                message = consumer.receive(timeout=0.3)
                if message is not None:
                    letters.append(int(message.properties["number"]))  # type: ignore[arg-type]  # as above
                    continue
                program.kinds.append(GOOD)  # without others that succeed, nothing says that it is not an outage
                send(stage, (GOOD,), len(program.kinds) - 1)
                until(program.done)
        until(lambda: program.container.healthy)

    options: dict[str, Any] = {"dead_letter_strategy": SharedDeadLetterStrategy(dead_letter_queue=dead)}
    connection = shell.connect(stage.pair.url, **options) if shell.tasks else stage.connect(**options)
    program.container = connection.listener_container(stage.queue, program.called, **program.options)
    with program.container:
        script()
    return letters


@pytest.mark.parametrize("seed", SEEDS)
def test_every_good_message_is_handled_and_all_poison_is_dead(stage: Stage, shell: Shell, seed: int) -> None:
    program = Program(seed, stage.pair.can("transactions"))
    letters = play(stage, shell, program)
    assert sorted(letters) == program.numbers(BAD, SICK), program
    assert sorted(program.handled.elements()) == program.numbers(GOOD), program
    assert max(count for counts in program.attempts.values() for count in counts) <= program.limit + 1, program
