"""A message carries the context of its send, and its redelivery is linked to its first delivery, on every pair."""

from __future__ import annotations

from tests.client.shell import receive
from tests.conformance.stage import QUICK, Stage
from tests.otel.collected import Collected, context, linked

import redelivery
from redelivery import AckMode


def test_spans_of_a_message_are_linked(stage: Stage) -> None:
    seen = Collected()
    with (
        redelivery.connect(stage.pair.url, observer=seen.observer, redelivery_policy=QUICK) as connection,
        connection.session(AckMode.CLIENT) as session,
    ):
        session.producer(stage.queue).send("two chairs", properties={"ref": stage.queue})
        consumer = session.consumer(stage.queue)
        receive(consumer)
        session.recover(ValueError("no stock"))
        message = receive(consumer)
        message.acknowledge()
    assert str(message.properties["traceparent"]).startswith("00-")
    send, first, recovered, again, acknowledged = seen.spans
    queue = stage.queue
    assert seen.names == [f"{name} {queue}" for name in ("send", "receive", "recover", "receive", "acknowledge")]
    assert linked(first) == [context(send).span_id]
    assert linked(again) == [context(send).span_id, context(first).span_id]
    assert (recovered.attributes or {})["messaging.operation.type"] == "settle"
    system = (acknowledged.attributes or {})["messaging.system"]
    assert system == {"artemis": "activemq", "embedded": "redelivery"}.get(connection.dialect, connection.dialect)
