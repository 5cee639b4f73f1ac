"""The demo: eight orders, a handler that fails with some of them, and what a transacted session makes of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic, sleep
from typing import Final

import redelivery
from redelivery import Connection, Consumer, JMSError, Message, RedeliveryPolicy, Session, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.demo.events import (
    DeadLettered,
    Delivered,
    Event,
    Failed,
    Processed,
    Sent,
    SparkTable,
    Started,
    Summary,
)
from redelivery.cli.demo.spark import SparkError
from redelivery.cli.demo.tally import Tally
from redelivery.client.options import ConnectionKeywords
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE

ALWAYS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Script:
    """What is played. Times are in seconds.

    ``failures``: how often, and with which error, the handler fails with an order; the others succeed at once.
    ``work``: how long the handler takes. ``limit``: when the demo gives up waiting for a delivery.
    """

    orders: tuple[str, ...] = tuple(str(number) for number in range(1001, 1009))
    failures: Mapping[str, tuple[int, Exception]] = field(
        default_factory=lambda: {
            "1002": (1, TimeoutError("bank was silent")),
            "1004": (ALWAYS, LookupError("no such article")),
            "1005": (2, ConnectionError("stock is offline")),
            "1007": (ALWAYS, ValueError("price is negative")),
        }
    )
    policy: RedeliveryPolicy = field(
        default_factory=lambda: RedeliveryPolicy(
            maximum_redeliveries=3, initial_redelivery_delay=0.5, use_exponential_back_off=True, back_off_multiplier=2.0
        )
    )
    work: float = 0.25
    limit: float = 18.0


class Demo:
    """One run of a script; every step is reported as an event.

    ``spark``: given the broker's URL and the dead-letter queue in the end, it takes the dead letters from there, which
    otherwise the demo does itself.
    """

    def __init__(
        self,
        report: Callable[[Event], None],
        script: Script | None = None,
        *,
        spark: Callable[[str, str], SparkTable] | None = None,
    ) -> None:
        self._show = report
        self._spark = spark
        self._script = script or Script()
        self._tally = Tally()
        self._queue, self._dead_letter_queue = "orders", DEFAULT_DEAD_LETTER_QUEUE
        self._broker = ""
        self._began = 0.0
        self._attempts: Counter[str] = Counter()
        self._rolled_back: dict[str, tuple[float, float]] = {}  # when, and the delay by the policy

    def run(self, url: str | None = None, options: ConnectionKeywords | None = None) -> Summary:
        """Play it on the broker of ``url``, in queues of its own; None: on an embedded broker, over STOMP.

        ``options``: what `redelivery.connect` takes beside the URL, and the demo has none of.

        Raises:
            JMSError: the broker cannot be reached, or failed meanwhile.
        """
        self._began = monotonic()
        with ExitStack() as stack:
            if url is None:
                self._broker = "embedded broker"
                url = stack.enter_context(EmbeddedBroker("redelivery-demo", stomp_port=0)).stomp_url
            else:
                name = f"redelivery.demo.{token_hex(4)}"
                self._queue, self._dead_letter_queue = f"{name}.orders", f"{name}.DLQ"
            given: ConnectionKeywords = {"connect_timeout": 5, **(options or {})}
            given |= {"request_timeout": 5, "close_timeout": 5}
            given["redelivery_policy"] = self._script.policy
            given["dead_letter_strategy"] = SharedDeadLetterStrategy(self._dead_letter_queue)
            connection = stack.enter_context(redelivery.connect(url, **given))
            try:
                self._play(connection)
                summary = self._tally.summary(monotonic() - self._began)
                self._show(summary)
                if self._spark is not None and not summary.problems:
                    read = self._spark(url, self._dead_letter_queue).letters
                    if read != summary.dead_letters:
                        raise SparkError(f"Spark read {read} of {summary.dead_letters} dead letters")
            except BaseException as error:
                try:
                    self._empty(connection)
                except JMSError as second:
                    error.add_note(f"its queues could not be emptied: {second}")
                raise
            if summary.problems:
                self._empty(connection)
        return summary

    def _report(self, event: Event) -> None:
        self._tally.add(event)
        self._show(event)

    def _play(self, connection: Connection) -> None:
        policy, who = self._script.policy, connection.metadata
        self._report(
            Started(
                broker=self._broker or f"{who.provider_name} {who.provider_version}".strip(),
                protocol=who.protocol,
                url=connection.url,
                queue=self._queue,
                dead_letter_queue=self._dead_letter_queue,
                orders=self._script.orders,
                delays=tuple(policy.delay(n) for n in range(1, policy.maximum_redeliveries + 1)),
            )
        )
        with connection.session("auto") as session, session.producer(self._queue) as producer:
            for order in self._script.orders:
                producer.send(order)  # returns when the broker has confirmed it
                self._report(Sent(order))
        # CLIENT: what is read from the dead-letter queue stands there until the end
        with connection.session("transacted") as session, connection.session("client") as reader:
            self._consume(session, reader)
            if self._spark is None:
                reader.acknowledge()  # else they are released

    def _consume(self, session: Session, reader: Session) -> None:
        consumer = session.consumer(self._queue)
        dead_letters = reader.consumer(self._dead_letter_queue)
        while not self._tally.done:
            message = consumer.receive(timeout=self._left())
            if message is None:
                self._tally.complain(f"not finished after {self._script.limit:g} s, and nothing more was delivered")
                return
            error = self._handle(message)
            if error is None:
                session.commit()
                self._report(Processed(message.body))
                continue
            failed_at = monotonic()
            session.rollback(cause=error)
            if self._after_failure(message, error, failed_at):
                self._find(message.body, dead_letters, failed_at)
        for where, late in (("queue", consumer), ("dead-letter queue", dead_letters)):
            message = late.receive(timeout=0.2)
            if message is not None:
                self._tally.complain(f"order {message.body} is in the {where} although everything was done")

    def _handle(self, message: Message) -> Exception | None:
        """The application: what its handler raised, if it did."""
        order = message.body
        rolled_back, planned = self._rolled_back.pop(order, (None, None))
        measured = None if rolled_back is None else monotonic() - rolled_back
        self._report(Delivered(order, message.delivery_count, message.redelivered, planned, measured))
        sleep(self._script.work)
        self._attempts[order] += 1
        times, error = self._script.failures.get(order, (0, None))
        return error if self._attempts[order] <= times else None

    def _after_failure(self, message: Message, error: Exception, failed_at: float) -> bool:
        """Whether that was the last delivery that the policy allows."""
        policy, count = self._script.policy, message.delivery_count
        last = policy.exceeded(count)
        again_in = None if last else policy.delay(count)
        if again_in is not None:
            self._rolled_back[message.body] = (failed_at, again_in)
        self._report(Failed(message.body, f"{type(error).__name__}: {error}", again_in))
        return last

    def _find(self, order: str, dead_letters: Consumer, failed_at: float) -> None:
        letter = dead_letters.receive(timeout=min(5.0, self._left()))
        if letter is None:
            self._tally.complain(f"order {order} used up its deliveries and is not in the dead-letter queue")
            return
        says = letter.properties
        self._report(
            DeadLettered(
                order=letter.body,
                origin=str(says.get("originalDestination", "")),
                deliveries=int(str(says.get("dlqDeliveryCount", 0))),
                cause=str(says.get("dlqDeliveryFailureCause", "")),
                after=monotonic() - failed_at,
            )
        )

    def _left(self) -> float:
        return max(0.0, self._began + self._script.limit - monotonic())

    def _empty(self, connection: Connection) -> None:
        """Take away what a run that did not finish has left at somebody's broker; within some seconds."""
        if not connection.connected:
            return
        end = monotonic() + 3.0
        with connection.session("auto") as session:
            for name in (self._queue, self._dead_letter_queue):
                with session.consumer(name) as consumer:
                    while monotonic() < end and consumer.receive(timeout=0.3) is not None:
                        pass
