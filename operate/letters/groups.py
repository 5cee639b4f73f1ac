"""Letters that failed alike: the same origin, and the same exception but for its numbers and names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from redelivery.model.messages import Message
from redelivery.operate.letters.folding import By, Folding, LetterFailure, failure, literal


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one fingerprint.

    ``cause``, ``exception``: of its first letter; by type the type alone. ``origin``: None where they have several.
    ``first``, ``last``: when the earliest and latest of them failed, or were sent where they do not say that.
    """

    fingerprint: str
    count: int
    origin: str | None
    cause: str | None
    exception: str | None
    first: datetime | None
    last: datetime | None


@dataclass(slots=True)
class _Members:
    first: Message
    count: int = 0
    earliest: datetime | None = None
    latest: datetime | None = None
    origins: set[str | None] = field(default_factory=set)

    def add(self, other: _Members) -> None:
        """Count those of another."""
        self.count += other.count
        self.origins |= other.origins
        self.earliest = min(filter(None, (self.earliest, other.earliest)), default=None)
        self.latest = max(filter(None, (self.latest, other.latest)), default=None)


def fingerprint(message: Message) -> str:
    """The same of letters that failed alike and have the same names in their exceptions; see `Folding`."""
    return literal(failure(message))


def failed_at(message: Message) -> datetime | None:
    """The time when it became a dead letter; where it does not say that, when it was sent."""
    letter = message.dead_letter
    return message.timestamp if letter is None or letter.at is None else letter.at


def group(messages: Iterable[Message], by: By = "cause") -> list[Group]:
    """The groups, the largest first."""
    failures: dict[LetterFailure, _Members] = {}
    for message in messages:
        at, letter = failed_at(message), message.dead_letter
        origin = None if letter is None or letter.origin is None else str(letter.origin)
        members = failures.setdefault(failure(message), _Members(message))
        members.add(_Members(message, 1, at, at, {origin}))
    folding, groups = Folding(failures), dict[str, tuple[LetterFailure, _Members]]()
    for each, members in failures.items():
        name = folding.fingerprint(each, by)
        if name in groups:
            groups[name][1].add(members)
        else:
            groups[name] = (each, members)
    found = [_group(name, by, *each) for name, each in groups.items()]
    return sorted(found, key=lambda each: (-each.count, each.fingerprint))


def _group(name: str, by: By, found: LetterFailure, members: _Members) -> Group:
    letter = members.first.dead_letter
    exception = None if letter is None else letter.exception
    return Group(
        fingerprint=name,
        count=members.count,
        origin=min(filter(None, members.origins), default=None) if len(members.origins) == 1 else None,
        cause=None if letter is None else letter.cause,
        exception=(found.kind or exception) if by == "type" else exception,
        first=members.earliest,
        last=members.latest,
    )
