"""What a session has shown and released is flagged as redelivered, on real brokers."""

from __future__ import annotations

import pytest
from tests.transports.live import Place
from tests.transports.scripted import TIMEOUT
from tests.transports.test_stomp_dialect_facts import broker, on, place  # noqa: F401  # fixtures


@on("activemq", "embedded", "artemis", "hornetq", "rabbitmq")
@pytest.mark.parametrize("mode", ["transacted", "client", "individual"])
def test_what_a_closed_session_has_shown_is_flagged_in_the_next_one_of_its_connection(
    place: Place,  # noqa: F811  # the fixture
    mode: str,
) -> None:
    place.fill("shown", "unseen")
    with place.connect() as connection:
        with connection.session(mode) as session:
            first = session.consumer(place.queue).receive(TIMEOUT)
            assert first is not None
            assert (first.body, first.redelivered) == ("shown", False)
        with connection.session(mode) as session:
            consumer = session.consumer(place.queue)
            found = {message.body: message for _ in range(2) if (message := consumer.receive(TIMEOUT)) is not None}
            assert (found["shown"].redelivered, found["shown"].delivery_count) == (True, 2)
            if connection.dialect in ("artemis", "hornetq"):
                assert not found["unseen"].redelivered
            for message in found.values():
                message.acknowledge()
            if mode == "transacted":
                session.commit()


@on("activemq", "embedded", "artemis", "hornetq", "rabbitmq")
def test_what_a_session_has_shown_and_released_is_flagged_when_it_is_redelivered(
    place: Place,  # noqa: F811  # the fixture
) -> None:
    """Artemis and HornetQ deliver it as new; JMS requires the flag of what the same session has delivered before."""
    place.fill("shown", "shown too", "unseen")
    with place.connect() as connection, connection.session("transacted") as session:
        consumer = session.consumer(place.queue)
        for _ in range(2):
            assert consumer.receive(TIMEOUT) is not None
        consumer.close()
        session.rollback()
        again = session.consumer(place.queue)
        found = [message for _ in range(3) if (message := again.receive(TIMEOUT)) is not None]
        assert [(each.body, each.redelivered) for each in found][:2] == [("shown", True), ("shown too", True)]
        if connection.dialect in ("artemis", "hornetq"):
            assert [each.delivery_count for each in found] == [2, 2, 1]
        session.commit()
        assert found[0].redelivered  # as long as the message is looked at
        session.producer(place.queue).send("new")
        session.commit()
        message = again.receive(TIMEOUT)
        assert message is not None
        assert (message.body, message.redelivered) == ("new", False)
        session.commit()
