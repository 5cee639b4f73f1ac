"""`redelivery dlq`: what is printed, what moves where, and that a kill loses and doubles nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.run.commands import CliRunner

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "dlq")
DLQ = "ActiveMQ.DLQ"
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=0)


@pytest.fixture(params=["stomp", "amqp"])
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """The one that `url` names, by each protocol."""
    if request.param == "amqp":
        pytest.importorskip("proton")
    ports: dict[str, Any] = {f"{request.param}_port": 0}
    with EmbeddedBroker(f"dlq-{uuid4().hex}", **ports) as broker:
        yield broker


def url(broker: EmbeddedBroker) -> str:
    return next(iter(broker.urls.values()))


def run(broker: EmbeddedBroker, *arguments: str, code: int = 0, **options: Any) -> Any:
    done = CliRunner(env={"REDELIVERY_URL": url(broker)}).invoke(app, ["dlq", *arguments], **options)
    assert done.exit_code == code, done.output
    return done


def fail(broker: EmbeddedBroker, *failures: tuple[str, Exception], queue: str = "orders") -> None:
    """Let each order fail once too often, with its error."""
    with (
        redelivery.connect(
            broker.vm_url, redelivery_policy=AT_ONCE, dead_letter_strategy=SharedDeadLetterStrategy(DLQ)
        ) as connection,
        connection.session("transacted") as session,
    ):
        producer, consumer = session.producer(queue), session.consumer(queue)
        for body, error in failures:
            producer.send(body, properties={"tenant": body[0]}, priority=7)
            session.commit()
            assert consumer.receive(timeout=5)
            session.rollback(error)
    broker.wait_for(queue, depth=0)


def bodies(broker: EmbeddedBroker, queue: str) -> list[Any]:
    return [message.body for message in broker.messages(queue)]


MIXED = (
    ("a1", ValueError("order 17 has no 'price'")),
    ("b2", TimeoutError("bank")),
    ("a3", ValueError("order 18 has no 'size'")),
)


def test_groups_are_what_failed_alike(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED)
    fail(broker, ("a4", TimeoutError("bank")), queue="bills")
    found = json.loads(run(broker, "groups", DLQ, "--json").output)
    assert (found[0]["count"], found[0]["origin"], found[0]["exception"]) == (
        2,
        "queue://orders",
        "ValueError: order 17 has no 'price'",
    )
    assert sorted((each["count"], each["origin"]) for each in found) == [
        (1, "queue://bills"),
        (1, "queue://orders"),
        (2, "queue://orders"),
    ]
    names = ["fingerprint", "count", "origin", "cause", "exception", "first", "last"]
    assert [list(each) for each in found] == [[*names, "release", "rate", "state", "frame"]] * 3
    assert found[0]["first"] <= found[0]["last"]
    assert found[0]["fingerprint"][:8] in run(broker, "groups", DLQ).output


def test_ls_and_show(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED)
    lines = run(broker, "ls", DLQ, "--limit", "2").output.splitlines()
    assert [line.rpartition("queue://orders  ")[2] for line in lines] == [
        "ValueError: order 17 has no 'price'",
        "TimeoutError: bank",
    ]
    listed = [json.loads(line) for line in run(broker, "ls", DLQ, "--json").output.splitlines()]
    assert [each["dead_letter"]["count"] for each in listed] == [1, 1, 1]
    shown = run(broker, "show", DLQ, listed[1]["message_id"]).output
    assert "  exception: TimeoutError: bank\n" in shown
    assert json.loads(run(broker, "show", DLQ, "--json").output)["body"] == "a1"
    assert "has nothing that matches MESSAGE-ID ID:none" in run(broker, "show", DLQ, "ID:none", code=1).stderr


def test_show_has_a_line_for_each_part_of_a_passport(broker: EmbeddedBroker) -> None:
    fail(broker, ("a1", LookupError("no sku")))
    lines = [line.strip() for line in run(broker, "show", DLQ).output.splitlines()]
    at = lines.index("passport:")
    assert lines[at : at + 3] == ["passport:", "v: 1", "exception: LookupError"]
    assert lines[lines.index("attempts:") + 1].startswith("1, 20")
    assert not any("dlqPassport" in line for line in lines)  # as it is written, only in --json
    record = json.loads(run(broker, "show", DLQ, "--json").output)
    assert json.loads(record["properties"]["dlqPassport"]) == record["dead_letter"]["passport"]


def test_a_passport_goes_where_a_letter_goes_and_not_back_with_it(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """move, export and import keep it; replay and edit leave it out, as all that a failure has written."""
    fail(broker, ("a1", LookupError("no sku")), ("b1", LookupError("no sku")))
    (said, _) = (letter.properties["dlqPassport"] for letter in broker.messages(DLQ))
    run(broker, "move", DLQ, "--to", "other", "--where", "tenant = 'a'", "--yes")
    (moved,) = broker.messages("other")
    assert moved.properties["dlqPassport"] == said
    file = tmp_path / "letters.jsonl"
    run(broker, "export", "other", "--output", str(file))
    run(broker, "import", "third", str(file))
    (imported,) = broker.messages("third")
    assert imported.properties["dlqPassport"] == said
    run(broker, "edit", "third", "--limit", "1", "--set", "body=a2", "--yes")
    run(broker, "replay", DLQ, "--yes")
    returned = broker.messages("orders")
    assert sorted(each.body for each in returned) == ["a2", "b1"]
    assert not any("dlqPassport" in each.properties for each in returned)


def test_replay_sends_them_back_as_they_were(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED)
    assert run(broker, "replay", DLQ, "--yes").stdout == "3 replayed\n"
    assert (bodies(broker, "orders"), bodies(broker, DLQ)) == (["a1", "b2", "a3"], [])
    first = broker.messages("orders")[0]
    properties = dict(first.properties)
    assert (properties.pop("tenant"), str(properties.pop("redeliveryReplays")), first.priority) == ("a", "1", 7)
    assert properties.keys() == {"redeliveryReplay"}
    assert first.dead_letter is None


def test_replay_of_some(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED, ("a5", TimeoutError("bank")))
    run(broker, "replay", DLQ, "--yes", "--where", "tenant = 'b'")
    assert bodies(broker, DLQ) == ["a1", "a3", "a5"]
    fingerprint = json.loads(run(broker, "groups", DLQ, "--json").output)[0]["fingerprint"]
    run(broker, "replay", DLQ, "--yes", "--group", fingerprint, "--to", "elsewhere")
    assert (bodies(broker, DLQ), bodies(broker, "elsewhere")) == (["a5"], ["a1", "a3"])
    run(broker, "replay", DLQ, "--yes", "--limit", "1", "--rate", "100/s")
    assert (bodies(broker, DLQ), bodies(broker, "orders")) == ([], ["b2", "a5"])


def test_what_names_no_origin_stays(broker: EmbeddedBroker) -> None:
    broker.send(DLQ, "of nobody")
    fail(broker, ("a1", ValueError("x")))
    done = run(broker, "replay", DLQ, "--yes")
    assert done.stdout == "1 replayed\n"
    assert "1 stays; the first of them: letter " in done.stderr
    assert (bodies(broker, DLQ), bodies(broker, "orders")) == (["of nobody"], ["a1"])


def test_nothing_is_done_without_a_yes(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED)
    for command in (("replay",), ("purge",), ("move", "--to", "archive")):
        assert "add --yes" in run(broker, command[0], DLQ, *command[1:], code=2).stderr
        dry = run(broker, command[0], DLQ, *command[1:], "--dry-run", "--json").stdout
        found = json.loads(dry)
        said = {name: found.pop(name) for name in ("letters", "stay", "dry_run")}
        assert said == {"letters": 3, "stay": 0, "dry_run": True}
        assert list(found) == (["skipped", "forecast"] if command == ("replay",) else [])
    assert len(bodies(broker, DLQ)) == 3


def test_move_keeps_what_they_say_and_purge_takes_them_away(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED)
    assert run(broker, "move", DLQ, "--to", "archive", "--limit", "2", "--yes").stdout == "2 moved\n"
    kept = broker.messages("archive")[0].dead_letter
    assert kept is not None
    assert (str(kept.origin), kept.exception) == ("queue://orders", "ValueError: order 17 has no 'price'")
    assert run(broker, "purge", DLQ, "--yes", "--json").stdout == '{"letters": 1, "stay": 0, "dry_run": false}\n'
    assert (bodies(broker, DLQ), bodies(broker, "archive")) == ([], ["a1", "b2"])
    assert "they are there" in run(broker, "move", DLQ, "--to", DLQ, "--yes", code=2).stderr


def test_export_and_import(broker: EmbeddedBroker, tmp_path: Path) -> None:
    fail(broker, *MIXED)
    file = tmp_path / "letters.jsonl"
    assert run(broker, "export", DLQ, "--output", str(file)).stdout == f"3 written to {file}\n"
    assert run(broker, "export", DLQ).stdout == file.read_text(encoding="utf-8")
    assert "--output" in run(broker, "export", DLQ, "--output", str(file), code=2).stderr  # it is there already
    run(broker, "purge", DLQ, "--yes")
    assert run(broker, "import", DLQ, str(file)).stdout == f"3 sent to queue://{DLQ}\n"
    letters = broker.messages(DLQ)
    assert [(each.body, each.priority, each.dead_letter.exception) for each in letters if each.dead_letter] == [
        (body, 7, f"{type(error).__name__}: {error}") for body, error in MIXED
    ]
    lines = '{"body": "fine"}\n{"properties": 5}\n'
    bad = run(broker, "import", DLQ, input=lines, code=2)
    assert "line 2: properties must be a JSON object" in bad.stderr
    assert "line 1 is not JSON, as export writes it" in run(broker, "import", DLQ, input="<broker/>", code=2).stderr
    assert len(bodies(broker, DLQ)) == 3


def test_a_body_with_any_end_of_a_line_is_exported_and_imported(broker: EmbeddedBroker, tmp_path: Path) -> None:
    body = "a\n\r\n\x0b\x0c\x1c\x85\u2028\u2029b"
    broker.send(DLQ, body)
    file = tmp_path / "letters.jsonl"
    run(broker, "export", DLQ, "--output", str(file))
    run(broker, "import", "again", str(file))
    run(broker, "import", "again", input=file.read_text(encoding="utf-8"))
    assert bodies(broker, "again") == [body, body]


def test_a_rate_is_looked_at_before_anybody_is_asked(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED)
    assert "--rate fast: write letters per second" in run(broker, "replay", DLQ, "--rate", "fast", code=2).stderr


@pytest.mark.parametrize("arguments", ["--rate=fast", "--rate=0/s", "--where=tenant =", "--limit=0"])
def test_wrong_usage_is_exit_code_2(broker: EmbeddedBroker, arguments: str) -> None:
    fail(broker, *MIXED)
    run(broker, "replay", DLQ, "--yes", arguments, code=2)
    assert len(bodies(broker, DLQ)) == 3


@pytest.mark.long_form
@pytest.mark.parametrize("broker", ["stomp"], indirect=True)
def test_a_replay_that_is_killed_loses_and_doubles_nothing(broker: EmbeddedBroker) -> None:
    count = 90
    with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as session:
        producer = session.producer(DLQ)
        for number in range(count):
            producer.send(str(number), properties={"originalDestination": "queue://orders"})
        session.commit()
    command = (*COMMAND, "replay", DLQ, "--yes", "--rate", "150/s", "--url", url(broker))
    killed = 0
    while broker.queue_depth(DLQ):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:  # noqa: S603  # ourselves
            before = broker.queue_depth("orders")
            deadline = time.monotonic() + 20
            while process.poll() is None and broker.queue_depth("orders") == before and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(0.1)  # into the next batch
            killed += process.poll() is None
            process.kill()
            process.communicate()
    assert killed
    assert Counter(bodies(broker, "orders")) == Counter(map(str, range(count)))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ls",), "queue://nosuch has no messages: it is empty, or there is no such queue"),
        (("groups",), "queue://nosuch has no messages"),
        (("groups", "--json"), "queue://nosuch has no messages"),
        (("show",), "queue://nosuch has no messages"),
        (("replay", "--yes"), "queue://nosuch has no messages"),
        (("replay", "--yes", "--canary", "1"), "queue://nosuch has no messages"),
        (("replay", "--dry-run"), "queue://nosuch has no messages"),
        (("move", "--to", "x", "--yes"), "queue://nosuch has no messages"),
        (("purge", "--yes"), "queue://nosuch has no messages"),
        (("export",), "queue://nosuch has no messages"),
        (("ls", "--where", "a = 1"), "queue://nosuch has nothing that matches --where 'a = 1'"),
        (("edit", "--where", "a = 1"), "queue://nosuch has nothing that matches --where 'a = 1'"),
        (("edit", "--where", "a = 1", "--set", "type=x", "--yes"), "queue://nosuch has nothing that matches --where"),
        (("edit", "ID:none", "--set", "type=x", "--yes"), "queue://nosuch has nothing that matches MESSAGE-ID ID:none"),
    ],
    ids=str,
)
def test_an_empty_or_unknown_queue_is_said(broker: EmbeddedBroker, arguments: tuple[str, ...], says: str) -> None:
    done = run(broker, arguments[0], "nosuch", *arguments[1:], code=1)
    assert done.stdout in ("", "[]\n")
    assert f"redelivery dlq {arguments[0]}: {says}" in done.stderr


@pytest.mark.parametrize("command", ["ls", "replay", "purge", "export"])
def test_a_group_of_nothing_is_said(broker: EmbeddedBroker, command: str, tmp_path: Path) -> None:
    fail(broker, *MIXED)
    yes = () if command in ("ls", "export") else ("--yes",)
    file = ("--output", str(tmp_path / "x")) if command == "export" else ()
    done = run(broker, command, DLQ, "--group", "zzz", *yes, *file, code=1)
    assert f"queue://{DLQ} has nothing that matches --group zzz" in done.stderr
    assert "--group" not in run(broker, command, DLQ, "--group", "", *yes, code=2).stdout  # which would be all of them
    assert len(bodies(broker, DLQ)) == 3
    assert not list(tmp_path.iterdir())


def test_names_are_folded_and_a_group_is_what_was_shown(broker: EmbeddedBroker) -> None:
    names = ["ada", "bob", "Ada Lovelace", "eve"]
    errors: list[Exception] = [ValueError(f"customer {name} is blocked since 2026-11-0{len(name)}") for name in names]
    errors += [KeyError(name) for name in names]
    errors += [TimeoutError("bank"), TimeoutError("bank")]
    fail(broker, *((f"{number}", error) for number, error in enumerate(errors)))
    found = json.loads(run(broker, "groups", DLQ, "--json").output)
    assert [each["count"] for each in found] == [4, 4, 2]
    listed = [json.loads(line) for line in run(broker, "ls", DLQ, "--json").output.splitlines()]
    assert Counter(each["fingerprint"] for each in listed) == {each["fingerprint"]: each["count"] for each in found}
    assert json.loads(run(broker, "show", DLQ, "--json").output)["fingerprint"] == listed[0]["fingerprint"]
    blocked = listed[0]["fingerprint"]
    assert run(broker, "replay", DLQ, "--group", blocked, "--limit", "3", "--yes").stdout == "3 replayed\n"
    # the last one is alone now, and could have any name
    assert run(broker, "replay", DLQ, "--group", blocked, "--yes").stdout == "1 replayed\n"
    assert bodies(broker, "orders") == ["0", "1", "2", "3"]


def test_groups_by_type_and_by_origin(broker: EmbeddedBroker) -> None:
    fail(broker, *MIXED, ("c4", ValueError("something else")))
    fail(broker, ("a4", TimeoutError("bank")), queue="bills")
    by_type = json.loads(run(broker, "groups", DLQ, "--by", "type", "--json").output)
    assert [(each["count"], each["exception"], each["origin"]) for each in by_type] == [
        (3, "ValueError", "queue://orders"),
        (2, "TimeoutError", None),
    ]
    by_origin = json.loads(run(broker, "groups", DLQ, "--by", "origin", "--json").output)
    assert [(each["count"], each["origin"]) for each in by_origin] == [(4, "queue://orders"), (1, "queue://bills")]
    assert "--by" in run(broker, "groups", DLQ, "--by", "colour", code=2).stderr
    group = by_type[0]["fingerprint"]
    assert run(broker, "move", DLQ, "--to", "x", "--group", group, "--yes").stdout == "3 moved\n"


def test_the_time_at_which_a_letter_failed_is_shown(broker: EmbeddedBroker) -> None:
    began = datetime.now(UTC) - timedelta(milliseconds=1)
    fail(broker, ("a1", ValueError("x")))
    (last,) = (json.loads(line) for line in run(broker, "ls", DLQ, "--json").output.splitlines())
    at = datetime.fromisoformat(last["dead_letter"]["at"])
    assert began <= at <= datetime.now(UTC)
    assert run(broker, "ls", DLQ).output.startswith(at.isoformat(sep=" ", timespec="seconds"))
    (found,) = json.loads(run(broker, "groups", DLQ, "--json").output)
    assert found["first"] == found["last"] == last["dead_letter"]["at"]
    broker.send("old", "of nobody", properties={"originalDestination": "queue://orders"})
    assert run(broker, "ls", "old").output.startswith("sent 2")


def test_a_broker_that_ends_with_the_command_is_refused() -> None:
    for arguments in (("ls", DLQ), ("import", DLQ)):
        done = CliRunner().invoke(app, ["dlq", *arguments, "--url", "vm://nope"], input='{"body": "x"}')
        assert done.exit_code == 2
        assert "vm://nope would end with this command, and its messages with it: add a store" in done.stderr
