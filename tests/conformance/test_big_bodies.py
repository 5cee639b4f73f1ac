"""Bodies of 1, 16 and 64 MiB, there and back."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage

from redelivery import AckMode, ResourceAllocationError, UnsupportedError

PATIENCE = 60.0  # seconds, for a busy machine; on an idle one it is about one


@pytest.mark.needs("large bodies", refused=UnsupportedError)
@pytest.mark.timeout(240)
@pytest.mark.parametrize("mebibytes", [1, 16, pytest.param(64, marks=pytest.mark.long_form)])
@pytest.mark.parametrize("kind", [str, bytes])
def test_big_body_arrives_as_sent(stage: Stage, kind: type, mebibytes: int) -> None:
    size = mebibytes << 20
    body: str | bytes = "äbcdefg" * (size // 8) if kind is str else bytes(range(256)) * (size // 256)
    options = {"request_timeout": PATIENCE, "close_timeout": PATIENCE}
    producer = stage.session(AckMode.AUTO, **options).producer(stage.queue)
    if (largest := stage.pair.kind.largest) is not None and size >= largest:
        with pytest.raises(ResourceAllocationError, match=f"than the {largest} that the broker takes"):
            producer.send(body)
        producer.send("small")  # on the same link
        assert stage.left_bodies(at_least=1) == ["small"]
        return
    producer.send(body)
    session, consumer = stage.consuming(AckMode.CLIENT, **options)
    message = consumer.receive(timeout=PATIENCE)
    assert message is not None
    same = type(message.body) is kind and message.body == body  # nobody wants to read the difference
    assert same
    message.acknowledge()
    session.close()
    assert stage.left() == []
    stage.send("small")  # Classic keeps the last message of a queue in memory as long as there is the queue
    assert stage.left_bodies(at_least=1) == ["small"]
