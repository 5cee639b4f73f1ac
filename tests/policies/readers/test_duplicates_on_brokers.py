"""Two address settings with the same match: which one counts on the real brokers."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw
from tests.promises.real.started import ARTEMIS, HORNETQ, artemis_with, hornetq_with, running, setting

import redelivery

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(150)]


@pytest.mark.parametrize("name", ["artemis", "hornetq"])
def test_artemis_takes_the_first_and_hornetq_the_last(name: str) -> None:
    prefix = "jms.queue." if name == "hornetq" else ""
    queues = [f"{prefix}{each}" for each in ("again", "FIRST", "LAST")]
    settings = "".join(setting(queues[0], max_delivery_attempts=1, dead_letter_address=each) for each in queues[1:])
    spec, text = (ARTEMIS, artemis_with) if name == "artemis" else (HORNETQ, hornetq_with)
    with running(spec, text(settings, *queues)) as broker:
        url = f"stomp://{broker.host}:{broker.ports['stomp']}"
        with redelivery.connect(url) as connection, connection.session() as session:
            session.producer("again").send("fails")
            with Raw(url) as failing:
                failing.subscribe(queues[0], "client")
                assert failing.next("MESSAGE").body == b"fails"
            expected = "FIRST" if name == "artemis" else "LAST"
            with session.consumer(expected) as consumer:
                message = consumer.receive(timeout=10)
                assert message is not None
                assert message.body == "fails"
