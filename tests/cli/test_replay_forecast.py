"""`redelivery dlq replay` says before it begins what will happen, and skips what was replayed too often."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, bodies, fail, run, url

import redelivery
from redelivery import RedeliveryPolicy

__all__ = ["url"]  # a fixture
embedded = pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)
one = pytest.mark.parametrize("url", LOOKED_AT[:1], indirect=True)
POLICY = RedeliveryPolicy(
    initial_redelivery_delay=0.5, use_exponential_back_off=True, back_off_multiplier=2.0, redelivery_delay=0.5
)
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=0)
ADDRESSES = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><address-settings>
<address-setting match="#"><dead-letter-address>{}</dead-letter-address><max-delivery-attempts>4</max-delivery-attempts>
<redelivery-delay>2000</redelivery-delay></address-setting></address-settings></core></configuration>"""


@pytest.fixture
def letters(url: str) -> str:
    del url
    return f"forecast.{uuid4().hex[:8]}"


def put(url: str, letters: str, *, policy: RedeliveryPolicy | None = None, **properties: Any) -> None:
    """A dead letter of that queue's ".orders", which names the policy by which it failed."""
    with redelivery.connect(url) as connection, connection.session() as session:
        said: dict[str, Any] = {"originalDestination": f"queue://{letters}.orders"}
        if policy is not None:
            cause = f"Delivery[7] exceeds redelivery policy limit:{policy}, cause:ValueError: x"
            said["dlqDeliveryFailureCause"] = cause
        session.producer(letters).send("x", properties=said | properties)


def foreseen(url: str, letters: str, *arguments: str) -> tuple[list[dict[str, Any]], list[str]]:
    done = run(url, "dlq", "replay", letters, "--dry-run", "--json", *arguments)
    found = json.loads(done.stdout)["forecast"]
    assert isinstance(found, list)
    return found, [each for each in done.stderr.splitlines() if "tried" in each]


@pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
def test_it_says_how_often_each_will_be_tried_and_that_it_is_back_then(url: str, letters: str) -> None:
    put(url, letters, policy=POLICY)
    put(url, letters, policy=POLICY)
    (found,), lines = foreseen(url, letters)
    assert lines == ["each will be tried 7 times over 31.5 s, then be back here"]
    assert (found["letters"], found["attempts"], found["back"]) == (2, 7, True)
    assert (found["seconds"], found["target"]) == (pytest.approx(31.5), f"queue://{letters}.orders")
    assert found["text"] == lines[0]
    assert lines[0] in run(url, "dlq", "replay", letters, code=2).stderr  # before anybody is asked
    done = run(url, "dlq", "replay", letters, "--yes")
    assert lines[0] in done.stderr
    assert done.stdout == "2 replayed\n"
    bodies(url, f"{letters}.orders")


@one
def test_what_is_not_the_same_of_all_is_said_of_each_target(url: str, letters: str) -> None:
    put(url, letters, policy=POLICY)
    put(url, letters, policy=AT_ONCE)
    put(url, letters, policy=RedeliveryPolicy(maximum_redeliveries=-1))
    put(url, letters, policy=RedeliveryPolicy(maximum_redeliveries=3, redelivery_delay=0, initial_redelivery_delay=0))
    _, lines = foreseen(url, letters)
    assert sorted(each.partition(": ")[2] for each in lines) == [
        "each will be tried 4 times at once, then be back here",
        "each will be tried 7 times over 31.5 s, then be back here",
        "each will be tried once, then be back here",
        "each will be tried without an end, until somebody handles it",
    ]
    assert {each.partition(": ")[0] for each in lines} == {f"1 to queue://{letters}.orders"}


@one
def test_collision_avoidance_gives_bounds(url: str, letters: str) -> None:
    put(url, letters, policy=RedeliveryPolicy(use_collision_avoidance=True, collision_avoidance_percent=50))
    (found,), (line,) = foreseen(url, letters)
    assert line == "each will be tried 7 times over 3.5 s to 8.495 s, then be back here"
    assert (found["least"], found["most"]) == (pytest.approx(3.5, abs=0.1), pytest.approx(8.5, abs=0.1))


@embedded
def test_the_brokers_file_and_the_client_say_it(url: str, letters: str, tmp_path: Path) -> None:
    put(url, letters)
    broker, elsewhere = tmp_path / "broker.xml", tmp_path / "elsewhere.xml"
    broker.write_text(ADDRESSES.format(letters))
    elsewhere.write_text(ADDRESSES.format("other"))
    (found,), (line,) = foreseen(url, letters, "--config", str(broker))
    assert line == "each will be tried 4 times over 6 s, then be back here"
    assert found["by"] == str(broker)
    _, (line,) = foreseen(url, letters, "--config", str(elsewhere))
    assert line == "each will be tried 4 times over 6 s, then be on other, and not here"
    client = (
        "stomp://localhost:61613?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.redeliveryDelay=500"
    )
    client += "&jms.redeliveryPolicy.initialRedeliveryDelay=500"
    _, (line,) = foreseen(url, letters, "--client", client)
    assert line == "each will be tried 3 times over 1 s, then be back here"
    _, (line,) = foreseen(url, letters, "--client", client, "--config", str(elsewhere))
    assert line == "each will be tried 3 times over 1 s, then be back here"  # the client gives up first
    _, (line,) = foreseen(url, letters, "--client", client, "--to", "another")
    assert line == "each will be tried 3 times over 1 s, then be on the broker's dead-letter queue"


