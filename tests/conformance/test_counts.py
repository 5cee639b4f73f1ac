"""Counts for the next client, after a close and after a lost connection; unseen messages of the prefetch among them."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from tests.conformance.stage import QUICK, Stage, receive_all
from tests.traces.relay import Relay

import redelivery
from redelivery import AckMode, JMSError

FIRST, AGAIN = (1, False), (2, True)
BODIES = ["seen", "seen too", "unseen", "unseen too"]
LOCALLY = pytest.mark.parametrize("redeliveries", [0, 2])


@LOCALLY
def test_counts_after_a_close(stage: Stage, redeliveries: int) -> None:
    """What was redelivered within the session is one delivery for the broker, so the next client counts 2."""
    stage.send(*BODIES)
    session, consumer = stage.consuming(AckMode.CLIENT, prefetch=10)
    receive_all(consumer, 2)
    for _ in range(redeliveries):
        session.recover()
        assert {message.redelivered for message in receive_all(consumer, 2)} == {True}
    session.close()
    seen = AGAIN if stage.pair.can("redelivered after a close") else FIRST
    unseen = FIRST if stage.pair.can("the count of an unseen message") else AGAIN
    assert counts(stage) == dict(zip(BODIES, (seen, seen, unseen, unseen), strict=True))


@LOCALLY
@pytest.mark.needs("a lost connection")
def test_counts_after_a_lost_connection(stage: Stage, redeliveries: int) -> None:
    stage.send(*BODIES)
    url = urlsplit(stage.pair.url)
    assert url.hostname is not None
    assert url.port is not None
    relay = Relay(url.hostname, url.port)
    try:
        login, at, _ = url.netloc.rpartition("@")
        errors: list[JMSError] = []
        through = f"{url.scheme}://{login}{at}127.0.0.1:{relay.port}"
        with redelivery.connect(through, redelivery_policy=QUICK, exception_listener=errors.append) as connection:
            session = connection.session(AckMode.CLIENT)
            consumer = session.consumer(stage.queue, prefetch=10)
            receive_all(consumer, 2)
            for _ in range(redeliveries):
                session.recover()
                receive_all(consumer, 2)
            relay.cut()
    finally:
        relay.cut()
    found = counts(stage)
    assert sorted(found) == sorted(BODIES)
    if stage.pair.can("counts after a lost connection"):
        assert [found[body] for body in BODIES[:2]] == [AGAIN, AGAIN]


def counts(stage: Stage) -> dict[str, tuple[int, bool]]:
    """Count and flag of each message for the next client; each comes once."""
    left = stage.left(at_least=len(BODIES))
    assert len(left) == len(BODIES)
    return {message.body: (message.delivery_count, message.redelivered) for message in left}
