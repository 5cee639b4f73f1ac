"""Groups of letters with a curve each: how many failed in each part of the time that all of them take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from redelivery.model.messages import Message
from redelivery.operate.letters.fingerprints import By, Fingerprints, traits
from redelivery.operate.letters.groups import Group, failed_at, group
from redelivery.operate.letters.states.resolved import Resolution

PARTS: Final = 24
"""Parts of the time between the first and the last letter."""


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
