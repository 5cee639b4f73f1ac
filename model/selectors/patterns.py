"""LIKE (JMS 3.1 §3.8.1.2), without backtracking: whatever the pattern, the time grows with text and pattern.

Between two `%` stands a segment, and the first place where it fits is as good as any later one. A segment without `_`
is searched for as a string. For one with `_`, each character of what is searched is a bit of a number, and each
character of the segment a shift and an AND, for all places at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

_ANY: Final = ""  # `_` in a segment
Segment: TypeAlias = "tuple[str, ...]"  # one character each, or _ANY


class LikePattern:
    """A pattern; ``wildcards`` is how many `%` are in it, those that stand for themselves aside."""

    __slots__ = ("_first", "_last", "_middle", "_shortest", "_whole", "_wild", "wildcards")

    def __init__(self, text: str, escape: str | None) -> None:
        """Raises ValueError where it ends with the escape character."""
        segments = _segments(text, escape)
        self.wildcards = len(segments) - 1
        self._whole = segments[0] if not self.wildcards else None
        self._first, self._last = segments[0], segments[-1]
        self._middle = [segment for segment in segments[1:-1] if segment]
        self._shortest = sum(map(len, segments))
        self._wild = {char for segment in self._middle if _ANY in segment for char in segment} - {_ANY}

    def matches(self, text: str) -> bool:
        """Match all of the text against the pattern."""
        if self._whole is not None:
            return len(text) == len(self._whole) and _fits(self._whole, text, 0)
        if len(text) < self._shortest or not _fits(self._first, text, 0):
            return False
        end = len(text) - len(self._last)
        return _fits(self._last, text, end) and self._find_middle(text, end)

    def _find_middle(self, text: str, end: int) -> bool:
        at = len(self._first)
        places = _places(text, self._wild) if self._wild else {}
        for segment in self._middle:
            found = _find(segment, places, at, end) if _ANY in segment else text.find("".join(segment), at, end)
            if found < 0:
                return False
            at = found + len(segment)
        return at <= end


def _segments(text: str, escape: str | None) -> list[Segment]:
    segments: list[Segment] = []
    segment: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError("the pattern ends with its escape character: nothing is left to be escaped")
            segment.append(escaped)
        elif character == "%":
            segments.append(tuple(segment))
            segment.clear()
        else:
            segment.append(_ANY if character == "_" else character)
    return [*segments, tuple(segment)]


def _fits(segment: Segment, text: str, at: int) -> bool:
    """Compare a segment with the text at a place that has room for it."""
    if _ANY not in segment:
        return text.startswith("".join(segment), at)
    return all(char in (_ANY, text[at + index]) for index, char in enumerate(segment))


def _places(text: str, characters: Iterable[str]) -> dict[str, int]:
    """For each character a number that has the bits of the places where it stands in the text."""
    found = {character: bytearray(len(text) // 8 + 1) for character in characters if character in text}
    for index, character in enumerate(text):
        if character in found:
            found[character][index >> 3] |= 1 << (index & 7)
    return {character: int.from_bytes(bits, "little") for character, bits in found.items()}


def _find(segment: Segment, places: dict[str, int], start: int, end: int) -> int:
    """The first place from ``start`` at which it fits and ends by ``end``; -1 where there is none."""
    count = end - len(segment) - start + 1  # places where it could begin
    if count <= 0:
        return -1
    candidates = (1 << count) - 1
    for offset, character in enumerate(segment):
        if character != _ANY:
            candidates &= places.get(character, 0) >> (start + offset)
            if not candidates:
                return -1
    return start + (candidates & -candidates).bit_length() - 1