@one
def test_what_removes_a_letter_is_said(url: str, letters: str, tmp_path: Path) -> None:
    put(url, letters)
    file = tmp_path / "broker.xml"
    file.write_text(ADDRESSES.replace("<dead-letter-address>{}</dead-letter-address>", ""))
    _, (line,) = foreseen(url, letters, "--config", str(file))
    assert line.startswith("each will be tried 4 times over 6 s, then be removed (")


@pytest.mark.parametrize("url", ["stomp-activemq", "amqp-activemq"], indirect=True)
def test_where_nothing_is_known_one_line_says_so(url: str, letters: str) -> None:
    put(url, letters)
    put(url, letters)
    found, lines = foreseen(url, letters)
    assert [line for line in lines if "is not known: name the broker's configuration by --config" in line] == lines
    assert len(lines) == 1
    assert (found[0]["by"], found[0]["attempts"]) == (None, None)
    bodies(url, letters)


@one
def test_a_file_that_cannot_be_read_is_wrong_usage(url: str, letters: str) -> None:
    put(url, letters)
    for option in ("--config", "--client"):
        run(url, "dlq", "replay", letters, "--yes", option, "/nowhere/broker.xml", code=2)
    assert bodies(url, letters) == ["x"]


@pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
def test_what_was_replayed_three_times_and_is_back_is_skipped(url: str, letters: str, receipts: Path) -> None:
    orders = f"{letters}.orders"
    fail(url, orders, letters, ValueError("always"))
    for _ in range(3):
        assert run(url, "dlq", "replay", letters, "--yes").stdout == "1 replayed\n"
        _fail_again(url, orders, letters)
    run(url, "dlq", "replay", letters, "--yes", "--max-replays", "0")
    latest = max(receipts.iterdir(), key=lambda each: each.stat().st_mtime_ns)
    run(url, "dlq", "undo", str(latest))  # which was no replay, and keeps what was counted before
    (shown,) = map(json.loads, run(url, "dlq", "ls", letters, "--json").stdout.splitlines())
    assert shown["dead_letter"]["passport"]["exception"] == "ValueError"
    put(url, letters, policy=AT_ONCE)
    done = run(url, "dlq", "replay", letters, "--yes", "--json")
    found = json.loads(done.stdout)
    assert (found["letters"], found["stay"], found["skipped"]) == (1, 0, 1)
    assert "1 skipped: replayed as often as --max-replays allows, and back" in done.stderr
    receipt = max(receipts.iterdir(), key=lambda each: each.stat().st_mtime_ns)
    assert json.loads(run(url, "dlq", "verify", str(receipt), "--json").stdout)["skipped"] == 1
    assert "1 skipped: they had been replayed too often" in run(url, "dlq", "verify", str(receipt)).stdout
    assert len(bodies(url, orders)) == 1
    assert "no letter can leave" in run(url, "dlq", "replay", letters, "--yes", code=1).stderr
    put(url, letters, policy=AT_ONCE)
    assert run(url, "dlq", "replay", letters, "--yes").stdout == "1 replayed, 1 skipped\n"
    assert run(url, "dlq", "replay", letters, "--yes", "--max-replays", "0").stdout == "1 replayed\n"
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(orders)
        counts = [consumer.receive(timeout=5) for _ in range(2)]
        assert sorted(str(each and each.properties["redeliveryReplays"]) for each in counts) == ["1", "4"]
        assert [each and each.dead_letter for each in counts] == [None, None]


@one
@pytest.mark.parametrize("count", ["²", "9" * 5000, "-1", "x", "", "true"], ids=lambda each: each[:4])
def test_a_count_that_is_none_is_none(url: str, letters: str, count: str) -> None:
    put(url, letters, redeliveryReplays=count)
    assert run(url, "dlq", "replay", letters, "--yes").stdout == "1 replayed\n"


@one
def test_a_limit_of_ones_own(url: str, letters: str) -> None:
    put(url, letters, redeliveryReplays="1")
    assert "no letter can leave" in run(url, "dlq", "replay", letters, "--yes", "--max-replays", "1", code=1).stderr
    run(url, "dlq", "replay", letters, "--yes", "--max-replays", "-1", code=2)
    assert run(url, "dlq", "edit", letters, "--limit", "1", "--set", "body=y", "--yes").stdout.endswith(
        "1 edited and replayed\n"
    )


@pytest.mark.parametrize("url", ["stomp-artemis", "stomp-hornetq"], indirect=True)
def test_where_nobody_can_look_the_run_ends_and_says_why(url: str, letters: str) -> None:
    put(url, letters, redeliveryReplays="3")
    done = run(url, "dlq", "replay", letters, "--yes", code=1)
    assert "was replayed 3 times, and is here again" in done.stderr
    assert "no letter can be passed over without a look at them" in done.stderr
    assert bodies(url, letters) == ["x"]


def _fail_again(url: str, orders: str, letters: str) -> None:
    strategy = redelivery.SharedDeadLetterStrategy(letters)
    with (
        redelivery.connect(url, redelivery_policy=AT_ONCE, dead_letter_strategy=strategy) as connection,
        connection.session("client") as session,
    ):
        consumer = session.consumer(orders)
        assert consumer.receive(timeout=10)
        session.recover(ValueError("always"))
        assert consumer.receive(timeout=0.1) is None
