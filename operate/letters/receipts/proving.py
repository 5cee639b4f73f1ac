"""Proves what a receipt says by counting its letters at the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.operate.letters.receipts.receipt import PlannedLetter, ReceiptEntry, RunReceipt, content_of, name_of
from redelivery.operate.letters.routes import REPLAYED
from redelivery.operate.management.browsing import browsed, looked_into_by

IMPORT: Final = "import"


@dataclass(slots=True)
class Proof:
    """The letters of a receipt, counted by where they are now.

    ``unread``: at their target. ``gone``: neither there nor where they were taken from: somebody has received them, or
    they have expired or were deleted. ``still``: where they were, as their batch was not committed. ``returned``:
    where they were although their commit was confirmed. ``doubled``: in both places, or twice where a file was
    imported to. ``undone``: put back by `undo`.
    ``back``: of the letters that are gone, how many are dead letters again. ``hidden``: sent to a topic.
    ``left``: letters that were meant, and that the run did not come to. ``taken``: what has left and was not put back,
    by its number in the receipt. ``halves``: what was surely sent, and is where it was all the same, as there is no
    transaction and its run was killed in between, or as the broker has torn one. ``copies``: what is where it was, put
    back or never removed, and at its target as well. ``contents``: of what is where they were taken from, but for what
    is back. ``dropped``: the numbers of those that are ``still`` there. ``put_back``: what was undone.
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
    copies: list[tuple[int, ReceiptEntry]] = field(default_factory=list, repr=False)
    contents: Counter[str] = field(default_factory=Counter, repr=False)
    dropped: list[int] = field(default_factory=list, repr=False)
    put_back: list[tuple[int, ReceiptEntry]] = field(default_factory=list, repr=False)

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
            content = source.add(letter, receipt.number_back(letter))
            if receipt.mark == REPLAYED and receipt.is_of(letter):
                found.back += 1
            else:
                found.contents[content] += 1
    targets = {to: _target(connection, receipt, to) for to in {each.to for each in receipt.entries} if to is not None}
    if receipt.command == IMPORT:
        _leave_out_others(receipt, targets)
    source.leave_out_others(receipt)
    away = _not_put_back(receipt, found, source)
    here = {each for each in away if receipt.command != IMPORT and source.holds(receipt.entries[each])}
    transacted = connection.metadata.capabilities.transactions
    for number in sorted(away, key=here.__contains__):  # of letters that say the same, first those that are not here
        if number in here:
            _count_here(receipt, found, targets, number, transacted=transacted)
        else:
            _count_away(receipt, found, targets, number)
    stay = found.still + found.returned + found.doubled - len(found.halves)
    found.left = len(left_of(receipt, found)) - stay
    for number, entry in found.put_back:
        if receipt.mark is not None and _take_sent(targets, entry):
            found.doubled += 1
            found.undone -= 1
            found.copies.append((number, entry))
    if receipt.command == IMPORT:
        found.doubled += _sent_twice(receipt, targets)
    return found


def _forget_ids_of_deliveries(receipt: RunReceipt) -> None:
    """Leave out ids that letters have only when they are received: a management shows them without one."""
    planned = {each.id for each in receipt.planned}
    for number, entry in enumerate(receipt.entries):
        if entry.id not in planned:
            receipt.entries[number] = replace(entry, id=None)


def _not_put_back(receipt: RunReceipt, found: Proof, source: _Place) -> list[int]:
    """The numbers of those that have left, or perhaps; the others are counted as what `undo` has put back."""
    ranks: Counter[str] = Counter()
    numbers = []
    for number, entry in enumerate(receipt.entries):
        if entry.dropped:
            continue
        if entry.undone or (entry.undone is None and _was_undone(receipt, number, found, source, ranks)):
            found.undone += 1
            found.put_back.append((number, entry))
        else:
            numbers.append(number)
    return numbers


