"""``redelivery dlq``: dead letters: look at them, send them back, take them away."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import IO, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from redelivery import Connection, Message
from redelivery.cli.letters import Work
from redelivery.cli.messages import stamp
from redelivery.cli.target import AsJson, Queue, Url, Where, connect, outcome
from redelivery.model.destinations import Destination
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.letters.groups import Group, fingerprint, group
from redelivery.operate.letters.records import expiration, from_record, to_record
from redelivery.operate.letters.routes import REPLAYED, back, elsewhere, nowhere
from redelivery.operate.letters.selection import Selection

dlq = typer.Typer(no_args_is_help=True)
CANARY_WAIT: Final = 5.0  # seconds in which a letter that fails again is back

Group_ = Annotated[str | None, typer.Option("--group", metavar="FINGERPRINT", help="Only letters of this group.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="So many at most, from the head of the queue.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Rate = Annotated[str | None, typer.Option("--rate", metavar="N/s", help="So many letters a second, at most.")]


@dlq.callback()
def about() -> None:
    """Dead letters: look at them, send them back, take them away."""


@dlq.command(name="ls")
def list_letters(
    queue: Queue, *, url: Url, where: Where = None, group: Group_ = None, limit: Limit = None, json_: AsJson = False
) -> None:
    """List the letters of a dead-letter queue: when they were sent, from where they came, and why they are here."""
    with outcome("dlq ls"), connect(url) as connection:
        for letter in _selection(queue, where, group, limit).browse(connection):
            if json_:
                print(json.dumps({**to_record(letter), "fingerprint": fingerprint(letter)}, ensure_ascii=False))
            else:
                said = letter.dead_letter
                origin, why = (None, None) if said is None else (said.origin, said.exception or said.cause)
                print(f"{stamp(letter)}  {letter.message_id or '-'}  {origin or '-'}  {why or 'no cause'}")


@dlq.command()
def show(
    queue: Queue,
    message_id: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE-ID]", help="Which one; without it the first.")
    ] = None,
    *,
    url: Url,
    where: Where = None,
    json_: AsJson = False,
) -> None:
    """Show one letter: everything that it says."""
    with outcome("dlq show"):
        with connect(url) as connection:
            letters = _selection(queue, where).browse(connection)
            letter = next((each for each in letters if message_id in (None, each.message_id)), None)
            if letter is None:
                raise JMSError(f"{parse_destination(queue)} has no such letter")
            record = {**to_record(letter), "fingerprint": fingerprint(letter)}
        if json_:
            print(json.dumps(record, ensure_ascii=False))
            return
        for name, value in record.items():
            for line in _lines(name, value):
                print(line)


@dlq.command()
def groups(queue: Queue, *, url: Url, where: Where = None, limit: Limit = None, json_: AsJson = False) -> None:
    """Count the letters that failed alike: the same origin and exception, whatever numbers and names are in it."""
    with outcome("dlq groups"):
        with connect(url) as connection:
            found = group(_selection(queue, where, None, limit).browse(connection))
        if json_:
            print(json.dumps([_group_record(each) for each in found], indent=2, ensure_ascii=False))
        elif not found:
            print(f"{parse_destination(queue)} is empty")
        else:
            _print_groups(found)


@dlq.command()
def replay(
    queue: Queue,
    *,
    url: Url,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    rate: Rate = None,
    canary: Annotated[
        int | None, typer.Option(min=1, help="Replay so many first; stop where one of them comes back within 5 s.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="QUEUE", help="Instead of where each letter came from.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Send letters back to where they came from, and take them away from here, as one transaction for a batch."""
    with outcome("dlq replay"), connect(url) as connection:
        run = token_hex(8)
        work = Work("replay", connection, _selection(queue, where, group, limit), back(_optional(to), run), json_, rate)
        work.begin(dry_run=dry_run, yes=yes, what=f"replay {{}} to {to or 'where they came from'}")
        if canary is not None and canary < len(work.planned.ids):
            work.move(replace(work.planned, ids=work.planned.ids[:canary]))
            _check_canary(connection, queue, run, canary)
            work.plan_again()
        work.move(work.planned)
        work.end()


