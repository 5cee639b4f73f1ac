"""Receipts of letters without ids or with the same content, of full disks, of imports, and of two operators at once."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, bodies, emptied, run, url
from tests.cli.test_receipts import COMMAND, counted, fill, orders, receipt
from tests.conformance.foreign import Foreign, section, string
from tests.run.forked import Forked

import redelivery

__all__ = ["emptied", "url"]  # fixtures
on_each = pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
embedded = pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)
over_amqp = pytest.mark.parametrize("url", [each for each in LOOKED_AT if each.startswith("amqp")], indirect=True)


@pytest.fixture
def letters(emptied: list[str]) -> str:
    """A queue, whose letters go to its name and ".other"."""
    name = f"odd.{uuid4().hex[:8]}"
    emptied += [name, f"{name}.other"]
    return name


@pytest.fixture
def by_fifty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions of so many letters, so that a few letters need several."""
    for each in ("moving", "receipts.undoing"):
        monkeypatch.setattr(f"redelivery.operate.letters.{each}.BATCH", 50)


def count(url: str, queue: str) -> int:
    with redelivery.connect(url) as connection, connection.session() as session, session.browser(queue) as browser:
        return sum(1 for _ in browser)


def nameless(request: pytest.FixtureRequest, url: str, letters: str, count: int) -> None:
    """Letters of another client that are the same, and have no id."""
    broker = request.node.callspec.params["url"].partition("-")[2]
    bodies(url, letters, 0.01)  # makes the queue
    Foreign("amqp", broker, url).send(letters, *(section(0x77, string(b"nameless")) for _ in range(count)))


