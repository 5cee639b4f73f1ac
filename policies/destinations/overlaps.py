"""The patterns that two others share: ``a.b`` of ``a.*`` and ``*.b``, of which neither says all about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, islice
from typing import Final, TypeVar

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.policies.destinations.map import DestinationMap
from redelivery.policies.destinations.patterns import ONE, REST, covers, words_of

T = TypeVar("T")

WILDCARDS: Final = frozenset({ONE, REST, "#"})
_MOST: Final = 500
_MOST_PAIRS: Final = 100_000


def as_destination(key: str) -> Destination:
    """Return the destination of the name that a key of a map has; a pattern is one too."""
    kind = Topic if key.startswith("topic://") else Queue
    return kind(key.partition("://")[2] or key)


def is_pattern(title: str) -> bool:
    """Say whether it stands for more than one destination."""
    return bool(WILDCARDS & set(title.rpartition("://")[2].split("."))) or "," in title


def is_exact(name: str) -> bool:
    """Say whether the name of a broker's queue is, as a key of a map, that queue and nothing else."""
    try:
        return not is_pattern(name) and "://" not in name and bool(Queue(name))
    except InvalidDestinationError:
        return False


def overlaps(titles: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return what two patterns share of which neither covers the other, and these two: ``a.b`` of ``a.*`` and ``*.b``.

    The first 500 of them, of the first 100 000 pairs: a file can have more patterns than could be compared with each
    other in a reasonable time.
    """
    split = [(each, *_split(each)) for each in titles if is_pattern(each) and "," not in each]
    found: dict[str, tuple[str, str]] = {}
    for (one, scheme, words), (two, other_scheme, other_words) in islice(combinations(split, 2), _MOST_PAIRS):
        if scheme and other_scheme and scheme != other_scheme:
            continue
        both = _both(words, other_words)
        if both is None or covers(words, other_words) or covers(other_words, words):
            continue
        name = ".".join(both)
        joined = scheme or other_scheme
        found.setdefault(f"{joined}://{name}" if joined else name, (one, two))
        if len(found) == _MOST:
            break
    return found


def _split(title: str) -> tuple[str, tuple[str, ...]]:
    scheme, _, name = title.rpartition("://")
    return scheme, words_of(name)


def _both(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words of what both patterns match."""
    words: list[str] = []
    for at in range(max(len(one), len(two)) + 1):
        first, second = one[at : at + 1], two[at : at + 1]
        if first == (REST,):
            return (*words, *two[at:])
        if second == (REST,):
            return (*words, *one[at:])
        if not first and not second:
            return tuple(words)
        if not first or not second or (first != second and ONE not in (*first, *second)):
            return None
        words.append(second[0] if first == (ONE,) else first[0])
    return None


def with_overlaps(entries: Mapping[str, T], value_of: Callable[[str], T]) -> dict[str, T]:
    """The entries of a map, and those of what patterns share, where the most specific one would give another value.

    ``value_of``: what counts for all that such a pattern matches.
    """
    titles = dict.fromkeys(entries)
    while new := [each for each in overlaps(titles) if each not in titles]:
        if len(titles) + len(new) > len(entries) + _MOST:
            break
        titles |= dict.fromkeys(new)
    shared = {each: value_of(each) for each in titles if each not in entries}
    chosen = DestinationMap(entries)
    if all(chosen.get(as_destination(each)) == value for each, value in shared.items()):
        return dict(entries)
    return {**entries, **shared}


def usable(entries: Mapping[str, T]) -> dict[str, T]:
    """Return the entries whose keys can be keys of a `DestinationMap`: a broker's ``/queue/x`` is none of ours."""
    alone = {key: value for key, value in entries.items() if _is_map({key: value})}
    if _is_map(alone):
        return alone
    found: dict[str, T] = {}
    for key, value in alone.items():  # two that are the same otherwise written
        if _is_map({**found, key: value}):
            found[key] = value
    return found


def _is_map(entries: Mapping[str, T]) -> bool:
    try:
        DestinationMap(entries)
    except ConfigError:
        return False
    return True
