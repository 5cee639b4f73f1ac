"""The demo: eight orders, a handler that fails with some of them, and what a transacted session makes of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from secrets import token_hex
from time import monotonic, sleep
from typing import Any, Final, NamedTuple

import redelivery
from redelivery import Connection, Consumer, JMSError, RedeliveryPolicy, Session, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.demo.story import NEXT, Order, Shows, Story, StoryStep
from redelivery.client.options import ConnectionKeywords
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE

ALWAYS: Final = 1_000_000
_FAILURES: Final = {
    "1002": (1, TimeoutError("bank was silent")),
    "1004": (ALWAYS, LookupError("no such article")),
    "1005": (2, ConnectionError("stock is offline")),
    "1007": (ALWAYS, ValueError("price is negative")),
}
_POLICY: Final = RedeliveryPolicy(
    maximum_redeliveries=3, initial_redelivery_delay=0.5, use_exponential_back_off=True, back_off_multiplier=2.0
)
_CODE: Final = """\
message = consumer.receive()
try:
    handle(message)                  # some orders fail once, some always
    session.commit()
except Exception as error:
    session.rollback(cause=error)    # again after {delays} s
                                     # {times} failures: dead-letter queue"""


class Script(NamedTuple):
    """The script that is played; times in seconds."""

    orders: tuple[str, ...] = tuple(map(str, range(1001, 1009)))
    failures: Mapping[str, tuple[int, Exception]] = _FAILURES  # how often the handler fails, and with which error
    policy: RedeliveryPolicy = _POLICY
    work: float = 0.25  # of the handler
    limit: float = 18.0  # when the demo gives up


DEFAULT: Final = Script()


