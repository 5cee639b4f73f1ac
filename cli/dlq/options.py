"""The options that several commands of ``redelivery dlq`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redelivery.model.destinations import Destination
from redelivery.model.destinations import destination as parse_destination
from redelivery.operate.letters.selection import Selection

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
To = Annotated[str | None, typer.Option(metavar="QUEUE", help="Instead of where each letter came from.")]
Rate = Annotated[str | None, typer.Option("--rate", metavar="N/s", help="So many letters a second, at most.")]


def selection_of(
    queue: str,
    where: str | None = None,
    group: str | None = None,
    limit: int | None = None,
    *,
    message_id: str | None = None,
) -> Selection:
    """The letters that are meant. Raises InvalidDestinationError, ConfigError: as `Selection`."""
    ids = None if message_id is None else frozenset((message_id,))
    return Selection(parse_destination(queue), where, group, limit, ids=ids)


def optional(text: str | None) -> Destination | None:
    """The destination that an option names, where it is given."""
    return None if text is None else parse_destination(text)
