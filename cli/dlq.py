"""``redelivery dlq``: dead letters: look at them, send them back, delete them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from redelivery import Connection
from redelivery.cli.messages import stamp
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.canary import replay_canaries
from redelivery.cli.parts.looking import looking
from redelivery.cli.parts.progress import Counting
from redelivery.cli.parts.shown import CUT, as_json, visible
from redelivery.cli.parts.tables import print_table
from redelivery.cli.parts.target import AsJson, NothingError, Queue, Where, nothing_in
from redelivery.cli.parts.work import LetterWork, meant
from redelivery.model.destinations import Destination
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.canary import CanaryError
from redelivery.operate.letters.folding import By, Folding, failure
from redelivery.operate.letters.groups import Group, group
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.routes import back, elsewhere, new_run, nowhere
from redelivery.operate.letters.selection import Selection

dlq = typer.Typer(no_args_is_help=True)
_LONG: Final = 2000  # characters of a value that `show` prints

Group_ = Annotated[str | None, typer.Option("--group", metavar="FINGERPRINT", help="Only letters of this group.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="So many at most, from the head of the queue.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Receipts = Annotated[
    Path | None,
    typer.Option(
        "--receipts", envvar="REDELIVERY_RECEIPTS", help="Where the receipt is written; else in your state folder."
    ),
]
Rate = Annotated[str | None, typer.Option("--rate", metavar="N/s", help="So many letters a second, at most.")]


@dlq.callback()
def about() -> None:
    """Dead letters: look at them, send them back, delete them."""


@dlq.command(name="ls")
@with_broker("dlq ls")
def list_letters(
    queue: Queue,
    *,
    broker: Broker,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """List the letters of a dead-letter queue: when they failed, from where they came, and why they are here.

    Where a letter does not say when it failed, there is when it was sent, after "sent".
    """
    shown = 0
    with looking("dlq ls", broker, queue, yes=yes) as connection:
        selection = _selection(queue, where, group, limit).on(connection)
        folding = _folding(connection, selection) if json_ else None
        for letter in selection.browse(connection):
            shown += 1
            if folding is not None:
                print(as_json({**to_record(letter), "fingerprint": folding.fingerprint(failure(letter))}))
                continue
            said = letter.dead_letter
            origin, why = (None, None) if said is None else (said.origin, said.exception or said.cause)
            at = None if said is None else said.at
            when = f"sent {stamp(letter.timestamp)}" if at is None else stamp(at)
            columns = (letter.message_id or "-", origin or "-", why or "no cause")
            print(when, *(visible(each, CUT) for each in columns), sep="  ")
    if not shown:
        raise nothing_in(selection.queue, meant(selection))


@dlq.command()
@with_broker("dlq show")
def show(
    queue: Queue,
    message_id: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE-ID]", help="Which one; without it the first.")
    ] = None,
    *,
    broker: Broker,
    where: Where = None,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Show one letter: everything that it says. --json shows it whole, however long it is."""
    with looking("dlq show", broker, queue, yes=yes) as connection:
        selection = _selection(queue, where)
        letters = selection.browse(connection)
        letter = next((each for each in letters if message_id in (None, each.message_id)), None)
        if letter is None and message_id is None:
            raise nothing_in(selection.queue, meant(selection))
        if letter is None:
            raise NothingError(f"{selection.queue} has no such letter")
        folding = _folding(connection, selection)
    record = {**to_record(letter), "fingerprint": folding.fingerprint(failure(letter))}
    if json_:
        print(as_json(record))
        return
    for name, value in record.items():
        if value is not None:
            for line in _lines(name, value):
                print(line)


