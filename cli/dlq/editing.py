"""``redelivery dlq edit``: letters are changed, shown as a difference, and sent back in place of the failed ones."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer

from redelivery import Connection, Message
from redelivery.cli.dlq.options import DryRun, Group_, Limit, Rate, Receipts, To, Yes, optional, selection_of
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.looking import at_terminal, looking
from redelivery.cli.parts.shown import CUT, as_json, complain, visible
from redelivery.cli.parts.target import AsJson, NothingError, Queue, Where, nothing_in
from redelivery.cli.parts.work import LetterWork, meant
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.operate.letters.editing import Change, Edited, assigning, difference, editable, program, replacing
from redelivery.operate.letters.routes import new_run
from redelivery.operate.letters.selection import Selection

_LONG: Final = 2000  # characters of a line that was changed
_SHOWN: Final = 3  # letters whose difference is printed; with --dry-run those of all are


@with_broker("dlq edit")
def edit(
    queue: Queue,
    message_id: Annotated[str | None, typer.Argument(metavar="[MESSAGE-ID]", help="Which letter.")] = None,
    *,
    broker: Broker,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Such as body.price=5 or properties.tenant=eu; again for more."
        ),
    ] = None,
    with_: Annotated[
        Path | None, typer.Option("--with", metavar="FILE", help="A Python program with a function fix(letter).")
    ] = None,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    rate: Rate = None,
    to: To = None,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Change letters and send them back to their original queue, in place of the failed ones.

    Without --set and --with in $EDITOR, one letter. The edited letter comes and the failed one goes in one transaction.
    What is sent has nothing of a dead letter: neither cause nor count. Letters that were not changed stay.
    """
    if message_id is None and where is None and group is None and limit is None:
        raise ConfigError("which letters? Name one by its MESSAGE-ID, or several by --group, --where or --limit")
    if set_ and with_ is not None:
        raise ConfigError("--set and --with: give one of them")
    change = assigning(set_) if set_ else None if with_ is None else _program(with_)
    selection = selection_of(queue, where, group, limit, message_id=message_id)
    with looking("dlq edit", broker, queue, yes=yes) as connection:
        selection = selection.on(connection)
        if change is None:
            change = _in_editor(connection, selection)
        if not json_:
            _show(connection, selection, change, whole=dry_run)
        target, run = optional(to), new_run()
        route = Edited(change, target, run)
        with LetterWork(
            "edit", connection, selection, route, json_, rate, receipts=receipts, to=target, run=run
        ) as work:
            what = "edit {letters} and send {them} to {target}"
            work.begin(dry_run=dry_run, yes=yes, what=what, edits=route.changed)
            work.move_all()
            work.end()


def _program(file: Path) -> Change:
    try:
        return program(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--with {file}: {error}") from error


def _in_editor(connection: Connection, selection: Selection) -> Change:
    """Let somebody change one letter.

    Raises:
        ConfigError: there are several letters; or the result is no JSON object.
        NothingError: there is none, or nothing was changed.
    """
    letters = list(islice(selection.browse(connection), 2))
    if not letters:
        raise nothing_in(selection.queue, meant(selection))
    if len(letters) > 1:
        raise ConfigError("an editor changes one letter: name its MESSAGE-ID, or change several by --set or --with")
    before = _editable(letters[0])
    after = _edited_by_hand(as_json(before, 2) + "\n")
    if after == before:
        raise NothingError("nothing was changed, and nothing was sent; redelivery dlq replay sends a letter as it is")
    return replacing(json.loads(as_json(before)), after, selection.queue)


def _edited_by_hand(text: str) -> dict[str, Any]:
    """Ask for it in $EDITOR, until it is a JSON object. Raises ConfigError: it is none, and nobody corrects it."""
    while True:
        text = _in_program(text)
        try:
            after = json.loads(text)
            if not isinstance(after, dict):
                raise ValueError("it must be an object in braces")
        except ValueError as error:
            complain("dlq edit", f"the edited letter is not a JSON object: {error}")
            if not at_terminal() or not typer.confirm("Edit it again?", default=True, err=True):
                raise ConfigError("the edited letter is not a JSON object; nothing was sent") from error
        else:
            return after


def _in_program(text: str) -> str:
    """Return what $VISUAL or $EDITOR makes of it. Raises ConfigError: it cannot be run, or fails."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with TemporaryDirectory(prefix="redelivery-") as folder:
        file = Path(folder) / "letter.json"
        file.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603  # the operator's own
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise ConfigError(f"the editor {editor!r} failed: {error}; set EDITOR; nothing was sent") from error


def _editable(letter: Message) -> dict[str, Any]:
    try:
        return editable(letter)
    except MessageFormatError as error:
        raise ConfigError(str(error)) from error


def _show(connection: Connection, selection: Selection, change: Change, *, whole: bool) -> None:
    """Print the differences of the first letters, or of all."""
    left = 0
    for number, letter in enumerate(selection.browse(connection)):
        if number < _SHOWN or whole:
            try:
                for line in difference(letter, change):
                    print(visible(line, CUT if line.startswith(" ") else _LONG))
            except MessageFormatError as error:
                complain("dlq edit", error)
        else:
            left += 1
    if left:
        print(f"and {left} more: --dry-run shows them all")
