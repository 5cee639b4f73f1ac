"""``redelivery dlq``: dead letters: look at them, send them back, edit them, delete them; and prove what was done."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from redelivery.cli.dlq.editing import edit
from redelivery.cli.dlq.files import export, import_letters
from redelivery.cli.dlq.leaving import move, purge, replay
from redelivery.cli.dlq.queues import queues
from redelivery.cli.dlq.receipts import resume, undo, verify
from redelivery.cli.dlq.resolved import resolved
from redelivery.cli.dlq.shown import groups, list_letters, show


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