@dlq.command()
@with_broker("dlq groups")
def groups(
    queue: Queue,
    *,
    broker: Broker,
    where: Where = None,
    limit: Limit = None,
    by: Annotated[By, typer.Option(help="What letters of a group have in common.")] = "cause",
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Count the letters that failed alike: the same origin and exception, whatever numbers and names are in it.

    --by type counts those with the same type of exception, --by origin those from the same queue.
    """
    with looking("dlq groups", broker, queue, yes=yes) as connection, Counting("looking", None, not json_) as counting:
        selection = _selection(queue, where, None, limit)
        found = group(counting.of(selection.browse(connection)), by)
    if json_:
        print(as_json([_group_record(each) for each in found], 2))
    elif found:
        print_table(
            ("letters", "group", "first", "last", "origin", "why"),
            [
                (each.count, each.fingerprint, stamp(each.first), stamp(each.last), each.origin or "-", _why(each, by))
                for each in found
            ],
            narrow=("first", "last"),
        )
    if not found:
        raise nothing_in(selection.queue, meant(selection))


@dlq.command()
@with_broker("dlq replay")
def replay(
    queue: Queue,
    *,
    broker: Broker,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    rate: Rate = None,
    canary: Annotated[
        int | None,
        typer.Option(min=1, help="Replay so many first, and the rest only when these have been handled."),
    ] = None,
    canary_wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long a canary may take until it is taken, and then until it could be back; without it as long "
            "as the policy needs that the letters name, else 60 s.",
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="QUEUE", help="Instead of where each letter came from.")] = None,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Send letters back to where they came from, and take them away from here, as one transaction for a batch.

    With --canary exit code 1 where one of the first is back here, or nobody took it: then nothing else is replayed.
    """
    if canary_wait is not None and (canary is None or not 0 < canary_wait < float("inf")):
        raise ConfigError(f"--canary-wait {canary_wait:g}: give seconds > 0, beside --canary")
    needed = dry_run or group is not None or canary is not None
    with looking("dlq replay", broker, queue, yes=yes, needed=needed) as connection:
        run = new_run()
        target = _optional(to)
        selection, route = _selection(queue, where, group, limit), back(target, run)
        with LetterWork(
            "replay", connection, selection, route, json_, rate, receipts=receipts, to=target, run=run
        ) as work:
            work.begin(dry_run=dry_run, yes=yes, what=f"replay {{}} to {to or 'where they came from'}")
            if canary is not None:
                try:
                    replay_canaries(connection, work, target, run, canary, canary_wait, yes=yes)
                except CanaryError:
                    work.say_moved()
                    raise
            work.move(work.planned)
            work.end()


@dlq.command()
@with_broker("dlq move")
def move(
    queue: Queue,
    *,
    broker: Broker,
    to: Annotated[str, typer.Option(metavar="QUEUE", help="Where they go, with all that they say.")],
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    rate: Rate = None,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Move letters to another queue."""
    needed = dry_run or group is not None
    with looking("dlq move", broker, queue, yes=yes, needed=needed) as connection:
        target = parse_destination(to)
        if target == parse_destination(queue):
            raise ConfigError(f"--to {to}: they are there")
        selection, route = _selection(queue, where, group, limit), elsewhere(target)
        with LetterWork("move", connection, selection, route, json_, rate, receipts=receipts, to=target) as work:
            work.begin(dry_run=dry_run, yes=yes, what=f"move {{}} to {target}")
            work.move(work.planned)
            work.end()


@dlq.command()
@with_broker("dlq purge")
def purge(
    queue: Queue,
    *,
    broker: Broker,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep them in the receipt.")] = False,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Delete letters permanently; with --keep they can be put back by 'redelivery dlq undo RECEIPT'."""
    needed = dry_run or group is not None
    with looking("dlq purge", broker, queue, yes=yes, needed=needed) as connection:
        selection = _selection(queue, where, group, limit)
        with LetterWork("purge", connection, selection, nowhere(), json_, receipts=receipts, keep=keep) as work:
            work.begin(dry_run=dry_run, yes=yes, what="delete {} permanently")
            work.move(work.planned)
            work.end()


def _selection(queue: str, where: str | None = None, group: str | None = None, limit: int | None = None) -> Selection:
    return Selection(parse_destination(queue), where, group, limit)


def _optional(text: str | None) -> Destination | None:
    return None if text is None else parse_destination(text)


def _folding(connection: Connection, selection: Selection) -> Folding:
    """Fold all letters among which the groups are found, so that their fingerprints are the same here."""
    return Folding(map(failure, replace(selection, group=None, members=None, limit=None).browse(connection)))


def _lines(name: str, value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield f"{name}:"
        for each, inner in value.items():
            yield f"  {visible(each, CUT)}: {visible(inner, _LONG)}"
    else:
        yield f"{name}: {visible(value, _LONG)}"


def _group_record(found: Group) -> dict[str, Any]:
    times = {name: None if (at := getattr(found, name)) is None else at.isoformat() for name in ("first", "last")}
    return {**asdict(found), **times}


def _why(found: Group, by: By) -> str:
    return "-" if by == "origin" else found.exception or found.cause or "no cause"
