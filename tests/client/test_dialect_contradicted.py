"""A dialect that contradicts the broker's own name: messages written for another broker can be confirmed and lost."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.shell import embedded

import redelivery
from redelivery import ConfigError, ReconnectPolicy, aio
from redelivery.broker import EmbeddedBroker


@pytest.fixture(params=["vm", "stomp", "amqp"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with embedded(request.param) as (_, url):
        yield url


async def aio_dialect(url: str, dialect: str) -> str:
    async with aio.connect(url, dialect=dialect) as connection:
        return connection.dialect


@pytest.mark.parametrize("form", ["{}", "failover:({},{})"])
def test_it_is_refused_in_both_shells_and_over_failover(url: str, form: str) -> None:
    if url.startswith("vm:") and form != "{}":
        pytest.skip("vm:// has no failover")
    whole = form.format(url, url.replace("127.0.0.1", "localhost"))
    for dialect in ("artemis", "rabbitmq", "hornetq", "qpid"):
        said = f"dialect='{dialect}': the broker says that it is redelivery.*insist: dialect='{dialect}!'"
        with pytest.raises(ConfigError, match=said):
            redelivery.connect(whole, dialect=dialect)
        with pytest.raises(ConfigError, match=said):
            asyncio.run(aio_dialect(whole, dialect))


def test_what_does_not_contradict_is_spoken(url: str) -> None:
    """The embedded broker stands in for ActiveMQ; what is unknown is the safest."""
    for dialect in ("auto", "activemq", "embedded", "unknown"):
        with redelivery.connect(url, dialect=dialect):
            pass
        assert asyncio.run(aio_dialect(url, dialect))


def test_one_can_insist(url: str) -> None:
    with redelivery.connect(url, dialect="artemis!") as connection:
        assert connection.dialect == ("activemq" if url.startswith("vm") else "artemis")
    with pytest.raises(ConfigError, match="dialect='auto!' is not known"):
        redelivery.connect(url, dialect="auto!")


@pytest.mark.parametrize("rules", ["artemis", "activemq"])
def test_a_broker_that_obeys_another_one_s_file_has_its_dialect(rules: str, tmp_path: Path) -> None:
    text = {
        "activemq": '<beans><broker xmlns="http://activemq.apache.org/schema/core"/></beans>',
        "artemis": '<configuration><core xmlns="urn:activemq:core"/></configuration>',
    }[rules]
    file = tmp_path / "broker.xml"
    file.write_text(text)
    other = "activemq" if rules == "artemis" else "artemis"
    with EmbeddedBroker(f"dialect-{uuid.uuid4().hex}", stomp_port=0, config=file) as broker:
        for url in (broker.vm_url, broker.stomp_url):
            with redelivery.connect(url, dialect=rules) as connection:
                assert connection.dialect == rules
            with pytest.raises(ConfigError, match="the broker says that it is redelivery"):
                redelivery.connect(url, dialect=other)


def test_a_broker_of_another_kind_is_passed_over_while_there_are_others() -> None:
    """As one that refuses the login."""
    with (
        EmbeddedBroker(f"dialect-{uuid.uuid4().hex}", stomp_port=0) as one,
        redelivery.connect(
            f"failover:(stomp://127.0.0.1:1,{one.stomp_url})?randomize=false",
            dialect="activemq",
            reconnect=ReconnectPolicy(initial_delay=0.01),
        ) as connection,
    ):
        assert connection.dialect == "activemq"
