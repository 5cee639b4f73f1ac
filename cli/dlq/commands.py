"""``redelivery dlq``: dead letters: look at them, send them back, edit them, delete them; and prove what was done."""

from __future__ import annotations

import typer

from redelivery.cli.dlq.editing import edit
from redelivery.cli.dlq.files import export, import_letters
from redelivery.cli.dlq.leaving import move, purge, replay
from redelivery.cli.dlq.receipts import resume, undo, verify
from redelivery.cli.dlq.shown import groups, list_letters, show

dlq = typer.Typer(no_args_is_help=True)
dlq.command(name="ls")(list_letters)
for each in (show, groups, replay, edit, move, purge, export):
    dlq.command()(each)
dlq.command(name="import")(import_letters)
for each in (verify, undo, resume):
    dlq.command()(each)


@dlq.callback()
def about() -> None:
    """Dead letters: look at them, send them back, edit them, delete them; and prove what was done."""
