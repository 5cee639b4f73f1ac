"""`redelivery dlq resolved` and `groups --by fingerprint|release`: what is repaired, and what is regressed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, bodies, fail, run, url

import redelivery

__all__ = ["url"]  # a fixture
embedded = pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)
one = pytest.mark.parametrize("url", LOOKED_AT[:1], indirect=True)


@pytest.fixture
def letters() -> str:
    return f"resolved.{uuid4().hex[:8]}"


def put(url: str, letters: str, text: str, *, at: datetime | None = None, count: int = 1, step: float = 0) -> None:
    """Dead letters as this library makes them, of a time, so many seconds apart."""
    begin = at or datetime.now(UTC)
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        producer = session.producer(letters)
        for number in range(count):
            failed = begin + timedelta(seconds=number * step)
            said: dict[str, Any] = {"originalDestination": "queue://orders"}
            said["dlqDeliveryFailureCause"] = f"Delivery[1] exceeds redelivery policy limit:x, cause:ValueError: {text}"
            said["dlqFailedAt"] = redelivery.Long(int(failed.timestamp() * 1000))
            producer.send(text, properties=said)
        session.commit()


def groups(url: str, letters: str, *arguments: str, **options: Any) -> list[dict[str, Any]]:
    found = json.loads(run(url, "dlq", "groups", letters, "--json", *arguments, **options).stdout)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
def test_a_group_is_resolved_and_what_comes_again_is_regressed(url: str, letters: str) -> None:
    fail(url, f"{letters}.orders", letters, ValueError("order 17 is odd"), ValueError("order 18 is odd"))
    (group,) = groups(url, letters)
    assert group["state"] is None
    assert "state" not in run(url, "dlq", "groups", letters).stdout
    name = group["fingerprint"]
    done = run(url, "dlq", "resolved", name[:6], "--in", "2.4")
    assert done.stdout.startswith(f"{name} resolved in 2.4: ValueError: order # is odd")
    (group,) = groups(url, letters)
    assert group["state"] == "resolved in 2.4"
    assert "resolved in 2.4" in run(url, "dlq", "groups", letters).stdout
    assert len(bodies(url, letters)) == 2
    fail(url, f"{letters}.orders", letters, ValueError("order 19 is odd"), ValueError("bank"))
    assert {each["exception"]: each["state"] for each in groups(url, letters)} == {
        "ValueError: order 19 is odd": "regressed",
        "ValueError: bank": None,
    }
    assert "regressed" in run(url, "dlq", "groups", letters).stdout
    assert run(url, "dlq", "resolved", name, "--undo").stdout.startswith(f"{name} no longer resolved in 2.4")
    assert {each["state"] for each in groups(url, letters)} == {None}
    bodies(url, letters)


@embedded
def test_letters_of_before_stay_resolved(url: str, letters: str) -> None:
    put(url, letters, "order 17 is odd", at=datetime.now(UTC) - timedelta(days=1))
    (group,) = groups(url, letters)
    run(url, "dlq", "resolved", group["fingerprint"], "--in", "2.4")
    assert [each["state"] for each in groups(url, letters)] == ["resolved in 2.4"]
    put(url, letters, "order 18 is odd", at=datetime.now(UTC) + timedelta(seconds=5))
    assert [each["state"] for each in groups(url, letters)] == ["regressed"]


@embedded
def test_it_is_known_again_by_the_first_letter_that_comes(url: str, letters: str) -> None:
    for name in ("ada", "bob", "eve"):
        put(url, letters, f"customer {name} is late")
    (group,) = groups(url, letters)
    run(url, "dlq", "resolved", group["fingerprint"], "--in", "2.4")
    bodies(url, letters)
    put(url, letters, "customer fred is late")
    assert [each["state"] for each in groups(url, letters)] == ["regressed"]


@embedded
def test_the_rate_is_of_the_time_between_the_first_and_the_last(url: str, letters: str) -> None:
    put(url, letters, "slow", count=4, step=1200)
    put(url, letters, "fast", count=31, step=0.1)
    put(url, letters, "once")
    rates = {each["exception"].removeprefix("ValueError: "): each["rate"] for each in groups(url, letters)}
    assert rates == {"slow": pytest.approx(3), "fast": pytest.approx(36000), "once": None}
    shown = run(url, "dlq", "groups", letters).stdout
    assert [each for each in ("  3/h  ", "  600/min  ", "  -  ") if each not in shown] == []


@one
def test_what_is_resolved_is_listed(url: str, letters: str, receipts: Path) -> None:
    assert run(url, "dlq", "resolved").stdout == "nothing is resolved\n"
    put(url, letters, "order 17 of 'ada' is \x1b[31modd")
    (group,) = groups(url, letters)
    run(url, "dlq", "resolved", group["fingerprint"], "--in", "shop 2.4", "--json")
    (found,) = json.loads(run(url, "dlq", "resolved", "--list", "--json").stdout)
    assert (found["fingerprint"], found["in"]) == (group["fingerprint"], "shop 2.4")
    assert "ada" not in found["what"]
    listed = run(url, "dlq", "resolved").stdout
    assert "\x1b" not in listed
    assert f"shop 2.4  {group['fingerprint']}" in listed
    assert (receipts.parent / "resolved.ndjson").exists()


@one
def test_receipts_name_the_folder(url: str, letters: str, tmp_path: Path) -> None:
    put(url, letters, "x")
    (group,) = groups(url, letters)
    here = {"REDELIVERY_RECEIPTS": str(tmp_path / "here")}
    run(url, "dlq", "resolved", group["fingerprint"], "--in", "2.4", env=here)
    assert [each["state"] for each in groups(url, letters)] == [None]
    assert [each["state"] for each in groups(url, letters, env=here)] == ["resolved in 2.4"]
    assert [each["state"] for each in groups(url, letters, "--receipts", str(tmp_path / "here"))] == ["resolved in 2.4"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("0" * 12, "--in", "2.4"), 1, "no letter that was looked at here has had the fingerprint '000000000000'"),
        (("{}",), 2, "in which release? Add --in VERSION"),
        (("{}", "--in", ""), 2, "name the release in which it is resolved"),
        (("{}", "--in", "2.4", "--undo"), 2, "--in and --undo: give one of them"),
        (("{}", "--undo"), 1, "is not resolved"),
        (("--in", "2.4"), 2, "which one?"),
        (("--undo",), 2, "which one?"),
        (("{}", "--list"), 2, "which one?"),
    ],
)
@one
def test_what_cannot_be_resolved_is_said(
    url: str, letters: str, arguments: tuple[str, ...], code: int, says: str
) -> None:
    put(url, letters, "x")
    (group,) = groups(url, letters)
    assert (
        says
        in run(url, "dlq", "resolved", *(each.format(group["fingerprint"]) for each in arguments), code=code).stderr
    )


@one
def test_a_damaged_file_is_named(url: str, letters: str, receipts: Path) -> None:
    put(url, letters, "x")
    (group,) = groups(url, letters)
    (receipts.parent / "resolved.ndjson").write_text("\x00\x01")
    says = "resolved.ndjson, line 1: this is not a line of it"
    for arguments in ((group["fingerprint"], "--in", "2.4"), ()):
        assert says in run(url, "dlq", "resolved", *arguments, code=2).stderr
    looked = run(url, "dlq", "groups", letters)  # which it keeps nobody from
    assert group["fingerprint"] in looked.stdout
    assert says in looked.stderr


@one
def test_a_folder_that_nobody_can_write_keeps_nobody_from_looking(
    url: str, letters: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(url, letters, "x")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "cannot be remembered" in run(url, "dlq", "groups", letters).stderr
