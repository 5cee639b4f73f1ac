"""Proves what a receipt says by counting its letters at the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.operate.letters.receipts.receipt import PlannedLetter, ReceiptEntry, RunReceipt, content_of, name_of
from redelivery.operate.letters.routes import REPLAYED
from redelivery.operate.management.browsing import browsed, looked_into_by

IMPORT: Final = "import"
MARKED: Final = ("replay", "edit")  # commands whose letters carry the name of their run


@dataclass(slots=True)
class Proof:
    """The letters of a receipt, counted by where they are now.

    ``unread``: at their target. ``gone``: neither there nor where they were taken from: somebody has received them, or
    they have expired or were deleted. ``still``: where they were, as their batch was not committed. ``returned``:
    where they were although their commit was confirmed. ``doubled``: in both places. ``undone``: put back by `undo`.
    ``back``: of the letters that are gone, how many are dead letters again. ``hidden``: sent to a topic.
    ``left``: letters that were meant, and that the run did not come to. ``taken``: what has left and was not put back,
    by its number in the receipt. ``halves``: what was surely sent, and is where it was all the same, as there is no
    transaction and its run was killed in between. ``contents``: of what is where they were taken from, but for what is
    back. ``dropped``: the numbers of those that are ``still`` there. ``put_back``: what was undone.
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
    halves: list[tuple[int, ReceiptEntry]] = field(default_factory=list, repr=False)
    contents: Counter[str] = field(default_factory=Counter, repr=False)
    dropped: list[int] = field(default_factory=list, repr=False)
    put_back: list[ReceiptEntry] = field(default_factory=list, repr=False)

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
    if receipt.planned and looked_into_by(connection) is not None:
        _forget_ids_of_deliveries(receipt)
    found, source = Proof(), _Place()
    with suppress(*(InvalidDestinationError,) if receipt.command == IMPORT else ()):  # its queue may not be there yet
        for letter in browsed(connection, receipt.queue):
            content = source.add(letter)
            if receipt.command in MARKED and letter.properties.get(REPLAYED) == receipt.run:
                found.back += 1
            else:
                found.contents[content] += 1
    targets = {to: _target(connection, receipt, to) for to in {each.to for each in receipt.entries} if to is not None}
    if receipt.command == IMPORT:
        _leave_out_others(receipt, targets)
    source.leave_out_others(receipt)
    ranks: Counter[str] = Counter()
    transacted = connection.metadata.capabilities.transactions
    for number, entry in enumerate(receipt.entries):
        if entry.dropped:
            continue
        if entry.undone or (entry.undone is None and _was_undone(receipt, entry, found, ranks)):
            found.undone += 1
            found.put_back.append(entry)
            continue
        place = None if entry.to is None else targets[entry.to]
        there = place is not None and place.take_content(entry.sent)
        if receipt.command == IMPORT or (entry.id is None and entry.sure):
            here = not entry.sure and not there
        else:
            here = source.take(entry.id, entry.content)
        found.hidden += not here and entry.to is not None and place is None
        found.gone += not here and not there and (entry.to is None or place is not None)
        half = (entry.alone or not transacted) and (entry.sure or (there and receipt.command in MARKED))
        _count(receipt, found, number, here=here, there=there, half=half)
    found.left = len(left_of(receipt, found)) - found.still - found.returned - found.doubled + len(found.halves)
    return found


def _forget_ids_of_deliveries(receipt: RunReceipt) -> None:
    """Leave out ids that letters have only when they are received: a management shows them without one."""
    planned = {each.id for each in receipt.planned}
    for number, entry in enumerate(receipt.entries):
        if entry.id not in planned:
            receipt.entries[number] = replace(entry, id=None)


def _count(receipt: RunReceipt, found: Proof, number: int, *, here: bool, there: bool, half: bool) -> None:
    entry = receipt.entries[number]
    if here and half:
        found.halves.append((number, entry))
    if not here:
        found.taken.append((number, entry))
        found.unread += there
    elif there:
        found.doubled += 1
    elif entry.sure:
        found.returned += 1
    else:
        found.still += 1
        found.dropped.append(number)


def _leave_out_others(receipt: RunReceipt, targets: Mapping[Destination, _Place | None]) -> None:
    """Do not count what was where letters were imported to before, and is the same."""
    for place in filter(None, targets.values()):
        for content, count in receipt.head["asked"].get("there", {}).items():
            for _ in range(count):
                place.take_content(content)


def _was_undone(receipt: RunReceipt, entry: ReceiptEntry, found: Proof, ranks: Counter[str]) -> bool:
    """Find out, of a letter of the batch in which `undo` was killed, whether it was put back: all of it was, or none.

    ``ranks``: how many of its content there are in this batch before it.
    """
    rank, now = ranks[entry.content], found.contents[entry.content]
    ranks[entry.content] += 1
    return now < entry.before - rank if receipt.command == IMPORT else now > entry.before + rank


class _Place:
    """The letters of one queue: by their ids, and by what their senders wrote."""

    def __init__(self) -> None:
        self._ids: Counter[str] = Counter()
        self._unnamed: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()

    def add(self, letter: Message) -> str:
        """Add a letter that is there; what its sender wrote."""
        content = content_of(letter)
        self._contents[content] += 1
        if letter.message_id is None:
            self._unnamed[content] += 1
        else:
            self._ids[letter.message_id] += 1
        return content

    def leave_out_others(self, receipt: RunReceipt) -> None:
        """Of letters without an id, count only those that are here more than there would be if all had left."""
        left = {each.content or "": each.there for each in receipt.planned if each.id is None}
        for each in receipt.entries:
            if each.id is None and each.content in left and not each.dropped:
                left[each.content] -= 1
        for content, count in left.items():
            self._unnamed[content] -= count

    def take(self, name: str | None, content: str) -> bool:
        """Check whether a letter is there by its id, or by its content where it has none, and count it once."""
        return _take(self._unnamed, content) if name is None else _take(self._ids, name)

    def take_content(self, content: str) -> bool:
        """Check whether a letter of this content is there, whatever its id, and count it once."""
        return _take(self._contents, content)


def _take(counted: Counter[str], key: str) -> bool:
    there = counted[key] > 0
    counted[key] -= there
    return there


def _target(connection: Connection, receipt: RunReceipt, to: Destination) -> _Place | None:
    """The letters of a run at their target; None: it cannot be looked into."""
    if not isinstance(to, Queue):
        return None
    place = _Place()
    with suppress(InvalidDestinationError):  # nothing is in a queue that is gone
        for letter in browsed(connection, to):
            if receipt.command not in MARKED or letter.properties.get(REPLAYED) == receipt.run:
                place.add(letter)
    return place


def left_of(receipt: RunReceipt, proof: Proof) -> list[PlannedLetter]:
    """The letters that were meant, and neither have left nor were put back; the ids of several may be the same."""
    away = [entry for _, entry in (*proof.taken, *proof.halves)] + proof.put_back
    taken = Counter(name_of(entry.id, entry.content) for entry in away)
    return [each for each in receipt.planned if not _take(taken, each.name)]
