"""``redelivery dlq verify``, ``undo`` and ``resume``: what a receipt says is counted again, undone, or gone on with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from redelivery import Connection
from redelivery.cli.dlq.options import Yes
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.canary import watching
from redelivery.cli.parts.looking import looking, may_look
from redelivery.cli.parts.progress import Counting
from redelivery.cli.parts.shown import as_json, visible
from redelivery.cli.parts.target import AsJson, NothingError
from redelivery.cli.parts.work import cut_short
from redelivery.model.errors import JMSError
from redelivery.operate.letters.receipts import proving, resuming, undoing
from redelivery.operate.letters.receipts.proving import Proof
from redelivery.operate.letters.receipts.receipt import RunReceipt, read_receipt
from redelivery.operate.letters.receipts.writer import ReceiptWriter

ReceiptFile = Annotated[Path, typer.Argument(metavar="RECEIPT", help="The file that a run has written.")]
Work: TypeAlias = Callable[[Connection, RunReceipt, ReceiptWriter, Callable[[int], None]], int]
_SAID = (
    ("unread", "where they were sent to, not yet received"),
    ("gone", "received, expired or deleted since"),
    ("hidden", "sent to a topic, which holds none"),
    ("still", "where they were: their batch was not committed"),
    ("left", "meant, and not yet taken: 'redelivery dlq resume' goes on"),
    ("undone", "put back by undo"),
    ("back", "dead letters again"),
    ("returned", "WHERE THEY WERE, although their commit was confirmed"),
    ("doubled", "IN BOTH PLACES: 'redelivery dlq resume' or 'undo' takes one of the two away"),
)


@with_broker("dlq verify")
def verify(receipt: ReceiptFile, *, broker: Broker, yes: Yes = False, json_: AsJson = False) -> None:
    """Count the letters of a receipt again at the broker: where each of them is now.

    Exit code 1 where one is in two places, or where it was although its commit was confirmed.
    """
    found = read_receipt(receipt)
    with _looking("verify", broker, found, yes=yes) as connection:
        proof = proving.verify(connection, found)
    _say(found, proof, json_)
    if not proof.holds:
        raise JMSError("this is not what the receipt says")


@with_broker("dlq undo")
def undo(receipt: ReceiptFile, *, broker: Broker, yes: Yes = False, json_: AsJson = False) -> None:
    """Put back what a run has sent and nobody has received yet, or what a purge has kept."""

    def missed(count: int) -> None:
        text = f"{count} of them cannot be put back now: received, expired or deleted since, or a consumer has them"
        said = f"redelivery dlq undo: {text}; 'redelivery dlq verify {receipt}' looks again"
        print(visible(said), file=sys.stderr)

    _work(receipt, "undo", partial(undoing.undo, missed=missed), broker, yes, json_)


@with_broker("dlq resume")
def resume(receipt: ReceiptFile, *, broker: Broker, yes: Yes = False, json_: AsJson = False) -> None:
    """Go on with a run that was killed, with those of its letters that are still where they were."""
    _work(receipt, "resume", partial(resuming.resume, watching=watching(wanted=not json_)), broker, yes, json_)


@contextmanager
def _looking(name: str, broker: Broker, receipt: RunReceipt, *, yes: bool) -> Iterator[Connection]:
    """A connection on which the queues may be looked into that the letters were taken from and sent to."""
    if name == "resume" and receipt.unseen:  # as nobody had looked, nobody needs to
        with looking(f"dlq {name}", broker, str(receipt.queue), yes=yes, needed=False) as connection:
            yield connection
        return
    imported = receipt.command == "import"  # its queue may not be there yet
    with broker.connect() if imported else looking(f"dlq {name}", broker, str(receipt.queue), yes=yes) as connection:
        targets = [entry.to for entry in receipt.entries] or [receipt.to if imported else None]
        for each in dict.fromkeys(each for each in targets if each is not None):
            with suppress(NothingError):  # nothing is in a queue that is gone
                may_look(f"dlq {name}", connection, each, yes=yes)
        yield connection


def _work(path: Path, name: str, work: Work, broker: Broker, yes: bool, json_: bool) -> None:
    found = read_receipt(path)
    with _looking(name, broker, found, yes=yes) as connection:
        writer = ReceiptWriter(path, batches=found.batches, keep="kept" in found.head["asked"])
        try:
            with Counting(name, None, not json_) as counting, cut_short(path, name):
                count = work(connection, found, writer, counting.show)
        finally:
            writer.close()
    if not count:
        raise NothingError(f"{path}: nothing is left to {name}")
    print(as_json({"letters": count}) if json_ else f"{count} {'put back' if name == 'undo' else 'more'}")


def _say(receipt: RunReceipt, proof: Proof, json_: bool) -> None:
    counts = {name: getattr(proof, name) for name, _ in _SAID}
    if json_:
        said = {"receipt": receipt.head, "letters": receipt.letters, "holds": proof.holds}
        print(as_json({**said, **counts, "skipped": receipt.skipped}))
        return
    head = receipt.head
    to = "" if receipt.to is None else f" to {receipt.to}"
    print(visible(f"{receipt.command} of {receipt.queue}{to}, by {head['who']} at {head['when']}, {head['broker']}"))
    for name, text in _SAID:
        if name == "doubled" and receipt.command == proving.IMPORT:
            text = "THERE ONCE MORE: their send was in doubt, and came after they were sent again"
        if counts[name]:
            print(f"{counts[name]:8} {text}")
    if receipt.skipped:
        print(visible(f"{receipt.skipped:8} skipped: they had been replayed too often"))
    if not any(counts.values()):
        print("       0 letters have left")
