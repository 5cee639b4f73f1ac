"""Groups of letters with passports: by the function that raised, and by release, on each broker."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, bodies, run, url

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy

__all__ = ["url"]  # a fixture
on_each = pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
HANDLER = """{lines}
class {kind}(Exception):
    pass


def handle_{number}(order):
{inner}
    raise {kind}(f"{text}")
"""


@pytest.fixture
def names() -> tuple[str, str]:
    name = f"passports.{uuid4().hex[:8]}"
    return name, f"{name}.DLQ"


def defect(number: int, *, lines: int = 0, text: str = "order {order} is odd") -> Any:
    """A program with one defect, which is on another line where it begins with so many empty ones."""
    source = HANDLER.format(
        lines="\n" * lines, kind=f"Defect{number % 5}Error", number=number, inner="    pass\n" * (lines % 7), text=text
    )
    module: dict[str, Any] = {"__name__": "shop.orders"}
    exec(compile(source, f"/app/{lines}/shop/orders.py", "exec"), module)  # noqa: S102  # the test's own
    return module[f"handle_{number}"]


def fail(url: str, names: tuple[str, str], *defects: tuple[Any, int], application: str | None = None) -> None:
    """Let each defect fail with a message of this number."""
    strategy = SharedDeadLetterStrategy(names[1])
    policy = RedeliveryPolicy(maximum_redeliveries=0)
    with (
        redelivery.connect(
            url, redelivery_policy=policy, dead_letter_strategy=strategy, application=application
        ) as connection,
        connection.session("client") as session,
    ):
        producer, consumer = session.producer(names[0]), session.consumer(names[0], prefetch=1)
        for handle, number in defects:
            producer.send(str(number))
            assert consumer.receive(timeout=10)
            try:
                handle(number)
            except Exception as error:  # noqa: BLE001  # the defect
                session.recover(error)
        assert consumer.receive(timeout=0.1) is None


def groups(url: str, queue: str, *arguments: str) -> list[dict[str, Any]]:
    found = json.loads(run(url, "dlq", "groups", queue, "--json", *arguments).stdout)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)
def test_fifty_pairs_keep_their_groups(url: str, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    fail(url, names, *((defect(number), number) for number in range(50)))
    before = {each["fingerprint"]: each["count"] for each in groups(url, names[1], "--by", "fingerprint")}
    assert before == dict.fromkeys(before, 1)
    assert len(before) == 50
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    fail(url, names, *((defect(number, lines=3 + number), 1000 + number * 7) for number in range(50)))
    after = {each["fingerprint"]: each["count"] for each in groups(url, names[1], "--by", "fingerprint")}
    assert after == dict.fromkeys(before, 2)
    name = next(iter(after))
    assert run(url, "dlq", "move", names[1], "--to", f"{names[1]}.x", "--group", name, "--yes").stdout == "2 moved\n"


@on_each
def test_a_group_is_chosen_by_its_function_and_by_its_release(url: str, names: tuple[str, str]) -> None:
    fail(url, names, (defect(1), 1), (defect(2), 2), application="shop 2.4")
    fail(url, names, (defect(1, lines=9, text="no price for {order}"), 3), application="shop 2.10")
    by_place = groups(url, names[1], "--by", "fingerprint")
    assert [(each["count"], each["release"], each["frame"]) for each in by_place] == [
        (2, "shop 2.10", "shop.orders:handle_1"),
        (1, "shop 2.4", "shop.orders:handle_2"),
    ]
    by_release = groups(url, names[1], "--by", "release")
    assert [(each["count"], each["release"]) for each in by_release] == [(2, "shop 2.4"), (1, "shop 2.10")]
    shown = run(url, "dlq", "groups", names[1], "--by", "fingerprint").stdout
    assert "in shop.orders:handle_1" in shown
    listed = run(url, "dlq", "ls", names[1], "--group", by_release[1]["fingerprint"]).stdout
    assert "  1 attempt  shop 2.10  " in listed
    assert len(listed.splitlines()) == 1
    run(url, "dlq", "resolved", by_place[0]["fingerprint"], "--in", "shop 2.11")
    states = {each["count"]: each["state"] for each in groups(url, names[1], "--by", "fingerprint")}
    assert states == {2: "resolved in shop 2.11", 1: None}
    run(url, "dlq", "resolved", by_place[0]["fingerprint"], "--in", "2.5")  # and 2.10 is later
    states = {each["count"]: each["state"] for each in groups(url, names[1], "--by", "fingerprint")}
    assert states == {2: "regressed", 1: None}
    done = run(url, "dlq", "replay", names[1], "--group", by_place[0]["fingerprint"], "--yes")
    assert done.stdout == "2 replayed\n"
    assert sorted(bodies(url, names[0])) == ["1", "3"]
    assert bodies(url, names[1]) == ["2"]
