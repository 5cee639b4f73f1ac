"""The memory that receiver=driver needs for large bodies: three times its 64 MiB, and what was imported.

Over STOMP the embedded broker's window counts messages only: 100 of them more may have come.
"""

from __future__ import annotations

import uuid

import pytest
from benchmarks.machine import in_process
from benchmarks.spark_bounds import MIB, send

from redelivery.broker import EmbeddedBroker

MOST = {"amqp": 3 * 64 + 150, "stomp": 3 * 64 + 100 + 150}  # MiB, at the peak of a process


@pytest.mark.long_form
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_bodies_of_a_mib(broker: EmbeddedBroker, protocol: str) -> None:
    url = broker.stomp_url if protocol == "stomp" else broker.amqp_url
    queue = f"large.{uuid.uuid4().hex[:8]}"
    send(url, queue, 250, MIB)
    (found,) = in_process(f"spark_bounds.one('large', {url!r}, {queue!r})").values()
    assert found["messages"] == 250
    assert found["rss_peak_mib"] <= MOST[protocol]
