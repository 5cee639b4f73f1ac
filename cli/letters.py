"""A command that takes letters from a queue: what is planned, whether it may be done, and how far it is."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import typer

from redelivery import Connection
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.letters.moving import Mover, Plan, plan
from redelivery.operate.letters.routes import Route
from redelivery.operate.letters.selection import Selection


class Work:
    """One command that takes letters away: what is planned, whether it may be done, how far it is."""

    def __init__(
        self,
        command: str,
        connection: Connection,
        selection: Selection,
        route: Route,
        as_json: bool,
        rate: str | None = None,
    ) -> None:
        self._command = command
        self._connection = connection
        self._selection = selection
        self._route = route
        self._as_json = as_json
        self._rate = _rate(rate)  # before anybody is asked
        self._moved = 0
        self.planned = Plan([])

    def begin(self, *, dry_run: bool, yes: bool, what: str) -> None:
        """Look what is to be done, and ask whether it is. Raises Exit: it is not."""
        self.planned = plan(self._connection, self._selection, self._route)
        count = len(self.planned.ids)
        letters = "1 letter" if count == 1 else f"{count} letters"
        if self.planned.unseen:
            count, letters = 1, f"all of {self._selection.queue}, which this broker does not let one look into"
        if self.planned.stay:
            print(
                f"redelivery dlq: {self.planned.stay} stay: they do not say where they came from, or cannot be read",
                file=sys.stderr,
            )
        if dry_run:
            if self.planned.unseen:
                raise ConfigError("--dry-run: this broker does not let one look into a queue")
            self._say(f"would {what.format(letters)}", dry_run=True)
            raise typer.Exit(0)
        if count and not yes:
            if not sys.stdin.isatty():
                raise ConfigError(f"this would {what.format(letters)}: add --yes, or --dry-run to look only")
            if not typer.confirm(f"{what.format(letters).capitalize()}?", err=True):
                raise typer.Exit(1)

    def plan_again(self) -> None:
        """What is left after a part of it."""
        limit = self._selection.limit
        if limit is not None:
            self._selection = replace(self._selection, limit=limit - self._moved)
        self.planned = plan(self._connection, self._selection, self._route)

    def move(self, planned: Plan) -> None:
        """Move them, and show how far it is."""
        before, total = self._moved, len(planned.ids)
        shows = sys.stderr.isatty() and not self._as_json

        def moved(count: int) -> None:
            self._moved = before + count
            if shows:
                of = "" if planned.unseen else f" of {before + total}"
                print(f"\r{self._moved}{of}", end="", file=sys.stderr, flush=True)

        mover = Mover(self._connection, self._selection, self._route, rate=self._rate, moved=moved)
        try:
            mover.move(planned)
        except BaseException as error:
            if isinstance(error, JMSError | KeyboardInterrupt):
                print(f"{self._moved} letters had been moved before", file=sys.stderr)
            raise
        finally:
            if shows:
                print(file=sys.stderr)

    def end(self) -> None:
        """Say what was done."""
        done = {"replay": "replayed", "move": "moved", "purge": "taken away"}[self._command]
        self._say(f"{self._moved} {done}", dry_run=False)

    def _say(self, text: str, *, dry_run: bool) -> None:
        if not self._as_json:
            print(text)
            return
        count = len(self.planned.ids) if dry_run else self._moved
        print(json.dumps({"letters": count, "stay": self.planned.stay, "dry_run": dry_run}))


def _rate(text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/s)?", text)
    if found is None or not float(found[1]):
        raise ConfigError(f"--rate {text}: write letters per second, such as 50/s")
    return float(found[1])
