"""A list that waits for more makes room in the window only where it may be used up: that takes frames."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from tests.run.gate import Gate

import redelivery
from redelivery.broker import EmbeddedBroker


@pytest.mark.parametrize(("prefetch", "makes_room"), [(20, False), (8, True)])
def test_frames_leave_before_the_wait_only_where_half_of_the_window_is_used(prefetch: int, makes_room: bool) -> None:
    with EmbeddedBroker("room", stomp_port=0) as broker:
        at = urlsplit(broker.stomp_url)
        with Gate(str(at.hostname), int(at.port or 0)) as gate:
            gate.passed = []
            with redelivery.connect(f"stomp://127.0.0.1:{gate.port}", prefetch=prefetch) as connection:
                for body in "abcdef":
                    broker.send("orders", body)
                consumer = connection.session().consumer("orders")
                assert [each.body for each in consumer.receive_many(8, 0.2)] == list("abcdef")
            sent = b"".join(bytes(up) for up, _ in gate.passed)
    assert (b"BEGIN\n" in sent) == makes_room
    assert b"ACK\n" in sent
