"""The first letters of a replay, after which the rest waits until they have been handled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from redelivery import Connection, Message
from redelivery.cli.parts.looking import may_look
from redelivery.cli.parts.progress import Watching
from redelivery.cli.parts.target import NothingError, nothing_in
from redelivery.cli.parts.work import LetterWork
from redelivery.model.destinations import Destination
from redelivery.model.errors import MessageFormatError
from redelivery.operate.letters.canary import Watch, check_watchable, needed
from redelivery.operate.letters.routes import NoWayError, back
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import browsed, looked_into_by


def replay_canaries(
    connection: Connection,
    work: LetterWork,
    to: Destination | None,
    run: str,
    count: int,
    wait: float | None,
    *,
    yes: bool,
) -> None:
    """Replay so many of what is planned, and return when they have been handled; then ``work`` has planned the rest.

    ``wait``: seconds; None: those that the redelivery policies of the letters need. ``yes``: look into the queues that
    they are sent to without asking.

    Raises:
        CanaryError: one is back, or nobody took it.
        UnsupportedError: that could not be seen; nothing was replayed.
    """
    letters = list(islice(_leaving(connection, work.selection, run, to), count))
    targets = [target for _, target in letters]
    check_watchable(connection, targets)
    for each in dict.fromkeys(targets):
        with suppress(NothingError):  # it will be there when it is sent to
            may_look("dlq replay", connection, each, yes=yes)
    seconds = needed(letter for letter, _ in letters) if wait is None else wait
    looks_cost = looked_into_by(connection) is not None
    before = sum(1 for _ in browsed(connection, work.selection.queue)) if looks_cost else 0
    sent = work.move(replace(work.planned, ids=work.planned.ids[:count]))
    if not sent:
        raise nothing_in(work.selection.queue)
    shown = Watching(sent, seconds, wanted=not work.as_json)
    with shown:
        watch = Watch(connection, work.selection.queue, targets, run, sent, seconds, others=max(0, before - sent))
        watch.until_handled(shown.show)
    work.plan_again()


def _leaving(
    connection: Connection, selection: Selection, run: str, to: Destination | None
) -> Iterator[tuple[Message, Destination]]:
    """The letters that can be replayed, in order, and where each goes."""
    route = back(to, run)
    for letter in selection.browse(connection):
        try:
            leaving = route(letter)
        except (NoWayError, MessageFormatError):
            continue
        if leaving is not None:
            yield letter, leaving.destination
