"""The reasons why an entry of a policy map counts for a destination."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Generic, TypeVar

from redelivery.model.destinations import Destination
from redelivery.policies.destinations.map import MapEntry
from redelivery.policies.destinations.patterns import ONE, REST

T = TypeVar("T")

DEFAULT_KEY: Final = "(default)"
_KINDS: Final = {ONE: "'*', any one word", REST: "'>', any further words"}


@dataclass(frozen=True, slots=True)
class Explanation(Generic[T]):
    """``candidates``: the entries that match ``destination``, the most specific first; ``str()`` says why."""

    destination: Destination
    candidates: tuple[MapEntry[T], ...]
    default: T

    @property
    def winner(self) -> MapEntry[T]:
        """The first candidate; where nothing matches, an entry ``(default)`` with the default."""
        return self.candidates[0] if self.candidates else MapEntry(DEFAULT_KEY, DEFAULT_KEY, "", (), self.default)

    def __str__(self) -> str:
        lines = [f"{self.destination}: {self.winner.pattern} counts: {self.winner.value}", *self.reasons()]
        return "\n  ".join(lines)

    def reasons(self) -> list[str]:
        """One line for each candidate that had to stand back, or that there was none."""
        if not self.candidates:
            return ["no entry matches"]
        return [why_before(self.winner, later) for later in self.candidates[1:]]


def why_before(first: MapEntry[T], later: MapEntry[T]) -> str:
    """Say what makes one of two entries, which match the same destination, the more specific one."""
    text = f"{first.pattern} comes before {later.pattern}: "
    if first.is_qualified and not later.is_qualified:
        return text + "it names the queue too, there it is an address"
    for number, (ours, theirs) in enumerate(zip_longest(first.words, later.words, fillvalue=None), 1):
        if _kind(ours) != _kind(theirs):
            return text + f"its word {number} is {_kind(ours)}, there it is {_kind(theirs)}"
    if first.scheme and not later.scheme:
        return text + f"it is for a {first.scheme} only"
    return text + "equally specific, in the order of their names"


def _kind(word: str | None) -> str:
    return "missing" if word is None else _KINDS.get(word, "a literal")
