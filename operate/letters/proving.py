"""Proves what a receipt says by counting at the broker, undoes it, and goes on with what a kill has cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue, read_destination
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.model.values import to_epoch_ms
from redelivery.operate.letters.editing import Edited
from redelivery.operate.letters.moving import BATCH, MovePlan, Mover, plan
from redelivery.operate.letters.receipts import ReceiptEntry, ReceiptWriter, RunReceipt, content_of
from redelivery.operate.letters.records import from_record
from redelivery.operate.letters.routes import (
    MARKS,
    REPLAYED,
    Leaving,
    NoWayError,
    Route,
    back,
    elsewhere,
    nowhere,
)
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import browsed
from redelivery.policies.dead_letter_headers import application_properties, copy_properties, dead_letter_properties

_MARKED: Final = ("replay", "edit")  # commands whose letters carry the name of their run


@dataclass(slots=True)
class Proof:
    """The letters of a receipt, counted by where they are now.

    ``unread``: at their target. ``gone``: neither there nor where they were taken from: somebody has received them, or
    they have expired or were deleted. ``still``: where they were, as their batch was not committed. ``returned``:
    where they were although their commit was confirmed. ``doubled``: in both places. ``undone``: put back by `undo`.
    ``back``: of the letters that are gone, how many are dead letters again. ``hidden``: sent to a topic.
    ``left``: letters that were meant, and that the run did not come to. ``taken``: what has left and was not put back,
    by its number in the receipt.
    """

    unread: int = 0
    gone: int = 0
    still: int = 0
    returned: int = 0
    doubled: int = 0
    undone: int = 0
    back: int = 0
    hidden: int = 0
    left: int = 0
    taken: list[tuple[int, ReceiptEntry]] = field(default_factory=list, repr=False)

    @property
    def holds(self) -> bool:
        """True: nothing is in two places, and what was said to have left has left."""
        return not self.doubled and not self.returned


def verify(connection: Connection, receipt: RunReceipt) -> Proof:
    """Count the letters of a receipt again, and take nothing.

    Raises:
        ConfigError: the connection is to another broker.
        JMSError: as `Selection.browse`; the queue that they were taken from must be one to look into.
    """
    receipt.check_broker(connection)
    found, source = Proof(), _Place()
    for letter in browsed(connection, receipt.queue):
        source.add(letter)
        if receipt.command in _MARKED and letter.properties.get(REPLAYED) == receipt.run:
            found.back += 1
    targets = {to: _target(connection, receipt, to) for to in {each.to for each in receipt.entries} if to is not None}
    for number, entry in enumerate(receipt.entries):
        if entry.undone or (entry.undone is None and source.has(entry.content)):
            found.undone += 1
            continue
        here = source.take(entry.id, entry.content)
        place = None if entry.to is None else targets[entry.to]
        there = place is not None and place.take(None, entry.sent)
        if here:
            found.doubled += there
            found.returned += entry.sure and not there
            found.still += not entry.sure and not there
            continue
        found.taken.append((number, entry))
        if entry.to is not None and place is None:
            found.hidden += 1
        else:
            found.unread += there
            found.gone += not there
    found.left = max(0, receipt.meant.total() - len(receipt.entries))
    return found


def undo(
    connection: Connection, receipt: RunReceipt, writer: ReceiptWriter, moved: Callable[[int], None] = lambda _: None
) -> int:
    """Put back what is still unread at its target, or what a purge has kept; how many letters that were.

    Each comes back as the dead letter that it was: its origin, cause, count and time are on it again.

    Raises:
        ConfigError: the connection is to another broker; or a purge kept nothing.
        JMSError: the broker refused; what was not put back is where it was.
    """
    proof = verify(connection, receipt)
    if receipt.command == "purge":
        return _unpurge(connection, receipt, proof, writer, moved)
    count = 0
    for to in dict.fromkeys(entry.to for _, entry in proof.taken if isinstance(entry.to, Queue)):
        entries = [each for each in proof.taken if each[1].to == to]
        selection = Selection(to)
        planned = plan(connection, selection, _Restoring(receipt, entries))
        if planned.ids:
            restoring, before = _Restoring(receipt, entries), count
            undoing = _Undoing(writer, restoring)
            mover = Mover(connection, selection, restoring, moved=partial(_add, moved, before), receipt=undoing)
            count += mover.move(planned)
    return count


def resume(
    connection: Connection, receipt: RunReceipt, writer: ReceiptWriter, moved: Callable[[int], None] = lambda _: None
) -> int:
    """Go on with a run that was killed: with those of its letters that are still where they were; how many have left.

    Raises:
        ConfigError: the connection is to another broker; or the letters that are left have no ids.
        JMSError: the broker refused.
    """
    proof = verify(connection, receipt)
    taken = Counter(entry.id for _, entry in proof.taken) + Counter(each.id for each in receipt.entries if each.undone)
    left = receipt.meant - taken
    ids = frozenset(each for each in left if each is not None)
    if left[None] and not ids:
        raise ConfigError("what is left of it has no ids: run the command again")
    selection, route = Selection(receipt.queue, ids=ids), _route(receipt)
    planned = plan(connection, selection, route) if ids else MovePlan([])
    mover = Mover(connection, selection, route, moved=moved, receipt=writer)
    count = mover.move(planned)
    writer.end(len(receipt.entries) + count)
    return count


class _Place:
    """The letters of one queue: by their ids, and those that have none by what their senders wrote."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._ids: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()

    def add(self, letter: Message, *, by_content: bool = False) -> None:
        """Add a letter that is there."""
        content = content_of(letter)
        self._all.add(content)
        if letter.message_id is None or by_content:
            self._contents[content] += 1
        else:
            self._ids[letter.message_id] += 1

    def has(self, content: str) -> bool:
        """Check whether a letter that was written so is there, whatever its id."""
        return content in self._all

    def take(self, name: str | None, content: str) -> bool:
        """Check whether it is there, and count it once."""
        counted, key = (self._ids, name) if name is not None and self._ids[name] else (self._contents, content)
        if not counted[key]:
            return False
        counted[key] -= 1
        return True


