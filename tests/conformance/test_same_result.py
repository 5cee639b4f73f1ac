"""Rolled back until it is exhausted, then a dead letter: one result, whatever the pair."""

from __future__ import annotations

from time import monotonic

from tests.conformance.stage import Stage, in_time, receive

from redelivery import AckMode, Message, RedeliveryPolicy, SharedDeadLetterStrategy

POLICY = RedeliveryPolicy(
    maximum_redeliveries=3,
    initial_redelivery_delay=0.1,
    redelivery_delay=0.1,
    use_exponential_back_off=True,
    back_off_multiplier=2.0,
)
DELAYS = (0.1, 0.2, 0.4)
EARLY, LATE = 0.03, 0.5  # seconds that a delay may be off

DELIVERIES = [("bad", 1, False), ("bad", 2, True), ("bad", 3, True), ("bad", 4, True), ("good", 1, False)]
LETTER = {
    "body": "bad",
    "type": "order",
    "correlation id": "c-1",
    "persistent": True,
    "colour": "red",
    "number": "7",
    "originalExpiration": "0",
    "dlqDeliveryCount": "4",
}


def test_rollback_to_exhaustion_and_dead_letter_are_the_same_on_all_pairs(stage: Stage) -> None:
    """Deliveries, counts, delays, and one dead letter with body, properties, origin and cause; nothing else is left.

    Where there are no transactions the application recovers instead of rolling back.
    """
    in_time(DELAYS, lambda: exhausted(stage), EARLY, LATE)


def exhausted(stage: Stage) -> list[float]:
    """All that is said above but for the delays, which are measured; in seconds."""
    stage.send("bad", properties={"colour": "red", "number": 7}, type="order", correlation_id="c-1")
    stage.send("good")
    mode = AckMode.TRANSACTED if stage.pair.can("transactions") else AckMode.CLIENT
    strategy = SharedDeadLetterStrategy()
    session, consumer = stage.consuming(mode, redelivery_policy=POLICY, dead_letter_strategy=strategy)
    deliveries, delays, failed_at = [], [], 0.0
    while (message := receive(consumer)).body == "bad":
        deliveries.append(seen(message))
        if failed_at:
            delays.append(monotonic() - failed_at)
        failed_at = monotonic()
        cause = ValueError("no such account")
        session.rollback(cause=cause) if session.transacted else session.recover(cause=cause)
    deliveries.append(seen(message))
    session.commit() if session.transacted else message.acknowledge()
    session.close()

    assert deliveries == DELIVERIES
    (letter,) = stage.dead_letters(at_least=1)
    assert described(letter) == {**LETTER, "originalDestination": f"queue://{stage.said(stage.queue)}"}
    cause_reported = str(letter.properties["dlqDeliveryFailureCause"])
    assert cause_reported.startswith("Delivery[4] exceeds redelivery policy limit:")
    assert "cause:" in cause_reported
    assert "no such account" in cause_reported
    assert (stage.left(), stage.dead_letters()) == ([], [])
    return delays


def seen(message: Message) -> tuple[str, int, bool]:
    return (message.body, message.delivery_count, message.redelivered)


def described(letter: Message) -> dict[str, object]:
    """What an application reads of it; properties as text, since STOMP carries nothing else."""
    properties = ("colour", "number", "originalExpiration", "dlqDeliveryCount", "originalDestination")
    return {
        "body": letter.body,
        "type": letter.type,
        "correlation id": letter.correlation_id,
        "persistent": letter.persistent,
        **{name: str(letter.properties[name]) for name in properties},
    }
