"""One case's own queue, segments, checkpoint and table, on one broker and one Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from tests.conformance.foreign import Foreign, section, sequence, string
from tests.run import again
from tests.spark.faults.account import Verdict, in_table, judge
from tests.spark.faults.jobs import Job, Jobs, Outcome
from tests.spark.faults.orders import Order, Orders

import redelivery
from redelivery import AckMode
from redelivery.broker.faults import Faults

MESSAGES = 400
_DEAD_LETTERS = ("ActiveMQ.DLQ", "DLQ")
_SOON, _NOTHING = 15.0, 0.4  # seconds
_RUN_SECONDS = 180.0
_RUNS = 6
_PAUSE = 2.0  # between runs that do not bring all: a broker that has just started is slow with its first messages
# Small batches and short waits; four of them are to be seen in a run.
OPTIONS: Mapping[str, str] = {
    "maxMessagesPerBatch": "100",
    "numPartitions": "2",
    "availableNowIdle": "500 ms",
    "redeliveryDelay": "10 ms",
    "maxReconnectTime": "30 s",
}
OF_RECEIVER: Mapping[str, Mapping[str, str]] = {
    "driver": {"segmentRows": "50", "linger": "50 ms"},
    "executor": {"receiveTimeout": "200 ms"},
}


Sender: TypeAlias = Literal["ours", "foreign", "both"]
"""Of messages; both: half of each."""


class Broker(Protocol):
    """Where the messages are."""

    name: str
    url: str
    faults: Faults | None
    """Of an embedded one."""

    @property
    def amqp091(self) -> str:
        """The url for pika, of a RabbitMQ; else nothing."""

    def kill(self) -> None:
        """kill -9, or what comes next to it."""

    def restart(self) -> None:
        """On the same port; with its messages, if it keeps any."""


@dataclass
class Stage:
    """``folder``: a new one. ``master``, ``receiver``: of the case."""

    broker: Broker
    jobs: Jobs
    folder: Path
    receiver: str
    master: str
    sent: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  # see `job.Keeper`
    checkpoint: str = "checkpoint"
    wal: str = "wal"
    sender: Sender = "both"
    run_seconds: float = _RUN_SECONDS
    last_seconds: float = _SOON
    gives_up: bool = False  # messages, because the query says so: limit(), failOnDataLoss=false

    def __post_init__(self) -> None:
        self.queue = f"spark.{self.folder.name}.{time.monotonic_ns() // 1000}"
        self.table = self.folder / "table"
        self.orders = Orders(self.folder / "orders.json")
        self.orders.write([])
        self.options = {**OPTIONS, **OF_RECEIVER[self.receiver], **self.options}

    # What is there

    def send(self, count: int = MESSAGES) -> None:
        """So many more, each with a body of its own: of our sender, of another client, or half of each."""
        bodies = [f"{self.queue} {number:05}" for number in range(len(self.sent), len(self.sent) + count)]
        ours = {"ours": count, "foreign": 0, "both": count // 2}[self.sender]
        self._send_ours(bodies[:ours])
        if bodies[ours:]:
            self._send_foreign(bodies[ours:])
        self.sent += bodies

    def _send_foreign(self, bodies: Sequence[str]) -> None:
        """As plain frames, as proton sends without an id, half of them as pika does: none has an id, or a time."""
        protocol, _, broker = self.broker.name.partition("-")
        if self.broker.amqp091:
            half = len(bodies) // 2
            self._send_by_pika(bodies[:half])
            bodies = bodies[half:]
        if protocol == "amqp":
            durable = section(0x70, sequence(b"\x41"))
            messages = [durable + section(0x77, string(body.encode())) for body in bodies]
        else:
            messages = [f"persistent:true\n\n{body}".encode() for body in bodies]
        Foreign(protocol, broker, self.broker.url).send(self.queue, *messages)

    def _send_by_pika(self, bodies: Sequence[str]) -> None:
        """As pika publishes when nothing but durability is asked of it."""
        import pika

        with pika.BlockingConnection(pika.URLParameters(self.broker.amqp091)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for body in bodies:
                durable = pika.BasicProperties(delivery_mode=2)
                channel.basic_publish("", self.queue, body.encode(), durable, mandatory=True)

    def _send_ours(self, bodies: Sequence[str]) -> None:
        with redelivery.connect(self.broker.url) as connection:
            mode = AckMode.TRANSACTED if connection.metadata.capabilities.transactions else AckMode.AUTO
            with connection.session(mode) as session:
                session.consumer(self.queue).close()  # which makes it, where a sender alone does not
                producer = session.producer(self.queue)
                for body in bodies:
                    producer.send(body, persistent=True)
                if session.transacted:
                    session.commit()

    def order(self, *orders: Order) -> None:
        """What happens to the store's users from now on."""
        port = urlsplit(self.broker.url).port or 0
        self.orders.write([Order(**{**_fields(order), "broker": port}) for order in orders])

    def wal_file(self, pattern: str) -> list[Path]:
        """The files of walLocation that match."""
        return sorted((self.folder / self.wal).glob(pattern))

    # Queries

    def query(self, **options: str) -> dict[str, Any]:
        """The commands to `job`."""
        source = {
            "url": self.broker.url,
            "destination": self.queue,
            "receiver": self.receiver,
            "walLocation": f"killing://{self.folder / self.wal}",
            "storageOptions": json.dumps({"orders": str(self.orders.path)}),
            **self.options,
            **options,
        }
        return {
            "options": source,
            "checkpoint": str(self.folder / self.checkpoint),
            "table": str(self.table),
            **self.settings,
        }

    def job(self) -> Job:
        """The Spark of this case's master."""
        return self.jobs.of(self.master)

    def run(self, **options: str) -> Outcome:
        """One AvailableNow query, until it ends or dies."""
        for _ in range(_RUNS):
            outcome = self.finish(self.start(forever=False, **options))
            if again.TOO_SLOW not in outcome.error:
                break
        return outcome

    def start(self, *, forever: bool = False, **options: str) -> int | Outcome:
        """A query that goes on, to be handed to `finish`. ``forever``: without AvailableNow."""
        return self.job().start({**self.query(**options), "forever": forever})

    def finish(self, started: int | Outcome) -> Outcome:
        """How it ended."""
        return started if isinstance(started, Outcome) else self.job_now().wait(started, self.run_seconds)

    def job_now(self) -> Job:
        """As `job`, dead or alive."""
        return self.jobs.last(self.master)

    def complete(self, *before: Outcome) -> list[Outcome]:
        """Run until all is in the table; at most a few times: what is late is not lost. Raises AssertionError."""
        outcomes = list(before)
        for _ in range(_RUNS):
            if outcomes and outcomes[-1].well and (self.gives_up or len(set(self.rows())) >= len(self.sent)):
                break
            if len(outcomes) > 1:
                time.sleep(_PAUSE)
            outcomes.append(self.run())
        assert outcomes[-1].well, outcomes[-1].error
        return outcomes

    # What became of it

    def rows(self) -> list[str]:
        """Of the table, so far."""
        return in_table(self.table)

    def verdict(self) -> Verdict:
        """Takes what is left on the queue, and the dead letters."""
        missing = 0 if self.gives_up else len(set(self.sent) - set(self.rows()))
        left = self._take(self.queue, missing)
        return judge(self.sent, self.table, left, self._dead_letters(), gives_up=self.gives_up)

    def _dead_letters(self) -> list[str]:
        return [body for queue in _DEAD_LETTERS for body in self._take(queue) if body.startswith(f"{self.queue} ")]

    def _take(self, queue: str, at_least: int = 0) -> list[str]:
        """What is there; what must be there is waited for."""
        with redelivery.connect(self.broker.url) as connection, connection.session() as session:
            consumer = session.consumer(queue)
            bodies: list[str] = []
            while (
                message := consumer.receive(timeout=self.last_seconds if len(bodies) < at_least else _NOTHING)
            ) is not None:
                body = message.body
                bodies.append(body.decode() if isinstance(body, bytes) else str(body))
            return bodies


def until(done: Callable[[], object], what: str, seconds: float = 120.0) -> None:
    """Wait for it. Raises AssertionError with ``what``."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"{what} has not happened within {seconds:g} s"
        time.sleep(0.02)


def summary(outcomes: Sequence[Outcome]) -> str:
    """How each ended, in words."""
    return ", then ".join(str(each) for each in outcomes)


def _fields(order: Order) -> dict[str, Any]:
    return {name: getattr(order, name) for name in order.__slots__}
