"""Undoes a run: what is still unread at its target is put back, or what a purge has kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Queue
from redelivery.model.errors import ConfigError
from redelivery.model.messages import Message
from redelivery.operate.letters.moving import BATCH, Mover, add_to, plan
from redelivery.operate.letters.receipts.proving import IMPORT, Proof, verify
from redelivery.operate.letters.receipts.receipt import ReceiptEntry, RunReceipt, as_bytes, content_of
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.operate.letters.records import failed_properties, fit, from_record
from redelivery.operate.letters.routes import MARKS, REPLAYED, REPLAYS, Leaving, NoWayError, replays_of
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import kept
from redelivery.policies.dead_letter_headers import RUN, application_properties, copy_properties


def undo(
    connection: Connection,
    receipt: RunReceipt,
    writer: ReceiptWriter,
    moved: Callable[[int], None] = lambda _: None,
    missed: Callable[[int], None] = lambda _: None,
) -> int:
    """Put back what is still unread at its target, or what a purge has kept; how many letters that were.

    ``missed`` gets the number of those that are not at their target, where there are some.

    Each comes back as the dead letter that it was: its origin, cause, count and time are on it again. A letter that is
    in both places, as there is no transaction or the broker has torn one, is taken away from its target.

    Raises:
        ConfigError: the connection is to another broker; or a purge kept nothing.
        JMSError: the broker refused; what was not put back is where it was.
    """
    with kept(connection, receipt.places):
        proof = verify(connection, receipt)
        if receipt.command == "purge":
            return _unpurge(connection, receipt, proof, writer, moved)
        if proof.gone or proof.hidden:
            missed(proof.gone + proof.hidden)
        return _undo(connection, receipt, proof, writer, moved)


def _undo(
    connection: Connection, receipt: RunReceipt, proof: Proof, writer: ReceiptWriter, moved: Callable[[int], None]
) -> int:
    count, copies = 0, frozenset(number for number, _ in proof.copies)
    meant = [*proof.taken, *proof.copies]
    for to in dict.fromkeys(entry.to for _, entry in meant if isinstance(entry.to, Queue)):
        entries = [each for each in meant if each[1].to == to]
        selection = Selection(to)
        planned = plan(connection, selection, _Restoring(receipt, entries, copies))
        if planned.ids:
            restoring, before = _Restoring(receipt, entries, copies), count
            undoing = _Undoing(writer, receipt, restoring, proof.contents)
            mover = Mover(connection, selection, restoring, moved=partial(add_to, moved, before), receipt=undoing)
            count += mover.move(planned)
    return count


class _Restoring:
    """The route back to the dead-letter queue, of letters of a receipt; the others stay.

    ``copies``: the numbers of those that are there as well, and are only taken away.
    """

    def __init__(
        self, receipt: RunReceipt, entries: Sequence[tuple[int, ReceiptEntry]], copies: frozenset[int]
    ) -> None:
        self._receipt = receipt
        self.copies = copies
        self._entries: dict[str, list[tuple[int, ReceiptEntry]]] = {}
        for each in reversed(entries):
            self._entries.setdefault(each[1].sent, []).append(each)
        self.taken: list[tuple[int, ReceiptEntry]] = []

    def __call__(self, letter: Message) -> Leaving | None:
        entries = self._entries.get(content_of(letter)) if self._receipt.is_of(letter) else None
        if not entries:
            raise NoWayError(f"letter {letter.message_id} is not of this receipt")
        number, entry = entries.pop()
        self.taken.append((number, entry))
        if self._receipt.command == IMPORT or number in self.copies:
            return None
        kept = entry.letter or {}
        message = from_record(as_bytes(kept)) if "body" in kept else letter.copy()
        if self._receipt.mark == REPLAYED:
            replays = replays_of(message) if "body" in kept else replays_of(message) - 1
            message.adopt(_as_failed(message, kept.get("dead_letter"), replays))
        message.adopt({**message.properties, RUN: self._receipt.name_back(number)})
        return Leaving(message, self._receipt.queue, letter.priority, letter.persistent)


class _Undoing:
    """Writes what `undo` does into the receipt whose letters it puts back."""

    def __init__(
        self, writer: ReceiptWriter, receipt: RunReceipt, restoring: _Restoring, there: Mapping[str, int]
    ) -> None:
        self._writer = writer
        self._restoring = restoring
        self._there = Counter(there)
        self._imported = receipt.command == IMPORT

    def before(self, letters: Sequence[tuple[Message, Leaving | None]], *, alone: bool = False) -> None:
        """Write which letters the next commit puts back."""
        del letters, alone
        batch = [each for each in self._restoring.taken if each[0] not in self._restoring.copies]
        counted = {"before": [self._there[entry.content] for _, entry in batch]} if self._imported else {}
        self._writer.write({"undoing": [number for number, _ in batch], **counted})

    def after(self) -> None:
        """Write that it was confirmed."""
        self._writer.write({"undone": [number for number, _ in self._restoring.taken]})
        self._there.subtract(entry.content for _, entry in self._restoring.taken)
        self._restoring.taken = []


def _unpurge(
    connection: Connection, receipt: RunReceipt, proof: Proof, writer: ReceiptWriter, moved: Callable[[int], None]
) -> int:
    entries = [each for each in proof.taken if each[1].letter is not None]
    if proof.taken and not entries:
        raise ConfigError(f"{receipt.path}: the letters were not kept; purge --keep writes them into the receipt")
    transacted = connection.metadata.capabilities.transactions
    size, count = BATCH if transacted else 1, 0
    with connection.session("transacted" if transacted else "auto") as session:
        producer = session.producer(receipt.queue)
        for at in range(0, len(entries), size):
            batch = entries[at : at + size]
            writer.write({"undoing": [number for number, _ in batch]})
            for number, entry in batch:
                kept = entry.letter or {}
                message = from_record(as_bytes(kept))
                said = _as_failed(message, kept.get("dead_letter"), replays_of(message))
                message.adopt({**said, RUN: receipt.name_back(number)})
                producer.send(fit(message, connection), priority=kept["priority"], persistent=kept["persistent"])
            if transacted:
                session.commit()
            writer.write({"undone": [number for number, _ in batch]})
            count += len(batch)
            moved(count)
    return count


def _as_failed(message: Message, said: Mapping[str, Any] | None, replays: int) -> dict[str, Any]:
    """The properties of a letter that is put back: it says what it said before, whichever broker's way that was."""
    own = {name: value for name, value in application_properties(message.properties).items() if name not in MARKS}
    if replays > 0:
        own[REPLAYS] = replays
    return copy_properties(own, failed_properties(said))
