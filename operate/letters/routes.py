"""Decides how a letter leaves its queue: as what, and where to; None of both: it is only taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Final, TypeAlias

from redelivery.model.destinations import Destination
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.policies.dead_letter_headers import application_properties

REPLAYED: Final = "redeliveryReplay"
"""A property of what was replayed: of which run."""
REPLAYS: Final = "redeliveryReplays"
"""A property of what was replayed: how often it was."""
MARKS: Final = (REPLAYED, REPLAYS)


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


def back(to: Destination | None, run: str) -> Route:
    """The route to where it came from, or to ``to``, as it was before it failed: without what made it a dead letter."""

    def leave(letter: Message) -> Leaving:
        if letter.properties.get(REPLAYED) == run:
            raise NoWayError(f"letter {letter.message_id} was replayed by this run, and is here again")
        said = letter.dead_letter
        target = to or (None if said is None else said.origin)
        if target is None:
            raise NoWayError(f"letter {letter.message_id} does not say where it came from: name a queue")
        copy = letter.copy()
        before = copy.properties.get(REPLAYS)
        replays = int(before) + 1 if isinstance(before, int | str) and str(before).isdigit() else 1
        copy.properties = {**application_properties(copy.properties), REPLAYED: run, REPLAYS: replays}
        return Leaving(copy, target, letter.priority, letter.persistent)

    return leave


def elsewhere(to: Destination) -> Route:
    """The route to another queue, with all that the letter says."""
    return lambda letter: Leaving(letter.copy(), to, letter.priority, letter.persistent)


def nowhere() -> Route:
    """Taken away."""
    return lambda _: None
