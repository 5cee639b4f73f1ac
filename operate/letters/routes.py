"""Decides how a letter leaves its queue: as what, and where to; None of both: it is only taken away."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Final, TypeAlias

from redelivery.model.content.dead_letters import ORIGINAL_DESTINATION
from redelivery.model.destinations import Destination
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.operate.letters.records import dead_letter_record, failed_properties
from redelivery.operate.shown import number_of
from redelivery.policies.dead_letter_headers import RUN, application_properties

REPLAYED: Final = "redeliveryReplay"
"""A property of what was replayed: of which run."""
REPLAYS: Final = "redeliveryReplays"
"""A property of what was replayed: how often it was."""
MARKS: Final = (REPLAYED, REPLAYS)
REPLAYS_ALLOWED: Final = 3
"""As often a letter is replayed, unless an operator says otherwise."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Leaving:
    """The message that is sent for a letter, and how."""

    message: Message
    destination: Destination
    priority: int
    persistent: bool


Route: TypeAlias = Callable[[Message], Leaving | None]
"""None: it is taken away, and nothing is sent. Raises NoWayError: it must stay."""


def new_run() -> str:
    """Return the name of one run, for `REPLAYED`."""
    return token_hex(8)


class NoWayError(JMSError):
    """A letter that does not say where it came from, so that it stays."""


class ReplayedOftenError(NoWayError):
    """A letter that was replayed, and is here again, too often: it is skipped."""


def back(to: Destination | None, run: str, most: int = 0) -> Route:
    """The route to where it came from, or to ``to``, as it was before it failed: without what made it a dead letter.

    ``most``: a letter that was replayed so often stays; 0: however often it was.
    """

    def leave(letter: Message) -> Leaving:
        if letter.properties.get(REPLAYED) == run:
            raise NoWayError(f"letter {letter.message_id} was replayed by this run, and is here again")
        said = letter.dead_letter
        target = to or (None if said is None else said.origin)
        if target is None:
            raise NoWayError(f"letter {letter.message_id} does not say where it came from: name a queue")
        copy = letter.copy()
        before = replays_of(letter)
        if most and before >= most:
            raise ReplayedOftenError(
                f"letter {letter.message_id} was replayed {number_of(before, 'time')}, and is here again: it is "
                "skipped, unless --max-replays says otherwise (0: no limit)"
            )
        copy.properties = {**application_properties(copy.properties), REPLAYED: run, REPLAYS: before + 1}
        return Leaving(copy, target, letter.priority, letter.persistent)

    return leave


def replays_of(letter: Message) -> int:
    """Return how often a letter was replayed, by whomever: it carries the number."""
    said = letter.properties.get(REPLAYS)
    found = _NUMBER.fullmatch(str(said)) if isinstance(said, int | str) and not isinstance(said, bool) else None
    return 0 if found is None else int(found[0])


def elsewhere(to: Destination, run: str = "") -> Route:
    """The route to another queue, with all that the letter says: also what its broker says of it, not its sender.

    ``run``: its copies carry this name, by which they are told from letters that say the same; empty: none.
    """

    def leave(letter: Message) -> Leaving:
        copy = letter.copy()
        said = {} if ORIGINAL_DESTINATION in letter.properties else failed_properties(dead_letter_record(letter))
        if said or run:
            copy.adopt({**letter.properties, **said, **({RUN: run} if run else {})})
        return Leaving(copy, to, letter.priority, letter.persistent)

    return leave


def nowhere() -> Route:
    """Taken away."""
    return lambda _: None