class Demo:
    """One run of a script, reported in steps; ``spark`` reads the dead letters of a broker's queue, and counts them."""

    def __init__(
        self, show: Shows, script: Script = DEFAULT, *, spark: Callable[[str, str], int] | None = None
    ) -> None:
        self._show, self._spark, self._script = show, spark, script
        self._queue, self._dead_letter_queue = "orders", DEFAULT_DEAD_LETTER_QUEUE

    def run(self, url: str | None = None, options: ConnectionKeywords | None = None) -> Mapping[str, Any]:
        """Play it on the broker of ``url``, in queues of its own; None: on an embedded broker, over STOMP.

        ``options``: what `redelivery.connect` takes beside the URL, and the demo has none of. Returns the summary.
        Raises JMSError: the broker cannot be reached, or failed meanwhile.
        """
        script, own = self._script, url is None
        with ExitStack() as stack:
            if url is None:
                url = stack.enter_context(EmbeddedBroker("redelivery-demo", stomp_port=0)).stomp_url
            else:
                name = f"redelivery.demo.{token_hex(4)}"
                self._queue, self._dead_letter_queue = f"{name}.orders", f"{name}.DLQ"
            self._story = Story(self._show, script.orders, self._queue, script.policy)
            given: ConnectionKeywords = {"connect_timeout": 5, **(options or {})}
            given |= {"request_timeout": 5, "close_timeout": 5, "observer": self._story.observe}
            given["redelivery_policy"] = script.policy
            given["dead_letter_strategy"] = SharedDeadLetterStrategy(self._dead_letter_queue)
            connection = stack.enter_context(redelivery.connect(url, **given))
            if not own:
                stack.push(lambda _, error, __: self._empty(connection, error))
            self._play(connection, "embedded broker" if own else "")
            end = self._summary()
            if self._spark is not None and not end["problems"]:
                read, letters = self._spark(url, self._dead_letter_queue), end["dead_letters"]
                if read != letters:
                    raise JMSError(f"Spark read {read} of {letters} dead letters")
        return end

    def _play(self, connection: Connection, broker: str) -> None:
        orders, policy, who = self._script.orders, self._script.policy, connection.metadata
        broker = broker or f"{who.provider_name} {who.provider_version}".strip()
        delays = [policy.delay(n) for n in range(1, policy.maximum_redeliveries + 1)]
        fields: dict[str, Any] = {
            "broker": broker,
            "protocol": who.protocol,
            "url": connection.url,
            "queue": self._queue,
        }
        fields |= {"dead_letter_queue": self._dead_letter_queue, "orders": list(orders), "delays": delays}
        where = f"{broker} over {who.protocol}, {connection.url}: {len(orders)} orders in queue {self._queue}"
        code = _CODE.format(delays=", then ".join(f"{delay:g}" for delay in delays), times=len(delays) + 1)
        self._show(StoryStep("started", fields, where, title="redelivery demo", code=code))
        with connection.session("auto") as session, session.producer(self._queue) as producer:
            for order in orders:
                producer.send(order)  # returns when the broker has confirmed it
                self._story.report()
        # CLIENT: what is read from the dead-letter queue stands there until the end
        with connection.session("transacted") as session, connection.session("client") as reader:
            self._consume(session, reader)
            if self._spark is None:
                reader.acknowledge()  # else they are released

    def _consume(self, session: Session, reader: Session) -> None:
        consumer, dead_letters = session.consumer(self._queue), reader.consumer(self._dead_letter_queue)
        story, script = self._story, self._script
        while any(not order.processed and not order.letters for order in story.orders.values()):
            message = consumer.receive(timeout=self._left())
            if message is None:
                story.problems.append(f"not finished after {script.limit:g} s, and nothing more was delivered")
                return
            story.report()
            order = story.orders[message.body]
            sleep(script.work)  # the application
            times, error = script.failures.get(message.body, (0, None))
            if error is None or order.failures >= times:
                session.commit()
                story.report()
                continue
            order.failed_at = monotonic()
            session.rollback(cause=error)
            story.report()
            if script.policy.exceeded(message.delivery_count):
                self._find(order, dead_letters)
        if consumer.receive(timeout=0.2) is not None or dead_letters.receive(timeout=0.2) is not None:
            story.problems.append("a queue has more although everything was done")

    def _find(self, order: Order, dead_letters: Consumer) -> None:
        letter = dead_letters.receive(timeout=min(5.0, self._left()))
        if letter is None:
            return  # it will not add up
        name, says, after = letter.body, letter.properties, monotonic() - order.failed_at
        count, origin = int(str(says.get("dlqDeliveryCount", 0))), str(says.get("originalDestination", ""))
        cause = str(says.get("dlqDeliveryFailureCause", ""))
        self._story.orders[name].letters.append((count, origin, bool(cause)))
        fields = {"order": name, "origin": origin, "deliveries": count, "cause": cause, "after": after}
        short = re.sub(r"\{[^{}]*\}", "{…}", cause)  # without the policy that it repeats
        text = f"{name}  a dead letter after {after * 1000:.0f} ms, from {origin}:\n      {short}"
        self._show(StoryStep("dead_lettered", fields, text, "red", "dead", NEXT))

    def _summary(self) -> Mapping[str, Any]:
        story, orders = self._story, self._story.orders.values()
        counts = {
            "sent": sum(order.sent for order in orders),
            "processed": sum(order.processed for order in orders),
            "dead_letters": sum(len(order.letters) for order in orders),
            "deliveries": sum(len(order.deliveries) for order in orders),
            "redeliveries": sum(each > 1 for order in orders for each in order.deliveries),
            "worst_lateness": story.lateness,
        }
        text = (
            "{sent} orders sent = {processed} processed + {dead_letters} dead letters\n{deliveries} deliveries, "
            "{redeliveries} of them redeliveries, at most {worst_lateness:.3f} s later than planned"
        )
        story.problems += contradictions(self._script, story.orders, f"queue://{self._queue}")
        return story.end("summary", counts, text, "none lost, none processed twice, none too early")

    def _left(self) -> float:
        return max(0.0, self._story.began + self._script.limit - monotonic())

    def _empty(self, connection: Connection, error: BaseException | None) -> None:
        """Take away what a run that did not finish has left at somebody's broker; within some seconds."""
        try:
            if connection.connected:
                with connection.session("auto") as session:
                    for name in (self._queue, self._dead_letter_queue):
                        consumer, end = session.consumer(name), monotonic() + 1.5
                        while monotonic() < end and consumer.receive(timeout=0.3) is not None:
                            pass
        except JMSError as second:
            if error is None:
                raise
            error.add_note(f"its queues could not be emptied: {second}")


def contradictions(script: Script, orders: Mapping[str, Order], origin: str) -> list[str]:
    """The orders whose end must not be so; ``origin``: what each dead letter must name."""
    found, limit = [], script.policy.maximum_redeliveries + 1
    for name, order in orders.items():
        failures = min(limit, script.failures.get(name, (0, None))[0])
        dead = failures == limit
        deliveries = list(range(1, failures + (1 if dead else 2)))
        planned = Order(1, deliveries, int(not dead), failures, [(limit, origin, True)] if dead else [])
        if order != planned:
            found.append(f"order {name}: {order} instead of {planned}")
    return found
