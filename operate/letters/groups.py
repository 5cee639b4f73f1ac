"""Letters that failed alike: the same origin, and the same exception but for its numbers and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from redelivery.model.content.dead_letters import DeadLetterInfo
from redelivery.model.messages import Message
from redelivery.operate.letters.fingerprints import By, Fingerprints, LetterTraits, traits_of
from redelivery.operate.letters.folding import folded
from redelivery.operate.letters.states.resolved import Resolution

_DESCRIBED: Final = 200  # characters of a description


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one fingerprint.

    ``cause``, ``exception``: of its first letter; by type the type alone. ``origin``: None where they have several.
    ``first``, ``last``: when the earliest and latest of them failed, or were sent where they do not say that.
    ``release``: the application and its version, of the latest of them that says it. ``rate``: letters an hour between
    ``first`` and ``last``, the first one not counted; None where no time is between. ``state``: ``resolved in 2.4``,
    or ``regressed`` where one failed after that; None where nobody has resolved it. ``frame``: of the application, in
    which the exception was raised, where their passports name the same.
    """

    fingerprint: str
    count: int
    origin: str | None
    cause: str | None
    exception: str | None
    first: datetime | None
    last: datetime | None
    release: str | None = None
    rate: float | None = None
    state: str | None = None
    frame: str | None = None


@dataclass(slots=True)
class _Members:
    """Letters with the same traits, or of one group."""

    first: Message
    count: int = 0
    earliest: datetime | None = None
    latest: datetime | None = None
    origins: set[str | None] = field(default_factory=set)
    frames: set[str | None] = field(default_factory=set)
    traits: dict[LetterTraits, datetime | None] = field(default_factory=dict)  # and when the latest of each failed

    def add(self, letter: Message, said: DeadLetterInfo | None) -> None:
        """Count a letter, which says this."""
        at = letter.timestamp if said is None or said.at is None else said.at
        self.count += 1
        self.earliest = min(filter(None, (self.earliest, at)), default=None)
        self.latest = max(filter(None, (self.latest, at)), default=None)
        self.origins.add(None if said is None or said.origin is None else str(said.origin))
        self.frames.add(None if said is None or said.passport is None else said.passport.frame)

    def join(self, other: _Members) -> None:
        """Count those of another."""
        self.count += other.count
        self.earliest = min(filter(None, (self.earliest, other.earliest)), default=None)
        self.latest = max(filter(None, (self.latest, other.latest)), default=None)
        self.origins |= other.origins
        self.frames |= other.frames
        self.traits |= other.traits


def failed_at(message: Message) -> datetime | None:
    """The time when it became a dead letter; where it does not say that, when it was sent."""
    letter = message.dead_letter
    return message.timestamp if letter is None or letter.at is None else letter.at


def group(
    messages: Iterable[Message], by: By = "cause", resolved: Mapping[str, Resolution] | None = None
) -> list[Group]:
    """The groups, the largest first. ``resolved``: by fingerprint, what `Resolutions` has kept."""
    alike: dict[LetterTraits, _Members] = {}
    for message in messages:
        said = message.dead_letter
        alike.setdefault(traits_of(said), _Members(message)).add(message, said)
    fingerprints, groups = Fingerprints(alike), dict[str, _Members]()
    for each, members in alike.items():
        members.traits[each] = members.latest
        name = fingerprints.of(each, by)
        if name in groups:
            groups[name].join(members)
        else:
            groups[name] = members
    resolutions = fingerprints.having(resolved or {})
    found = [_group(name, by, members, _state(members, resolutions)) for name, members in groups.items()]
    return sorted(found, key=lambda each: (-each.count, each.fingerprint))


def described(found: Group) -> str:
    """A description of its failure: without numbers and values, so that it can be kept."""
    return _described(found.exception or found.cause, found.frame)


def described_letter(said: DeadLetterInfo | None) -> str:
    """The same of one letter."""
    passport = None if said is None else said.passport
    cause = None if said is None else said.exception or said.cause
    return _described(cause, None if passport is None else passport.frame)


def _described(cause: str | None, frame: str | None) -> str:
    what = folded(cause or "no cause")[:_DESCRIBED]
    return f"{what} in {frame}" if frame else what


def _group(name: str, by: By, members: _Members, state: str | None) -> Group:
    letter = members.first.dead_letter
    exception = None if letter is None else letter.exception
    kind = next(iter(members.traits)).failure.kind
    return Group(
        fingerprint=name,
        count=members.count,
        origin=_only(members.origins),
        cause=None if letter is None else letter.cause,
        exception=(kind or exception) if by == "type" else exception,
        first=members.earliest,
        last=members.latest,
        release=_release(members),
        rate=_rate(members),
        state=state,
        frame=_only(members.frames - {None}),  # of a letter without a passport nothing is known
    )


def _only(values: set[str | None]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _release(members: _Members) -> str | None:
    said = [(at is not None, at, each.release) for each, at in members.traits.items() if each.release is not None]
    return max(said)[2] if said else None


def _rate(members: _Members) -> float | None:
    if members.earliest is None or members.latest is None or members.earliest == members.latest:
        return None
    return (members.count - 1) * 3600 / (members.latest - members.earliest).total_seconds()


def _state(members: _Members, resolutions: Mapping[Resolution, frozenset[LetterTraits]]) -> str | None:
    """The state of a group, all of whose letters are of what is resolved; the latest resolution counts."""
    said = [each for each, those in resolutions.items() if members.traits.keys() <= those]
    if not said:
        return None
    latest = max(said, key=lambda each: each.at)
    broken = any(latest.is_broken_by(each.release, at) for each, at in members.traits.items())
    return "regressed" if broken else f"resolved in {latest.release}"