def _count_away(receipt: RunReceipt, found: Proof, targets: _Targets, number: int) -> None:
    """Count one that is not where it was; or one of a file, which is nowhere else."""
    entry = receipt.entries[number]
    there = _take_sent(targets, entry)
    if receipt.command == IMPORT and not entry.sure and not there:
        found.still += 1
        found.dropped.append(number)
        return
    found.taken.append((number, entry))
    hidden = entry.to is not None and targets[entry.to] is None
    found.unread += there
    found.hidden += hidden
    found.gone += not there and not hidden


def _count_here(receipt: RunReceipt, found: Proof, targets: _Targets, number: int, *, transacted: bool) -> None:
    """Count one that is where it was."""
    entry = receipt.entries[number]
    there = _take_sent(targets, entry)
    copied = there and receipt.mark is not None  # the same of another sender is no reason to take one away
    if copied or (entry.sure and (entry.alone or not transacted)):
        found.halves.append((number, entry))
    if copied:
        found.copies.append((number, entry))
    if there:
        found.doubled += 1
    elif entry.sure:
        found.returned += 1
    else:
        found.still += 1
        found.dropped.append(number)


def _take_sent(targets: _Targets, entry: ReceiptEntry) -> bool:
    """Check whether what was sent for a letter is at its target, and count it once."""
    place = None if entry.to is None else targets[entry.to]
    return place is not None and place.take_content(entry.sent)


def _sent_twice(receipt: RunReceipt, targets: _Targets) -> int:
    """The letters of a file that are there once more, of those whose send was in doubt: it may have come late."""
    if "there" not in receipt.head["asked"]:
        return 0
    doubted = [each for each in receipt.entries if each.dropped or not each.sure]
    return sum(_take_sent(targets, each) for each in doubted)


def _leave_out_others(receipt: RunReceipt, targets: _Targets) -> None:
    """Do not count what was where letters were imported to before, and is the same."""
    for place in filter(None, targets.values()):
        for content, count in receipt.head["asked"].get("there", {}).items():
            for _ in range(count):
                place.take_content(content)


def _was_undone(receipt: RunReceipt, number: int, found: Proof, source: _Place, ranks: Counter[str]) -> bool:
    """Find out, of a letter of the batch in which `undo` was killed, whether it was put back.

    It says so itself; but not after an import: then all of the batch was, or none. ``ranks``: how many of its content
    there are in this batch before it.
    """
    entry = receipt.entries[number]
    if entry.before is None:
        return number in source.put_back
    rank, now = ranks[entry.content], found.contents[entry.content]
    ranks[entry.content] += 1
    return now < entry.before - rank if receipt.command == IMPORT else now > entry.before + rank


class _Place:
    """The letters of one queue: by their ids, and by what their senders wrote."""

    def __init__(self) -> None:
        self._ids: Counter[str] = Counter()
        self._unnamed: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()
        self.put_back: set[int] = set()

    def add(self, letter: Message, back: int | None = None) -> str:
        """Add a letter that is there; what its sender wrote. ``back``: its number, where it was put back."""
        content = content_of(letter)
        self._contents[content] += 1
        if back is not None:
            self.put_back.add(back)
        elif letter.message_id is None:
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

    def holds(self, entry: ReceiptEntry) -> bool:
        """Check whether a letter is still there by its id, or by its content where it has none, and count it once."""
        if entry.id is None:
            return not entry.sure and _take(self._unnamed, entry.content)
        return _take(self._ids, entry.id)

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
            if receipt.is_of(letter):
                place.add(letter)
    return place


_Targets: TypeAlias = Mapping[Destination, _Place | None]


def left_of(receipt: RunReceipt, proof: Proof) -> list[PlannedLetter]:
    """The letters that were meant, and neither have left nor were put back; the ids of several may be the same."""
    away = [entry for _, entry in (*proof.taken, *proof.halves, *proof.put_back)]
    taken = Counter(name_of(entry.id, entry.content) for entry in away)
    return [each for each in receipt.planned if not _take(taken, each.name)]
