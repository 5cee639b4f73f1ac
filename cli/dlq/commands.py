"""``redelivery dlq``: dead letters: look at them, send them back, edit them, delete them; and prove what was done."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from redelivery import policies
from redelivery.cli.dlq.editing import edit
from redelivery.cli.dlq.files import export, import_letters
from redelivery.cli.dlq.leaving import move, purge, replay
from redelivery.cli.dlq.receipts import resume, undo, verify
from redelivery.cli.dlq.resolved import resolved
from redelivery.cli.dlq.shown import groups, list_letters, show
from redelivery.cli.messages import stamp
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.shown import as_json, complain
from redelivery.cli.parts.tables import print_table
from redelivery.cli.parts.target import AsJson, NothingError, Properties, values_of
from redelivery.cli.parts.work import state_folder
from redelivery.model.destinations import destination as parse_destination
from redelivery.operate.letters.overview import DeadLetterQueue, compared, overview


@with_broker("dlq queues")
def queues(
    *,
    broker: Broker,
    queue: Annotated[list[str] | None, typer.Option(help="A queue to look at, too; may be given again.")] = None,
    config: Annotated[str | None, typer.Option(help="The broker's configuration file, if it does not say.")] = None,
    property: Properties = None,
    json_: AsJson = False,
) -> None:
    """List every dead-letter queue: how many letters, how many more than at the last look, the oldest, the top cause.

    A queue is one by its name, by the broker's rules or file, or by the message at its head.
    """
    rules = None if config is None else policies.read(config, properties=values_of(property))
    with broker.connect() as connection:
        found = overview(connection, rules, [parse_destination(each) for each in queue or ()])
        found = compared(found, connection, state_folder() / "looks.json")
    if json_:
        print(as_json({"queues": [_record(each) for each in found.queues], "unchecked": found.unchecked}, 2))
    elif found.queues:
        rows = [(each.letters, each.name, _growth(each), stamp(each.oldest), _top(each)) for each in found.queues]
        print_table(("letters", "queue", "more", "oldest", "top cause"), rows, narrow=("oldest",))
    if not json_:
        for each in found.unchecked:
            complain("dlq queues", f"not checked: {each}")
    if not found.queues:
        raise NothingError("no dead-letter queue was found: name one by --queue, or the broker's file by --config")


def _growth(queue: DeadLetterQueue) -> str:
    return "-" if queue.grew is None else f"{queue.grew:+d} since {stamp(queue.since)}"


def _top(queue: DeadLetterQueue) -> str:
    top = queue.top
    if top is None:
        return "-"
    return f"{top.exception or top.cause or 'no cause'} ({top.count}, group {top.fingerprint})"


def _record(queue: DeadLetterQueue) -> dict[str, Any]:
    found = {**asdict(queue), **_times(queue, "oldest", "since")}
    if queue.top is not None:
        found["top"] |= _times(queue.top, "first", "last")
    return found


def _times(value: object, *names: str) -> dict[str, str | None]:
    return {name: None if (at := getattr(value, name)) is None else at.isoformat() for name in names}


class _QueuesFirst(TyperGroup):
    """Without a command it is ``queues``, with the options that are given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["queues", *args]
        return super().parse_args(ctx, args)


dlq = typer.Typer(cls=_QueuesFirst)
dlq.command()(queues)
dlq.command(name="ls")(list_letters)
for each in (show, groups, resolved, replay, edit, move, purge, export):
    dlq.command()(each)
dlq.command(name="import")(import_letters)
for each in (verify, undo, resume):
    dlq.command()(each)


@dlq.callback()
def about() -> None:
    """Dead letters: look at them, send them back, edit them, delete them; and prove what was done.

    Without a command it is queues.
    """
