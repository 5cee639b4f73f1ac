"""`redelivery dlq edit`, `verify`, `undo`, `resume`: a run is proved at the broker, undone, and gone on with."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, emptied, run, url
from tests.run.forked import Forked

import redelivery
from redelivery.operate.letters.receipts.receipt import read_receipt

__all__ = ["emptied", "url"]  # fixtures
COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "dlq")
CAUSE = "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy, cause:ValueError: no "
KINDS = [
    ("stomp-embedded", ("replay",)),
    ("stomp-embedded", ("move", "--to", "{}.other")),
    ("amqp-embedded", ("edit", "--limit", "1000", "--set", "body.price=5")),
]
on_each = pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
embedded = pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)


@pytest.fixture
def letters(emptied: list[str]) -> str:
    """A queue of letters that failed on another one, which is its name and ".origin"."""
    name = f"receipts.{uuid4().hex[:8]}"
    emptied += [name, f"{name}.origin", f"{name}.other"]
    return name


def fill(url: str, letters: str, count: int) -> None:
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        producer = session.producer(letters)
        for number in range(count):
            said = {"originalDestination": f"queue://{letters}.origin", "dlqDeliveryFailureCause": CAUSE + "x"}
            producer.send(json.dumps({"order": number, "price": 0}), properties={**said, "tenant": "eu"})
        session.commit()


def orders(url: str, queue: str) -> list[tuple[int, int]]:
    """What is on a queue, by number and price; it stays."""
    with redelivery.connect(url) as connection, connection.session() as session, session.browser(queue) as browser:
        return sorted((each["order"], each["price"]) for each in map(json.loads, (found.body for found in browser)))


def receipt(folder: Path) -> str:
    return str(max(folder.iterdir(), key=lambda each: each.stat().st_mtime_ns))


def counted(url: str, file: str, code: int = 0) -> dict[str, int]:
    found = json.loads(run(url, "dlq", "verify", file, "--json", code=code).stdout)
    assert found["holds"] is (code == 0)
    return {name: found[name] for name in found if isinstance(found[name], int) and name != "holds" and found[name]}


def take(url: str, queue: str, count: int) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue, prefetch=1)
        for _ in range(count):
            assert consumer.receive(timeout=10)


@on_each
def test_a_replay_is_proved_and_undone(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 60)
    done = run(url, "dlq", "replay", letters, "--yes", "--limit", "55")
    file = receipt(receipts)
    assert f"receipt: {file}" in done.stderr
    assert counted(url, file) == {"letters": 55, "unread": 55}
    take(url, f"{letters}.origin", 3)
    assert counted(url, file) == {"letters": 55, "unread": 52, "gone": 3}
    done = run(url, "dlq", "undo", file)
    assert done.stdout == "52 put back\n"
    assert "3 of them cannot be put back now: received" in done.stderr
    assert f"dlq verify {file}" in done.stderr
    assert counted(url, file) == {"letters": 55, "gone": 3, "undone": 52}
    assert len(orders(url, letters)) == 57
    (group,) = json.loads(run(url, "dlq", "groups", letters, "--json").stdout)
    assert (group["count"], group["origin"], group["exception"]) == (
        57,
        f"queue://{letters}.origin",
        "ValueError: no x",
    )
    assert "nothing is left to undo" in run(url, "dlq", "undo", file, code=1).stderr


@on_each
def test_an_edit_is_one_step_and_the_original_is_kept(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 4)
    with redelivery.connect(url) as connection, connection.session() as session, session.browser(letters) as browser:
        name = [found.message_id for found in browser][1]
    assert name is not None
    done = run(url, "dlq", "edit", letters, name, "--set", "body.price=5", "--yes")
    assert '-    "price": 0' in done.stdout
    assert '+    "price": 5' in done.stdout
    assert done.stdout.endswith("1 edited and replayed\n")
    assert (orders(url, letters), orders(url, f"{letters}.origin")) == ([(0, 0), (2, 0), (3, 0)], [(1, 5)])
    with redelivery.connect(url) as connection, connection.session() as session:
        with session.browser(f"{letters}.origin") as browser:
            (sent,) = browser
        assert (sent.dead_letter, sent.properties["tenant"]) == (None, "eu")
    file = receipt(receipts)
    assert counted(url, file) == {"letters": 1, "unread": 1}
    assert run(url, "dlq", "undo", file).stdout == "1 put back\n"
    assert (orders(url, letters), orders(url, f"{letters}.origin")) == ([(n, 0) for n in range(4)], [])
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600


@on_each
def test_a_purge_that_kept_them_is_undone_once(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 3)
    run(url, "dlq", "purge", letters, "--yes", "--keep")
    file = receipt(receipts)
    assert (orders(url, letters), counted(url, file)) == ([], {"letters": 3, "gone": 3})
    assert run(url, "dlq", "undo", file).stdout == "3 put back\n"
    assert orders(url, letters) == [(n, 0) for n in range(3)]
    assert "nothing is left to undo" in run(url, "dlq", "undo", file, code=1).stderr
    assert len(orders(url, letters)) == 3


@embedded
def test_a_purge_that_kept_nothing_says_so(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 3)
    run(url, "dlq", "purge", letters, "--yes")
    assert "purge --keep writes them into the receipt" in run(url, "dlq", "undo", receipt(receipts), code=2).stderr


@embedded
def test_a_move_is_undone_with_all_that_the_letters_say(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 3)
    run(url, "dlq", "move", letters, "--to", f"{letters}.other", "--yes")
    assert run(url, "dlq", "undo", receipt(receipts)).stdout == "3 put back\n"
    (group,) = json.loads(run(url, "dlq", "groups", letters, "--json").stdout)
    assert (group["count"], group["origin"]) == (3, f"queue://{letters}.origin")


@pytest.mark.parametrize(("url", "kind"), KINDS, ids=["replay", "move", "edit"], indirect=["url"])
def test_each_kill_is_gone_on_with_and_loses_and_doubles_nothing(
    url: str, letters: str, receipts: Path, kind: tuple[str, ...]
) -> None:
    count = 90
    fill(url, letters, count)
    first = (*COMMAND, kind[0], letters, *kind[1:], "--yes", "--rate", "150/s", "--url", url)
    first = tuple(each.format(letters) for each in first)
    killed, command = 0, first
    target = f"{letters}.other" if kind[0] == "move" else f"{letters}.origin"
    while len(orders(url, letters)):
        with Forked[bytes](command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            before, deadline = len(orders(url, target)), time.monotonic() + 30
            while process.poll() is None and len(orders(url, target)) == before and time.monotonic() < deadline:
                time.sleep(0.005)
            killed += process.poll() is None
            process.kill()
            process.communicate()
        file = receipt(receipts)
        counts = counted(url, file)
        assert counts.get("unread", 0) + counts.get("still", 0) + counts.get("left", 0) == count
        command = (*COMMAND, "resume", file, "--url", url)
    assert killed
    assert counted(url, receipt(receipts)) == {"letters": count, "unread": count}
    price = 5 if kind[0] == "edit" else 0
    assert orders(url, target) == [(number, price) for number in range(count)]


@embedded
def test_a_batch_that_was_not_committed_is_counted_once_when_it_is_tried_again(
    url: str, letters: str, receipts: Path
) -> None:
    fill(url, letters, 3)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("redelivery.Session.commit", _refuse)
        run(url, "dlq", "replay", letters, "--yes", code=1)
    file = receipt(receipts)
    assert counted(url, file) == {"letters": 3, "still": 3}
    assert run(url, "dlq", "resume", file).stdout == "3 more\n"
    assert counted(url, file) == {"letters": 3, "unread": 3}
    assert "nothing is left to resume" in run(url, "dlq", "resume", file, code=1).stderr


def _refuse(*_: object) -> None:
    raise redelivery.ResourceAllocationError("full")


def test_letters_that_share_an_id_are_letters_each(tmp_path: Path) -> None:
    """As copies of one message have it that failed in two subscriptions."""
    file = tmp_path / "receipt.jsonl"
    head = {"receipt": 1, "run": "r", "command": "purge", "queue": "dead", "to": None, "broker": "b", "at": "u"}
    both = [{"id": "ID:1", "content": each} for each in "ab"]
    lines: list[object] = [head, *({"planned": each} for each in ("ID:1", "ID:1", None, "ID:2"))]
    lines += [{"batch": 1, "letters": both}, {"dropped": [0, 1]}]
    lines += [{"batch": 2, "letters": both}, {"done": 2}]
    lines += [{"batch": 3, "letters": [{"id": None, "content": "c"}, {"id": "ID:1", "content": "d"}]}]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = read_receipt(file)
    assert [(each.content, each.sure) for each in found.entries if not each.dropped] == [
        ("a", True),
        ("b", True),
        ("c", False),
        ("d", False),
    ]
    assert found.letters == 4
    assert [each.id for each in found.planned] == ["ID:1", "ID:1", None, "ID:2"]


@embedded
def test_what_is_in_two_places_fails_the_proof(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 2)
    run(url, "dlq", "replay", letters, "--yes")
    file = Path(receipt(receipts))
    fill(url, letters, 1)  # as if one had stayed: a letter that has the id of one that left
    with redelivery.connect(url) as connection, connection.session() as session, session.browser(letters) as browser:
        (stayed,) = browser
    entry = read_receipt(file).entries[0]
    file.write_text(file.read_text().replace(str(entry.id), str(stayed.message_id)))
    assert counted(url, str(file), code=1) == {"letters": 2, "unread": 1, "doubled": 1}


@embedded
def test_a_line_that_a_kill_has_cut_is_left_out_and_others_are_named(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 2)
    run(url, "dlq", "replay", letters, "--yes")
    file = Path(receipt(receipts))
    whole = file.read_text()
    file.write_text(whole + '{"batch": 2, "let')
    assert counted(url, str(file)) == {"letters": 2, "unread": 2}
    run(url, "dlq", "undo", str(file))
    assert '{"batch": 2, "let' not in file.read_text()
    for text, says in (
        (whole.replace('"planned"', '"plan', 1), "line 2: this is not a line of a receipt"),
        ("", "is empty, and no receipt"),
        ('{"receipt": 9}\n', "a receipt of version 9"),
        ('{"body": 5}\n', "line 1: this is not a line of a receipt"),
    ):
        file.write_text(text)
        assert says in run(url, "dlq", "verify", str(file), code=2).stderr
    assert "No such file" in run(url, "dlq", "verify", str(file) + "x", code=2).stderr


@embedded
def test_a_receipt_that_cannot_be_written_is_said_before_anything_moves(url: str, letters: str, tmp_path: Path) -> None:
    fill(url, letters, 2)
    (tmp_path / "file").write_text("")
    done = run(url, "dlq", "replay", letters, "--yes", "--receipts", str(tmp_path / "file"), code=2)
    assert "nothing was moved" in done.stderr
    assert len(orders(url, letters)) == 2


@embedded
def test_an_editor_changes_one_letter(url: str, letters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(url, letters, 2)
    for editor, code, says in (
        ("true", 1, "nothing was changed, and nothing was sent"),
        ("false", 2, "the editor 'false' failed"),
        ("/no/such/editor", 2, "set EDITOR; nothing was sent"),
        ("sed -i s/{/[/", 2, "is not a JSON object; nothing was sent"),
        ("sed -i s/price/cost/", 0, "1 edited and replayed"),
    ):
        monkeypatch.setenv("VISUAL", editor)
        done = run(url, "dlq", "edit", letters, "--limit", "1", "--yes", code=code)
        assert says in done.output
    assert "an editor changes one letter" not in done.output
    fill(url, letters, 1)
    assert "an editor changes one letter" in run(url, "dlq", "edit", letters, "--limit", "2", "--yes", code=2).stderr


@embedded
def test_a_group_is_edited_by_a_program(url: str, letters: str, tmp_path: Path) -> None:
    fill(url, letters, 6)
    fix = tmp_path / "fix.py"
    fix.write_text(
        "def fix(letter):\n"
        "    letter['body']['price'] = 5\n"
        "    return letter if letter['body']['order'] % 2 else None\n"
    )
    (group,) = json.loads(run(url, "dlq", "groups", letters, "--json").stdout)
    arguments = ("dlq", "edit", letters, "--group", group["fingerprint"], "--with", str(fix))
    looked = run(url, *arguments, "--dry-run")
    assert looked.stdout.count("edited") == 3
    assert len(orders(url, letters)) == 6
    done = run(url, *arguments, "--yes")
    assert "3 stay; the first of them: letter " in done.stderr
    assert (orders(url, letters), orders(url, f"{letters}.origin")) == (
        [(0, 0), (2, 0), (4, 0)],
        [(1, 5), (3, 5), (5, 5)],
    )


@embedded
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "which letters?"),
        (("--limit", "1", "--set", "price"), "--set price: write NAME=VALUE"),
        (("--limit", "1", "--set", "body.x=1", "--with", "x.py"), "give one of them"),
        (("--limit", "1", "--with", "nowhere.py"), "No such file"),
    ],
)
def test_an_edit_that_cannot_be_is_refused(url: str, letters: str, arguments: tuple[Any, ...], says: str) -> None:
    assert says in run(url, "dlq", "edit", letters, *arguments, code=2).stderr