@dlq.command()
def move(
    queue: Queue,
    *,
    url: Url,
    to: Annotated[str, typer.Option(metavar="QUEUE", help="Where they go, with all that they say.")],
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Move letters to another queue."""
    with outcome("dlq move"), connect(url) as connection:
        target = parse_destination(to)
        if target == parse_destination(queue):
            raise ConfigError(f"--to {to}: they are there")
        work = Work("move", connection, _selection(queue, where, group, limit), elsewhere(target), json_, rate)
        work.begin(dry_run=dry_run, yes=yes, what=f"move {{}} to {target}")
        work.move(work.planned)
        work.end()


@dlq.command()
def purge(
    queue: Queue,
    *,
    url: Url,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Take letters away, for good: export them first."""
    with outcome("dlq purge"), connect(url) as connection:
        work = Work("purge", connection, _selection(queue, where, group, limit), nowhere(), json_)
        work.begin(dry_run=dry_run, yes=yes, what="take away {}, for good")
        work.move(work.planned)
        work.end()


@dlq.command()
def export(
    queue: Queue,
    *,
    url: Url,
    output: Annotated[Path | None, typer.Option(help="A file; without it the standard output.")] = None,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
) -> None:
    """Write letters as lines of JSON, with types and headers, and take nothing."""
    with outcome("dlq export"), connect(url) as connection:
        letters = _selection(queue, where, group, limit).browse(connection)
        if output is None:
            _write(letters, sys.stdout)
            return
        try:
            with output.open("x", encoding="utf-8") as file:
                count = _write(letters, file)
        except OSError as error:
            raise ConfigError(f"--output: {error}") from error
        print(f"{count} written to {output}")


@dlq.command(name="import")
def import_letters(
    queue: Queue,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Of export; else standard input.")] = None,
    *,
    url: Url,
) -> None:
    """Send what export has written to a queue: all of it, or nothing where the broker has transactions."""
    with outcome("dlq import"):
        try:
            text = sys.stdin.read() if file is None else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(error)) from error
        lines = text.split("\n")  # not splitlines(): a body may have other characters that end a line
        records = [_record(line, number) for number, line in enumerate(lines, 1) if line.strip()]
        target, now = parse_destination(queue), datetime.now(UTC)
        with connect(url) as connection:
            transacted = connection.metadata.capabilities.transactions
            with connection.session("transacted" if transacted else "auto") as session:
                producer = session.producer(target)
                for record, message in records:
                    ends = expiration(record)
                    ttl = None if ends is None else max(0.001, (ends - now).total_seconds())
                    priority, persistent = record.get("priority", 4), record.get("persistent", True)
                    producer.send(message, priority=priority, persistent=persistent, ttl=ttl)
                if transacted:
                    session.commit()
        print(f"{len(records)} sent to {target}")


def _selection(queue: str, where: str | None = None, group: str | None = None, limit: int | None = None) -> Selection:
    return Selection(parse_destination(queue), where, group, limit)


def _optional(text: str | None) -> Destination | None:
    return None if text is None else parse_destination(text)


def _check_canary(connection: Connection, queue: str, run: str, canary: int) -> None:
    """Raise JMSError where one that was replayed is here again."""
    time.sleep(CANARY_WAIT)
    again = sum(each.properties.get(REPLAYED) == run for each in _selection(queue).browse(connection))
    if again:
        raise JMSError(f"{again} of {canary} came back within {CANARY_WAIT:g} s: nothing else was replayed")


def _write(letters: Iterator[Message], file: IO[str]) -> int:
    count = 0
    for letter in letters:
        file.write(json.dumps(to_record(letter), ensure_ascii=False) + "\n")
        count += 1
    return count


def _record(line: str, number: int) -> tuple[dict[str, Any], Message]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"line {number} is not JSON, as export writes it: {error}") from error
    try:
        return record, from_record(record)
    except (ValueError, ConfigError) as error:
        raise ConfigError(f"line {number}: {error}") from error


def _lines(name: str, value: object) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield f"{name}:"
        for each, inner in value.items():
            yield f"  {each}: {inner}"
    else:
        yield f"{name}: {value}"


def _group_record(found: Group) -> dict[str, Any]:
    times = {name: None if (at := getattr(found, name)) is None else at.isoformat() for name in ("first", "last")}
    return {**asdict(found), **times}


def _print_groups(found: Sequence[Group]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("letters", justify="right")
    for name in ("group", "origin", "why"):
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(str(each.count), each.fingerprint, each.origin or "-", each.exception or each.cause or "no cause")
    Console().print(table)
