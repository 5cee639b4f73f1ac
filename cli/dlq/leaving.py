"""``redelivery dlq replay``, ``move`` and ``purge``: letters leave their queue."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from redelivery import policies
from redelivery.cli.dlq.options import DryRun, Group_, Limit, Rate, Receipts, To, Yes, optional, selection_of
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.canary import replay_canaries
from redelivery.cli.parts.looking import looking
from redelivery.cli.parts.shown import visible
from redelivery.cli.parts.target import AsJson, Properties, Queue, Where, values_of
from redelivery.cli.parts.work import LetterWork
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.replaying.forecast import Forecast, forecast, lines
from redelivery.operate.letters.replaying.planned import PlannedReplays
from redelivery.operate.letters.replaying.widening import Canary
from redelivery.operate.letters.routes import REPLAYS_ALLOWED, back, elsewhere, new_run, nowhere
from redelivery.policies.brokers.policies import BrokerPolicies


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
        typer.Option(min=1, help="Replay so many first, then ten times as many, …, each time when all are handled."),
    ] = None,
    canary_wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long until one more of them must be taken, and then until one could be back; without it as long "
            "as the policy needs that the letters name, else 60 s.",
        ),
    ] = None,
    max_replays: Annotated[
        int, typer.Option(min=0, help="Skip letters that were replayed so often, and are here again; 0: none.")
    ] = REPLAYS_ALLOWED,
    to: To = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The broker's configuration, to say what will happen.")
    ] = None,
    client: Annotated[
        str | None, typer.Option(metavar="URL|FILE", help="The receiving client's URL or file, for the same.")
    ] = None,
    property: Properties = None,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Send letters back to their original queue, and take them away from here, as one transaction for a batch.

    First it says what will happen to those that fail again. With --canary exit code 1 where one is back here, or nobody
    takes them: then nothing else is replayed. A letter that was replayed three times, and is here again, is skipped.
    """
    if canary_wait is not None and (canary is None or not 0 < canary_wait < float("inf")):
        raise ConfigError(f"--canary-wait {canary_wait:g}: give seconds > 0, beside --canary")
    needed = dry_run or group is not None or canary is not None
    broker_rules, client_rules = _rules(config, property), _rules(client, property)
    with looking("dlq replay", broker, queue, yes=yes, needed=needed) as connection:
        run, target, letters = new_run(), optional(to), PlannedReplays(watched=canary is not None)
        selection, route = selection_of(queue, where, group, limit), back(target, run, max_replays)
        with LetterWork(
            "replay", connection, selection, route, json_, rate, receipts=receipts, to=target, run=run
        ) as work:

            def foresee() -> None:
                found = forecast(
                    connection, selection.queue, letters, to=target, broker=broker_rules, client=client_rules
                )
                work.added |= {"skipped": len(work.planned.skipped), "forecast": [_record(each) for each in found]}
                for line in lines(found):
                    print(visible(line), file=sys.stderr)

            work.begin(
                dry_run=dry_run,
                yes=yes,
                what="replay {letters} to {target}",
                noted=letters.note,
                foreseen=foresee,
                canary=canary,
                canary_wait=canary_wait,
                max_replays=max_replays,
            )
            if canary is None:
                work.move_all()
            else:
                replay_canaries(connection, work, letters, Canary(canary, canary_wait), run, yes=yes)
            work.end()


def _rules(file: str | None, properties: list[str] | None) -> BrokerPolicies | None:
    return None if file is None else policies.read(file, properties=values_of(properties))


def _record(found: Forecast) -> dict[str, Any]:
    return {**asdict(found), "target": None if found.target is None else str(found.target), "text": str(found)}


@with_broker("dlq move")
def move(
    queue: Queue,
    *,
    broker: Broker,
    to: Annotated[str, typer.Option(metavar="QUEUE", help="Where they go, with everything in them.")],
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
        selection, run = selection_of(queue, where, group, limit), new_run()
        route = elsewhere(target, run)
        with LetterWork(
            "move", connection, selection, route, json_, rate, receipts=receipts, to=target, run=run
        ) as work:
            work.begin(dry_run=dry_run, yes=yes, what="move {letters} to {target}", marked=True)
            work.move_all()
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
            work.begin(dry_run=dry_run, yes=yes, what="delete {letters} permanently")
            work.move_all()
            work.end()
