"""Letters in both places: their transaction was torn, so that what was sent is kept and what was taken is released.

Artemis 2.44 can do so when it is stopped while it commits. A receipt says it, and `resume` or `undo` mends it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT, bodies, emptied, run, url
from tests.cli.test_receipts import counted, receipt
from tests.cli.test_receipts_of_odd_letters import nameless

import redelivery
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session

__all__ = ["emptied", "url"]  # fixtures
BATCH, LETTERS = 20, 36  # the second transaction has the rest
TORN = LETTERS - BATCH
on_each = pytest.mark.parametrize(
    "url",
    [pytest.param(each, marks=() if "embedded" in each else pytest.mark.long_form) for each in LOOKED_AT],
    indirect=True,
)


@pytest.fixture
def letters(url: str, emptied: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A queue of letters, some of which say the same; they go to its name and ".other"."""
    for each in ("moving", "receipts.undoing"):
        monkeypatch.setattr(f"redelivery.operate.letters.{each}.BATCH", BATCH)
    name = f"torn.{uuid4().hex[:8]}"
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        for number in range(LETTERS):
            body = "the same" if number % 3 else json.dumps({"order": number})
            session.producer(name).send(body, properties={"originalDestination": f"queue://{name}.origin"})
        session.commit()
    emptied += [name, f"{name}.other"]
    return name


class Tearing:
    """Tears the ``number``-th commit: what was taken is released, and what was sent comes all the same."""

    def __init__(self, url: str, number: int) -> None:
        self._url, self._left = url, number
        self.sent: list[tuple[redelivery.Message, Any, dict[str, Any]]] = []

    def around(self, patched: pytest.MonkeyPatch, *, late: bool = False) -> None:
        """``late``: what was sent does not come until `deliver`."""
        send, commit = Producer.send, Session.commit

        def noted(producer: Producer, message: redelivery.Message, to: Any = None, **how: Any) -> redelivery.Message:
            if "priority" in how:  # a question to the broker's management has none
                self.sent.append((message.copy(), to or producer.destination, how))
            return send(producer, message, to, **how)

        def torn(session: Session) -> None:
            self._left -= 1
            if self._left:
                self.sent.clear()
                commit(session)
                return
            session.rollback()
            patched.undo()
            if not late:
                self.deliver()
            raise redelivery.ConnectionLostError("torn")

        patched.setattr(Producer, "send", noted)
        patched.setattr(Session, "commit", torn)

    def deliver(self) -> None:
        with redelivery.connect(self._url) as connection, connection.session() as session:
            for message, to, how in self.sent:
                session.producer().send(message, to, **how)


def tear(url: str, *command: str, number: int = 2) -> None:
    with pytest.MonkeyPatch.context() as patched:
        Tearing(url, number).around(patched)
        assert "torn" in run(url, "dlq", *command, code=1).stderr


def count(url: str, queue: str) -> int:
    with redelivery.connect(url) as connection, connection.session() as session, session.browser(queue) as browser:
        return sum(1 for _ in browser)


def command(kind: str, letters: str) -> tuple[str, ...]:
    more = {"replay": (), "move": (), "edit": ("--limit", "1000", "--set", "properties.fixed=yes")}[kind]
    return (kind, letters, "--to", f"{letters}.other", "--yes", *more)


@on_each
@pytest.mark.parametrize("mend", ["resume", "undo"])
@pytest.mark.parametrize("kind", ["replay", "move", "edit"])
def test_a_letter_in_both_places_is_reported_and_taken_away_from_one(
    url: str, letters: str, receipts: Path, kind: str, mend: str
) -> None:
    other = f"{letters}.other"
    tear(url, *command(kind, letters))
    file = receipt(receipts)
    assert (count(url, letters), count(url, other)) == (TORN, LETTERS)
    assert counted(url, file, code=1) == {"letters": LETTERS, "unread": BATCH, "doubled": TORN}
    run(url, "dlq", mend, file)
    left = 0 if mend == "resume" else LETTERS
    assert (count(url, letters), count(url, other)) == (left, LETTERS - left)
    assert counted(url, file) == {"letters": LETTERS, "unread" if mend == "resume" else "undone": LETTERS}


