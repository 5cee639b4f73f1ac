"""Groups of letters with a curve each: how many failed in each part of the time that all of them take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redelivery.model.messages import Message
from redelivery.operate.letters.folding import By, Folding, failure
from redelivery.operate.letters.groups import Group, failed_at, group

PARTS: Final = 24
"""Parts of the time between the first and the last letter."""


def grouped(letters: Sequence[Message], by: By = "cause") -> list[tuple[Group, tuple[int, ...]]]:
    """The groups, the largest first, each with the numbers of its letters in `PARTS` equal parts of the time.

    The time is that of all letters, so that curves can be compared; letters that say no time are in none.
    """
    groups = group(letters, by)
    times = [failed_at(each) for each in letters]
    known = [each.timestamp() for each in times if each is not None]
    curves = {each.fingerprint: [0] * PARTS for each in groups}
    if known:
        first, span = min(known), (max(known) - min(known)) or 1.0
        failures = [failure(each) for each in letters]
        folding = Folding(failures)
        for found, at in zip(failures, times, strict=True):
            if at is not None:
                part = min(int((at.timestamp() - first) / span * PARTS), PARTS - 1)
                curves[folding.fingerprint(found, by)][part] += 1
    return [(each, tuple(curves[each.fingerprint])) for each in groups]
