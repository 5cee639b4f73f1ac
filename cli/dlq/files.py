"""``redelivery dlq export`` and ``import``: letters as a file of JSON lines, and back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from redelivery import Message
from redelivery.cli.dlq.options import Group_, Limit, Receipts, Yes
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.looking import looking
from redelivery.cli.parts.progress import Counting
from redelivery.cli.parts.shown import as_json, visible
from redelivery.cli.parts.target import NothingError, Queue, Where, nothing_in
from redelivery.cli.parts.work import cut_short, meant, receipts_folder
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.receipts import importing
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.operate.letters.records import from_record, to_record
from redelivery.operate.letters.routes import new_run
from redelivery.operate.letters.selection import Selection


@with_broker("dlq export")
def export(
    queue: Queue,
    *,
    broker: Broker,
    output: Annotated[Path | None, typer.Option(help="A file; without it the standard output.")] = None,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    yes: Yes = False,
) -> None:
    """Write letters as lines of JSON, with types and headers, and take nothing."""
    with looking("dlq export", broker, queue, yes=yes) as connection:
        selection = Selection(parse_destination(queue), where, group, limit)
        letters = selection.browse(connection)
        first = next(letters, None)
        if first is None:
            raise nothing_in(selection.queue, meant(selection))
        letters = chain((first,), letters)
        if output is None:
            write(letters, sys.stdout)
            return
        try:
            with output.open("x", encoding="utf-8") as file, Counting("exporting", None) as counting:
                count = write(counting.of(letters), file)
        except OSError as error:
            raise ConfigError(f"--output: {visible(output)} cannot be written: {error.strerror}") from error
        print(f"{count} written to {visible(output)}")


@with_broker("dlq import")
def import_letters(
    queue: Queue,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Of export; else standard input.")] = None,
    *,
    broker: Broker,
    receipts: Receipts = None,
) -> None:
    """Send what export has written to a queue: all of it, or nothing where the broker has transactions."""
    try:
        text = sys.stdin.read() if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"{file or 'the standard input'} cannot be read: {said}") from error
    lines = text.split("\n")  # not splitlines(): a body may have other characters that end a line
    letters = [read(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not letters:
        raise NothingError(f"{'the standard input' if file is None else file} has no letters")
    target = parse_destination(queue)
    with broker.connect() as connection, Counting("importing", len(letters)) as counting:
        writer = ReceiptWriter.begun(
            receipts_folder(receipts),
            connection,
            run=new_run(),
            command="import",
            queue=target,
            to=target,
            planned=importing.planned(letters),
            file=None if file is None else str(file.absolute()),
            there=importing.there(connection, target, letters),
        )
        with closing(writer), cut_short(writer.path):
            print(f"receipt: {visible(writer.path)}", file=sys.stderr)
            importing.send(connection, target, letters, writer, counting.show)
            writer.end(len(letters))
    print(f"{len(letters)} sent to {visible(target)}")


def write(letters: Iterable[Message], file: IO[str]) -> int:
    """Write each as a line; how many they are."""
    count = 0
    for letter in letters:
        file.write(as_json(to_record(letter)) + "\n")
        count += 1
    return count


def read(line: str, number: int) -> tuple[dict[str, Any], Message]:
    """The record in a line, and its message. Raises ConfigError: it was not written by `write`."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"line {number} is not JSON, as export writes it: {error}") from error
    try:
        return record, from_record(record)
    except (ValueError, ConfigError) as error:
        raise ConfigError(f"line {number}: {error}") from error
