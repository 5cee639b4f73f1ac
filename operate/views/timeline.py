"""The attempts of one letter, beside the times that its policy allows, and groups of letters with a curve each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.operate.letters.fingerprints import By, Fingerprints, traits
from redelivery.operate.letters.groups import Group, failed_at, group
from redelivery.operate.letters.states.resolved import Resolution
from redelivery.operate.simulate import Attempt, attempts_of, simulate
from redelivery.policies.activemq.causes import policy_of
from redelivery.policies.brokers.policies import BrokerPolicies

LISTED: Final = 60
"""Attempts that are listed, at most."""
PARTS: Final = 24
"""Parts of the time between the first and the last letter."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One attempt.

    ``at``: when it was, and ``after`` the first one in seconds; None: the letter does not say. ``host``: where.
    ``planned``: by the policy; None: it has no such attempt, or is not known.
    """

    number: int
    at: datetime | None
    after: float | None
    host: str | None
    planned: Attempt | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """``rows``: in order, `LISTED` at most, of ``total``. ``span``: seconds of the longest. ``source``: of the plan."""

    rows: tuple[TimelineRow, ...]
    total: int
    span: float
    source: str


def timeline(letter: Message, policies: BrokerPolicies | None = None) -> Timeline | None:
    """The attempts of a letter; None: neither it nor the rules (``policies``) say anything of them.

    The plan is that of the policy that the letter names, else that of the rules for the queue that it came from. Where
    it does not say when it was tried, the last attempt was when it became a dead letter.
    """
    said = letter.dead_letter
    if said is None:
        return None
    planned, source = _planned(said.cause, said.origin, policies)
    tried = _tried(letter)
    total = max(len(tried), said.count or 0) or len(planned)
    if not planned and not tried:
        return None
    first: datetime | None
    if not tried and said.at is not None and not said.expired and planned and total <= len(planned):
        first = said.at - timedelta(seconds=planned[total - 1].at)
        tried = {total: (said.at, None)}
    else:
        first = min((at for at, _ in tried.values()), default=None)
    rows = tuple(_row(each, tried, planned, first) for each in range(1, min(total, LISTED) + 1))
    ends = [each.after for each in rows if each.after is not None]
    ends += [each.planned.most for each in rows if each.planned is not None]
    return Timeline(rows, total, max([*ends, 0.001]), source)


def _row(
    number: int,
    tried: dict[int, tuple[datetime, str | None]],
    planned: tuple[Attempt, ...],
    first: datetime | None,
) -> TimelineRow:
    at, host = tried.get(number, (None, None))
    after = None if at is None or first is None else max(0.0, (at - first).total_seconds())
    return TimelineRow(number, at, after, host, planned[number - 1] if number <= len(planned) else None)


def _tried(letter: Message) -> dict[int, tuple[datetime, str | None]]:
    """The attempts of its passport, by their numbers."""
    passport = None if letter.dead_letter is None else letter.dead_letter.passport
    return {} if passport is None else {each.number: (each.at, each.host) for each in passport.attempts}


def _planned(
    cause: str | None, origin: Destination | None, policies: BrokerPolicies | None
) -> tuple[tuple[Attempt, ...], str]:
    policy = None if cause is None else policy_of(cause)
    if policy is not None:
        return attempts_of(policy)[:LISTED], "the policy that the letter names"
    if policies is None or origin is None:
        return (), ""
    try:
        found = simulate(policies, origin)
    except InvalidDestinationError:
        return (), ""
    return found.attempts[:LISTED], f"{policies.path} ({policies.broker})"


def grouped(
    letters: Sequence[Message], by: By = "cause", resolved: Mapping[str, Resolution] | None = None
) -> list[tuple[Group, tuple[int, ...]]]:
    """The groups, the largest first, each with the numbers of its letters in `PARTS` equal parts of the time.

    The time is that of all letters, so that curves can be compared; letters that say no time are in none.
    """
    groups = group(letters, by, resolved)
    times = [failed_at(each) for each in letters]
    known = [each.timestamp() for each in times if each is not None]
    curves = {each.fingerprint: [0] * PARTS for each in groups}
    if known:
        first, span = min(known), (max(known) - min(known)) or 1.0
        said = [traits(each) for each in letters]
        names = Fingerprints(said)
        fingerprints = {each: names.of(each, by) for each in dict.fromkeys(said)}
        for found, at in zip(said, times, strict=True):
            if at is not None:
                part = min(int((at.timestamp() - first) / span * PARTS), PARTS - 1)
                curves[fingerprints[found]][part] += 1
    return [(each, tuple(curves[each.fingerprint])) for each in groups]
