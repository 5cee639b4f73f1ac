"""Goes on with a run that was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.model.messages import Message
from redelivery.operate.letters.canary import check_watchable
from redelivery.operate.letters.editing import Edited
from redelivery.operate.letters.moving import MovePlan, Mover, add_to, plan
from redelivery.operate.letters.receipts.importing import send
from redelivery.operate.letters.receipts.proving import IMPORT, Proof, left_of, verify
from redelivery.operate.letters.receipts.receipt import PlannedLetter, ReceiptEntry, RunReceipt, content_of
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.operate.letters.records import from_record
from redelivery.operate.letters.replaying.planned import PlannedReplays
from redelivery.operate.letters.replaying.widening import Canary, WatchingStage, Widening, not_shown
from redelivery.operate.letters.routes import Leaving, Route, back, elsewhere, nowhere
from redelivery.operate.letters.selection import Selection
from redelivery.operate.shown import number_of


def resume(
    connection: Connection,
    receipt: RunReceipt,
    writer: ReceiptWriter,
    moved: Callable[[int], None] = lambda _: None,
    watching: WatchingStage = not_shown,
) -> int:
    """Go on with a run that was killed: with those of its letters that are still where they were; how many have left.

    What is in both places, as there is no transaction, is taken away from where it was: that is one of them, too. A
    replay with canaries goes on in its stages; ``watching`` shows that one waits.

    Raises:
        CanaryError: a canary is back, or nobody takes them.
        ConfigError: the connection is to another broker; or the run was killed before it had begun.
        JMSError: the broker refused.
    """
    if receipt.unplanned:
        raise ConfigError(f"{receipt.path}: it was killed while it was planned, so nothing has left: run it again")
    if receipt.unseen:
        return 0 if receipt.ended else _resume_unseen(connection, receipt, writer, moved)
    proof = verify(connection, receipt)
    if proof.dropped:
        writer.write({"dropped": proof.dropped})
    left = left_of(receipt, proof)
    if receipt.command == IMPORT:
        return _import(connection, receipt, left, writer, moved)
    count = _finish_halves(connection, receipt, proof, writer)
    selection, route = replace(_selected(receipt.queue, left), limit=len(left) or None), _route(receipt)
    canary = Canary.asked(receipt.head["asked"])
    letters = PlannedReplays(watched=canary is not None)
    if left and (planned := plan(connection, selection, route, letters.note)).ids:
        if canary is not None:
            count += _in_stages(
                connection, receipt, proof, canary, planned, letters, selection, writer, moved, watching
            )
        else:
            mover = Mover(connection, selection, route, moved=partial(add_to, moved, count), receipt=writer)
            count += mover.move(planned)
    missing = len(left) - count + len(proof.halves)
    if not missing and not receipt.ended:
        writer.end(len(proof.taken) + count)
    if missing:
        raise JMSError(
            f"{count} more; {number_of(missing, 'letter that was meant is', 'letters that were meant are')} not on "
            f"{receipt.queue} now: held or taken by somebody, or not persistent and the broker was started again; "
            "where it was killed just now, try again in a few seconds"
        )
    return count


def _in_stages(
    connection: Connection,
    receipt: RunReceipt,
    proof: Proof,
    canary: Canary,
    planned: MovePlan,
    letters: PlannedReplays,
    selection: Selection,
    writer: ReceiptWriter,
    moved: Callable[[int], None],
    watching: WatchingStage,
) -> int:
    """Send what is left of a replay with canaries; those that were sent before are watched, too."""
    sent = [entry for _, entry in (*proof.taken, *proof.halves)]
    targets = dict.fromkeys(each.to for each in sent if each.to is not None)
    check_watchable(connection, [*targets, *(each.target for each in letters)])
    count = 0

    def move(part: MovePlan, between: Callable[[int], None]) -> int:
        nonlocal count
        before = count

        def counted(more: int) -> None:
            nonlocal count
            count = before + more
            moved(count)
            between(more)

        return Mover(connection, selection, _route(receipt), moved=counted, receipt=writer).move(part)

    widening = Widening(
        connection, receipt.queue, canary, receipt.run, move, watching=watching, sent=len(sent), targets=targets
    )
    widening.replay(planned, letters)
    return count


def _import(
    connection: Connection,
    receipt: RunReceipt,
    left: Sequence[PlannedLetter],
    writer: ReceiptWriter,
    moved: Callable[[int], None],
) -> int:
    records = [dict(each.edited or {}) for each in left]
    if records:
        letters = [(record, from_record(record)) for record in records]
        send(connection, receipt.to or receipt.queue, letters, writer, moved)
    if not receipt.ended:
        writer.end(len(receipt.planned))
    return len(records)


def _selected(queue: Destination, letters: Iterable[PlannedLetter | ReceiptEntry]) -> Selection:
    """The letters of a queue by their ids, and those that have none by their contents."""
    letters = list(letters)
    ids = frozenset(each.id for each in letters if each.id is not None)
    return Selection(queue, ids=ids, contents=frozenset(each.content or "" for each in letters if each.id is None))


def _finish_halves(connection: Connection, receipt: RunReceipt, proof: Proof, writer: ReceiptWriter) -> int:
    """Take away what was sent, and not yet removed when its run was killed; how many that are."""
    if not proof.halves:
        return 0
    selection = replace(_selected(receipt.queue, (each for _, each in proof.halves)), limit=len(proof.halves))
    count = Mover(connection, selection, nowhere()).move(plan(connection, selection, nowhere()))
    writer.write({"finished": [number for number, _ in proof.halves]})
    return count


def _resume_unseen(
    connection: Connection, receipt: RunReceipt, writer: ReceiptWriter, moved: Callable[[int], None]
) -> int:
    """Go on with a run into whose queue nobody had looked: all of it was meant, or so many."""
    asked = receipt.head["asked"]
    limit = asked.get("limit")
    if limit is not None and (limit := limit - sum(each.sure for each in receipt.entries)) <= 0:
        return 0
    selection = Selection(receipt.queue, asked.get("where"), limit=limit)
    count = Mover(connection, selection, _route(receipt), moved=moved, receipt=writer).move(MovePlan([], unseen=True))
    writer.end(receipt.letters + count)
    return count


def _route(receipt: RunReceipt) -> Route:
    match receipt.command:
        case "replay":
            return back(receipt.to, receipt.run)
        case "move" if receipt.to is not None:
            return elsewhere(receipt.to, receipt.run)
        case "purge":
            return nowhere()
        case "edit":
            return _as_edited(receipt)
    raise ConfigError(f"{receipt.path}: a run of {receipt.command} cannot be gone on with")


def _as_edited(receipt: RunReceipt) -> Route:
    edited = {(each.id, each.content): each.edited for each in receipt.planned}

    def leave(letter: Message) -> Leaving | None:
        after = edited.get((letter.message_id, content_of(letter)))
        return Edited(lambda _: None if after is None else dict(after), receipt.to, receipt.run)(letter)

    return leave
