"""What an embedded broker with a store has answered is there after a kill -9, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError
from redelivery.testing import fast_forward

PROGRAM = Path(__file__).with_name("program.py")


def killed(store: Path, mode: str, *steps: str, config: Path | None = None) -> None:
    """Run the steps in a process of their own, each to its end, and kill it."""
    command = [sys.executable, str(PROGRAM), str(store), mode, *([str(config)] if config else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(ConfigError, match="in use by another broker"):
            EmbeddedBroker("second", store=store).start()
        for step in steps:
            process.stdin.write(step + "\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith("done"), step
        process.kill()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def bodies(store: Path, queue: str = "q") -> list[object]:
    with EmbeddedBroker("again", store=store) as broker:
        return [message.body for message in broker.messages(queue)]


def test_what_was_sent_is_there_in_order(store: Path) -> None:
    killed(store, "auto", "producer.send('a')", "producer.send({'b': 1})", "producer.send(b'c')")
    assert bodies(store) == ["a", {"b": 1}, b"c"]


def test_a_busy_store_whose_log_has_its_full_size_is_there_too(store: Path) -> None:
    killed(store, "auto", "[producer.send(str(number)) for number in range(40)]")
    assert store.with_name("shop.db-wal").stat().st_size > 16_000_000
    assert bodies(store) == [str(number) for number in range(40)]


def test_what_was_acknowledged_is_gone(store: Path) -> None:
    killed(store, "auto", "producer.send('a')", "producer.send('b')", "consume()")
    assert bodies(store) == ["b"]


def test_a_committed_transaction_is_there_and_an_open_one_is_not(store: Path) -> None:
    killed(
        store,
        "transacted",
        "producer.send('a')",
        "session.commit()",
        "consume()",
        "producer.send('b')",
        "session.commit()",
        "consume()",
        "producer.send('c')",
    )
    assert bodies(store) == ["b"]


def test_a_non_persistent_message_is_not_kept(store: Path) -> None:
    killed(store, "auto", "producer.send('a', persistent=False)", "producer.send('b')")
    assert bodies(store) == ["b"]


def test_a_count_is_kept_when_the_delivery_was_released(store: Path) -> None:
    killed(store, "client", "producer.send('a')", "consume()", "session.close()")
    with EmbeddedBroker("counts", store=store) as broker, redelivery.connect(broker.vm_url) as connection:
        message = connection.session().consumer("q").receive(timeout=5)
        assert message is not None
        assert (message.body, message.delivery_count, message.redelivered) == ("a", 2, True)


@pytest.mark.promise("artemis-count-persistence")
@pytest.mark.promise("hornetq-count-persistence")
@pytest.mark.parametrize(
    ("urn", "asked", "count"),
    [("activemq", "", 1), ("activemq", "true", 2), pytest.param("hornetq", "true", 2, marks=pytest.mark.long_form)],
)
def test_a_delivery_that_was_under_way_counts_where_the_broker_s_file_says_so(
    store: Path, tmp_path: Path, urn: str, asked: str, count: int
) -> None:
    element = f"<persist-delivery-count-before-delivery>{asked}</persist-delivery-count-before-delivery>"
    config = tmp_path / "broker.xml"
    core = f'<core xmlns="urn:{urn}:core">{element if asked else ""}</core>'
    config.write_text(f'<configuration xmlns="urn:{urn}">{core}</configuration>', encoding="utf-8")
    killed(store, "client", "producer.send('a')", "consume()", config=config)
    with EmbeddedBroker("again", store=store, config=config) as broker, redelivery.connect(broker.vm_url) as connection:
        message = connection.session().consumer("q").receive(timeout=5)
        assert message is not None
        assert (message.delivery_count, message.redelivered) == (count, count > 1)


def test_a_delayed_message_is_delivered_once(store: Path) -> None:
    killed(
        store, "auto", "broker.send('q', 'later', delivery_delay=3600)", "broker.send('q', 'soon', delivery_delay=0.05)"
    )
    with EmbeddedBroker("again", store=store) as broker:
        broker.wait_for("q", depth=1)
        assert [message.body for message in broker.messages("q")] == ["soon"]
        broker.kill()
    with EmbeddedBroker("again", store=store) as broker, fast_forward(broker) as clock:
        assert [message.body for message in broker.messages("q")] == ["soon"]
        clock.advance(3600)
        assert [message.body for message in broker.messages("q")] == ["soon", "later"]


@pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
def test_what_a_consumer_has_seen_when_the_broker_is_closed_counts(store: Path, url: str) -> None:
    with EmbeddedBroker("closed", store=store, stomp_port=0, amqp_port=0) as broker:
        broker.send("q", "a")
        connection = redelivery.connect(getattr(broker, url))
        assert connection.session("client").consumer("q").receive(timeout=5) is not None
        broker.close()
        connection.close()
    with EmbeddedBroker("again", store=store) as again:
        assert again.messages("q")[0].delivery_count == 2
