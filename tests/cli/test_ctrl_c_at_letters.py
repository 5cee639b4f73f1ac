"""Ctrl-C while letters are moved, edited, purged, imported or put back: the receipt is named, the run is gone on with.

test_receipts_of_odd_letters sends the signal itself; here it comes right before a commit, or right after it.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, emptied, run, url
from tests.cli.test_receipts import counted, fill, orders, receipt
from tests.cli.test_receipts_of_odd_letters import Breaks

import redelivery

__all__ = ["emptied", "url"]  # fixtures
BATCH, LETTERS = 10, 14  # the second transaction has the rest
COMMANDS = {
    "move": ("--to", "{}.other", "--yes"),
    "edit": ("--limit", "1000", "--set", "body.price=5", "--to", "{}.other", "--yes"),
    "purge": ("--keep", "--yes"),
}
on_each = pytest.mark.parametrize(
    "url",
    [pytest.param(each, marks=() if each == "stomp-embedded" else pytest.mark.long_form) for each in LOOKED_AT],
    indirect=True,
)
at_a_commit = pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after it"])


@pytest.fixture
def letters(emptied: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A queue, and its name and ".other"."""
    for each in ("moving", "receipts.undoing"):
        monkeypatch.setattr(f"redelivery.operate.letters.{each}.BATCH", BATCH)
    name = f"ctrlc.{uuid4().hex[:8]}"
    emptied += [name, f"{name}.other"]
    return name


def interrupted(url: str, *arguments: str, commit: int, after: bool) -> str:
    """Run it, with Ctrl-C at that commit; what it said."""
    with pytest.MonkeyPatch.context() as patched:
        Breaks(commit, after=after, error=KeyboardInterrupt).around(patched, redelivery.Session, "commit")
        done = run(url, *arguments, code=130)
    assert "Traceback" not in done.stderr
    assert "interrupted" in done.stderr
    return done.stderr


@on_each
@at_a_commit
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_names_its_receipt_and_goes_on(url: str, letters: str, receipts: Path, command: str, after: bool) -> None:
    fill(url, letters, LETTERS)
    options = [each.format(letters) for each in COMMANDS[command]]
    said = interrupted(url, "dlq", command, letters, *options, commit=2, after=after)
    file = receipt(receipts)
    assert f"'redelivery dlq resume {file}' goes on" in said
    assert f"at least {BATCH} letters moved before; " in said  # also where the commit had just been made
    gone = LETTERS if after else BATCH
    assert len(orders(url, letters)) == LETTERS - gone
    more = LETTERS - gone
    if more:
        assert run(url, "dlq", "resume", file).stdout == f"{more} more\n"
    else:
        assert "nothing is left" in run(url, "dlq", "resume", file, code=1).stderr
    price = 5 if command == "edit" else 0
    there = [] if command == "purge" else [(number, price) for number in range(LETTERS)]
    assert (orders(url, letters), orders(url, f"{letters}.other")) == ([], there)
    run(url, "dlq", "undo", file)
    assert (orders(url, letters), orders(url, f"{letters}.other")) == ([(n, 0) for n in range(LETTERS)], [])


@on_each
@at_a_commit
def test_an_import_is_there_whole_or_not_at_all_and_goes_on(
    url: str, letters: str, receipts: Path, after: bool, tmp_path: Path
) -> None:
    fill(url, letters, LETTERS)
    file = tmp_path / "letters.jsonl"
    file.write_text(run(url, "dlq", "export", letters).stdout, encoding="utf-8")
    said = interrupted(url, "dlq", "import", f"{letters}.other", str(file), commit=1, after=after)
    assert f"'redelivery dlq resume {receipt(receipts)}' goes on" in said
    assert len(orders(url, f"{letters}.other")) == (LETTERS if after else 0)
    run(url, "dlq", "resume", receipt(receipts), code=1 if after else 0)
    assert orders(url, f"{letters}.other") == [(number, 0) for number in range(LETTERS)]
    assert counted(url, receipt(receipts)) == {"letters": LETTERS, "unread": LETTERS}


@on_each
@at_a_commit
def test_an_undo_goes_on(url: str, letters: str, receipts: Path, after: bool) -> None:
    fill(url, letters, LETTERS)
    run(url, "dlq", "move", letters, "--to", f"{letters}.other", "--yes")
    file = receipt(receipts)
    said = interrupted(url, "dlq", "undo", file, commit=2, after=after)
    assert f"'redelivery dlq undo {file}' goes on" in said
    run(url, "dlq", "undo", file, code=1 if after else 0)
    assert (orders(url, letters), orders(url, f"{letters}.other")) == ([(n, 0) for n in range(LETTERS)], [])
    assert counted(url, file) == {"letters": LETTERS, "undone": LETTERS}