@on_each
@pytest.mark.parametrize("kind", ["replay", "move", "edit"])
def test_an_undo_that_was_torn_is_reported_and_gone_on_with(url: str, letters: str, receipts: Path, kind: str) -> None:
    other = f"{letters}.other"
    run(url, "dlq", *command(kind, letters))
    file = receipt(receipts)
    tear(url, "undo", file)
    assert (count(url, letters), count(url, other)) == (LETTERS, TORN)
    assert counted(url, file, code=1) == {"letters": LETTERS, "undone": BATCH, "doubled": TORN}
    assert run(url, "dlq", "undo", file).stdout == f"{TORN} put back\n"
    assert (count(url, letters), count(url, other)) == (LETTERS, 0)
    assert counted(url, file) == {"letters": LETTERS, "undone": LETTERS}


@pytest.mark.parametrize("url", ["amqp-embedded"], indirect=True)
@pytest.mark.parametrize("mend", ["resume", "undo"])
def test_letters_of_others_without_an_id_are_taken_away_from_one_place(
    request: pytest.FixtureRequest, url: str, letters: str, receipts: Path, mend: str
) -> None:
    other = f"{letters}.other"
    nameless(request, url, letters, 45)  # instead of the others
    tear(url, *command("move", letters))
    assert counted(url, receipt(receipts), code=1) == {"letters": 40, "unread": 20, "doubled": 20, "left": 5}
    said = run(url, "dlq", "verify", receipt(receipts), code=1).stdout
    assert "20 IN BOTH PLACES: 'redelivery dlq resume' or 'undo' takes one of the two away" in said
    run(url, "dlq", mend, receipt(receipts))
    assert (count(url, letters), count(url, other)) == ((0, 45) if mend == "resume" else (45, 0))
    counted(url, receipt(receipts))


@on_each
def test_what_others_send_that_says_the_same_is_not_taken_for_a_letter_in_both_places(
    url: str, letters: str, receipts: Path
) -> None:
    other = f"{letters}.other"
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(other).send("the same", properties={"originalDestination": f"queue://{letters}.origin"})
    with pytest.MonkeyPatch.context() as patched:
        Tearing(url, 1).around(patched, late=True)  # so that nothing has left
        run(url, "dlq", *command("move", letters), code=1)
    file = receipt(receipts)
    assert counted(url, file) == {"letters": BATCH, "still": BATCH, "left": TORN}
    assert run(url, "dlq", "resume", file).stdout == f"{LETTERS} more\n"
    assert run(url, "dlq", "undo", file).stdout == f"{LETTERS} put back\n"
    assert (count(url, letters), count(url, other)) == (LETTERS, 1)


@on_each
def test_a_moved_letter_says_by_which_run_until_it_is_replayed(url: str, letters: str, receipts: Path) -> None:
    other = f"{letters}.other"
    run(url, "dlq", *command("move", letters))
    name = json.loads(Path(receipt(receipts)).read_text(encoding="utf-8").partition("\n")[0])["run"]
    with redelivery.connect(url) as connection, connection.session() as session:
        with session.browser(other) as browser:
            assert {each.properties["redeliveryRun"] for each in browser} == {name}
        run(url, "dlq", "replay", other, "--to", letters, "--yes")
        with session.browser(letters) as browser:
            assert not [each for each in browser if "redeliveryRun" in each.properties]


@on_each
def test_a_file_whose_send_comes_after_it_was_sent_again_is_reported(
    url: str, letters: str, receipts: Path, tmp_path: Path
) -> None:
    file, other = tmp_path / "letters", f"{letters}.other"
    run(url, "dlq", "export", letters, "--output", str(file))
    bodies(url, other, 0.01)  # makes the queue
    with pytest.MonkeyPatch.context() as patched:
        tearing = Tearing(url, 1)
        tearing.around(patched, late=True)
        run(url, "dlq", "import", other, str(file), code=1)
    assert run(url, "dlq", "resume", receipt(receipts)).stdout == f"{LETTERS} more\n"
    assert counted(url, receipt(receipts)) == {"letters": LETTERS, "unread": LETTERS}
    tearing.deliver()
    assert counted(url, receipt(receipts), code=1) == {"letters": LETTERS, "unread": LETTERS, "doubled": LETTERS}