def _target(connection: Connection, receipt: RunReceipt, to: Destination) -> _Place | None:
    """The letters of a run at their target; None: it cannot be looked into."""
    if not isinstance(to, Queue):
        return None
    place = _Place()
    with suppress(InvalidDestinationError):  # nothing is in a queue that is gone
        for letter in browsed(connection, to):
            if receipt.command not in _MARKED or letter.properties.get(REPLAYED) == receipt.run:
                place.add(letter, by_content=True)
    return place


def _add(moved: Callable[[int], None], before: int, more: int) -> None:
    moved(before + more)


def _route(receipt: RunReceipt) -> Route:
    match receipt.command:
        case "replay":
            return back(receipt.to, receipt.run)
        case "move" if receipt.to is not None:
            return elsewhere(receipt.to)
        case "purge":
            return nowhere()
        case "edit":
            return _as_edited(receipt)
    raise ConfigError(f"{receipt.path}: a run of {receipt.command} cannot be gone on with")


def _as_edited(receipt: RunReceipt) -> Route:
    def leave(letter: Message) -> Leaving | None:
        after = receipt.edited.get(letter.message_id)
        return Edited(lambda _: None if after is None else dict(after), receipt.to, receipt.run)(letter)

    return leave


class _Restoring:
    """The route back to the dead-letter queue, of letters of a receipt; the others stay."""

    def __init__(self, receipt: RunReceipt, entries: Sequence[tuple[int, ReceiptEntry]]) -> None:
        self._receipt = receipt
        self._entries: dict[str, list[tuple[int, ReceiptEntry]]] = {}
        for each in reversed(entries):
            self._entries.setdefault(each[1].sent, []).append(each)
        self.taken: list[int] = []

    def __call__(self, letter: Message) -> Leaving | None:
        marked = self._receipt.command not in _MARKED or letter.properties.get(REPLAYED) == self._receipt.run
        entries = self._entries.get(content_of(letter)) if marked else None
        if not entries:
            raise NoWayError(f"letter {letter.message_id} is not of this receipt")
        number, entry = entries.pop()
        self.taken.append(number)
        kept = entry.letter or {}
        message = from_record(kept) if "body" in kept else letter.copy()
        if self._receipt.command in _MARKED:
            message.adopt(_as_failed(message, kept.get("dead_letter")))
        return Leaving(message, self._receipt.queue, letter.priority, letter.persistent)


class _Undoing:
    """Writes what `undo` does into the receipt whose letters it puts back."""

    def __init__(self, writer: ReceiptWriter, restoring: _Restoring) -> None:
        self._writer = writer
        self._restoring = restoring

    def before(self, letters: Sequence[tuple[Message, Leaving | None]]) -> None:
        """Write which letters the next commit puts back."""
        del letters
        self._writer.write({"undoing": self._restoring.taken})

    def after(self) -> None:
        """Write that it was confirmed."""
        self._writer.write({"undone": self._restoring.taken})
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
            numbers = [number for number, _ in batch]
            writer.write({"undoing": numbers})
            for _, entry in batch:
                kept = entry.letter or {}
                message = from_record(kept)
                message.adopt(_as_failed(message, kept.get("dead_letter")))
                producer.send(message, priority=kept["priority"], persistent=kept["persistent"])
            if transacted:
                session.commit()
            writer.write({"undone": numbers})
            count += len(batch)
            moved(count)
    return count


def _as_failed(message: Message, said: Mapping[str, Any] | None) -> dict[str, Any]:
    """The properties of a letter that is put back: it says what it said before, whichever broker's way that was."""
    own = {name: value for name, value in application_properties(message.properties).items() if name not in MARKS}
    if said is None or said["origin"] is None:
        return own
    at = None if said["at"] is None else to_epoch_ms(datetime.fromisoformat(said["at"]))
    origin, cause = read_destination(said["origin"]), said["cause"] or said["exception"] or ""
    return copy_properties(own, dead_letter_properties(cause, origin, 0, said["count"] or 0, failed_at_ms=at))
