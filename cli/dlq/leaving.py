"""``redelivery dlq replay``, ``move`` and ``purge``: letters leave their queue."""

from __future__ import annotations

from typing import Annotated

import typer

from redelivery.cli.dlq.options import DryRun, Group_, Limit, Rate, Receipts, To, Yes, optional, selection_of
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.canary import replay_canaries
from redelivery.cli.parts.looking import looking
from redelivery.cli.parts.target import AsJson, Queue, Where
from redelivery.cli.parts.work import LetterWork
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.canary import CanaryError
from redelivery.operate.letters.routes import back, elsewhere, new_run, nowhere


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
    to: To = None,
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
        target = optional(to)
        selection, route = selection_of(queue, where, group, limit), back(target, run)
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
        selection, route = selection_of(queue, where, group, limit), elsewhere(target)
        with LetterWork("move", connection, selection, route, json_, rate, receipts=receipts, to=target) as work:
            work.begin(dry_run=dry_run, yes=yes, what=f"move {{}} to {target}")
            work.move(work.planned)
            work.end()


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
        selection = selection_of(queue, where, group, limit)
        with LetterWork("purge", connection, selection, nowhere(), json_, receipts=receipts, keep=keep) as work:
            work.begin(dry_run=dry_run, yes=yes, what="delete {} permanently")
            work.move(work.planned)
            work.end()