class Breaks:
    """A method that raises when it is called for the ``number``-th time, before or after it did its work."""

    def __init__(
        self, number: int, *, after: bool = False, error: type[BaseException] = redelivery.ResourceAllocationError
    ) -> None:
        self._left, self._after, self._error = number, after, error

    def around(self, patched: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        method = getattr(owner, name)

        def broken(*arguments: Any, **keywords: Any) -> Any:
            self._left -= 1
            if self._left or self._after:
                found = method(*arguments, **keywords)
            if not self._left:
                raise self._error("broken")
            return found

        patched.setattr(owner, name, broken)


@over_amqp
@pytest.mark.usefixtures("by_fifty")
@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after it"])
def test_letters_without_an_id_are_gone_on_with(
    request: pytest.FixtureRequest, url: str, letters: str, receipts: Path, after: bool
) -> None:
    nameless(request, url, letters, 110)
    with pytest.MonkeyPatch.context() as patched:
        Breaks(2, after=after).around(patched, redelivery.Session, "commit")
        run(url, "dlq", "replay", letters, "--to", f"{letters}.other", "--yes", code=1)
    gone = 100 if after else 50
    assert (count(url, letters), count(url, f"{letters}.other")) == (110 - gone, gone)
    assert run(url, "dlq", "resume", receipt(receipts)).stdout == f"{110 - gone} more\n"
    assert counted(url, receipt(receipts)) == {"letters": 110, "unread": 110}
    assert (count(url, letters), count(url, f"{letters}.other")) == (0, 110)


@over_amqp
def test_of_letters_that_are_the_same_as_many_are_put_back_as_left(
    request: pytest.FixtureRequest, url: str, letters: str, receipts: Path
) -> None:
    nameless(request, url, letters, 20)
    run(url, "dlq", "replay", letters, "--to", f"{letters}.other", "--limit", "8", "--yes")
    assert counted(url, receipt(receipts)) == {"letters": 8, "unread": 8}
    assert run(url, "dlq", "undo", receipt(receipts)).stdout == "8 put back\n"
    assert counted(url, receipt(receipts)) == {"letters": 8, "undone": 8}
    assert (count(url, letters), count(url, f"{letters}.other")) == (20, 0)


@on_each
@pytest.mark.usefixtures("by_fifty")
@pytest.mark.parametrize("purge", [False, True], ids=["replay", "purge"])
@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after it"])
def test_an_undo_that_was_cut_short_puts_letters_of_the_same_content_back_once(
    url: str, letters: str, receipts: Path, purge: bool, after: bool
) -> None:
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        for _ in range(130):
            session.producer(letters).send("the same")
        session.commit()
    done = ("purge", letters, "--keep") if purge else ("replay", letters, "--to", f"{letters}.other")
    run(url, "dlq", *done, "--limit", "120", "--yes")
    file = receipt(receipts)
    with pytest.MonkeyPatch.context() as patched:
        Breaks(2, after=after).around(patched, redelivery.Session, "commit")
        run(url, "dlq", "undo", file, code=1)
    back = 100 if after else 50
    assert count(url, letters) == 10 + back
    assert counted(url, file) == {"letters": 120, "undone": back, "gone" if purge else "unread": 120 - back}
    assert run(url, "dlq", "undo", file).stdout == f"{120 - back} put back\n"
    assert counted(url, file) == {"letters": 120, "undone": 120}
    assert (count(url, letters), count(url, f"{letters}.other")) == (130, 0)


@on_each
@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after it"])
def test_an_import_is_proved_undone_and_gone_on_with(url: str, letters: str, after: bool, tmp_path: Path) -> None:
    fill(url, letters, 60)
    file, target = tmp_path / "letters.jsonl", f"{letters}.other"
    run(url, "dlq", "export", letters, "--output", str(file))
    run(url, "dlq", "move", letters, "--to", target, "--limit", "1", "--yes")  # one of them is there already
    with pytest.MonkeyPatch.context() as patched:
        Breaks(1, after=after).around(patched, redelivery.Session, "commit")
        said = run(url, "dlq", "import", target, str(file), code=1).stderr
    written = said.splitlines()[0].removeprefix("receipt: ")
    file.unlink()  # the receipt has all that is needed
    assert count(url, target) == (61 if after else 1)
    assert counted(url, written) == {"letters": 60, "unread" if after else "still": 60}
    if after:
        assert "nothing is left to resume" in run(url, "dlq", "resume", written, code=1).stderr
    else:
        assert run(url, "dlq", "resume", written).stdout == "60 more\n"
    assert counted(url, written) == {"letters": 60, "unread": 60}
    assert run(url, "dlq", "undo", written).stdout == "60 put back\n"
    assert counted(url, written) == {"letters": 60, "undone": 60}
    assert count(url, target) == 1


@embedded
def test_a_property_that_loses_its_type_is_found_again(url: str, letters: str, receipts: Path, tmp_path: Path) -> None:
    fill(url, letters, 3)
    fix = tmp_path / "fix.py"
    typed = "{'n': 5, 'yes': True, 'half': 0.5}"
    fix.write_text(f"def fix(letter):\n    letter['properties'] |= {typed}\n    return letter\n")
    run(url, "dlq", "edit", letters, "--limit", "9", "--with", str(fix), "--yes")
    assert counted(url, receipt(receipts)) == {"letters": 3, "unread": 3}
    assert run(url, "dlq", "undo", receipt(receipts)).stdout == "3 put back\n"
    assert orders(url, letters) == [(number, 0) for number in range(3)]


@embedded
def test_a_full_disk_moves_nothing_without_a_receipt(url: str, letters: str, receipts: Path) -> None:
    """A limit on the size of files is a full disk, but for the number of its error."""
    fill(url, letters, 450)
    replay = ("replay", letters, "--to", f"{letters}.other", "--yes", "--url", url)
    with Forked[str]([*COMMAND, *replay], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (130_000, 130_000))
        _, said = process.communicate(timeout=100)
    assert process.returncode == 1, said
    assert "the receipt cannot be written: File too large; make room at " in said
    assert "Traceback" not in said
    moved = count(url, f"{letters}.other")
    assert moved < 450
    assert moved + count(url, letters) == 450
    found = counted(url, receipt(receipts))
    assert (found["unread"], found["left"]) == (moved, 450 - moved)
    assert run(url, "dlq", "resume", receipt(receipts)).stdout == f"{450 - moved} more\n"
    assert counted(url, receipt(receipts)) == {"letters": 450, "unread": 450}


@embedded
def test_a_disk_that_is_full_at_once_leaves_all_where_it_is(url: str, letters: str) -> None:
    fill(url, letters, 2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "write", _full)
        done = run(url, "dlq", "replay", letters, "--yes", code=2)
    assert "No space left on device; nothing was moved" in done.stderr
    assert len(orders(url, letters)) == 2


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


@on_each
def test_ctrl_c_ends_a_replay_and_its_receipt_has_what_was_done(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 120)
    command = [*COMMAND, "replay", letters, "--to", f"{letters}.other", "--rate", "60/s", "--yes", "--url", url]
    with Forked[str](command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        waited = threading.Event()
        while process.poll() is None and not count(url, f"{letters}.other"):
            waited.wait(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    moved = count(url, f"{letters}.other")
    assert f"at least {moved} letter{'s' * (moved != 1)} moved before" in said
    assert "interrupted" in said
    assert receipt(receipts) in said
    found = counted(url, receipt(receipts))
    assert (found["unread"], found.get("left", 0) + found.get("still", 0)) == (moved, 120 - moved)
    assert run(url, "dlq", "resume", receipt(receipts)).stdout == f"{120 - moved} more\n"
    assert (count(url, letters), count(url, f"{letters}.other")) == (0, 120)


@on_each
def test_two_operators_at_once_replay_each_letter_once(url: str, letters: str, receipts: Path) -> None:
    fill(url, letters, 160)
    command = [*COMMAND, "replay", letters, "--to", f"{letters}.other", "--yes", "--url", url]
    both = [Forked[str](command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=100) for each in both]
    assert sorted(json.loads(line)["order"] for line in _bodies(url, f"{letters}.other")) == list(range(160)), said
    assert count(url, letters) == 0
    moved = [int(out.split()[0]) if out else 0 for out, _ in said]
    assert sum(moved) == 160, said
    for file in receipts.iterdir():
        assert counted(url, str(file)).get("letters", 0) in moved


def _bodies(url: str, queue: str) -> list[Any]:
    with redelivery.connect(url) as connection, connection.session() as session, session.browser(queue) as browser:
        return [each.body for each in browser]
