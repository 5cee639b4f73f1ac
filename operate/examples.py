"""Destinations that stand for a pattern, so that two configurations can be compared by what they do with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final

from redelivery.model.destinations import Destination, read_destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.policies.destinations.patterns import ONE, REST, covers, words_of

_SAMPLE: Final = "x"
_DEPTHS: Final = 3  # no, one and two words for '>'
_MOST_OVERLAPS: Final = 500
_WILDCARDS: Final = frozenset({ONE, REST, "#"})


def is_pattern(title: str) -> bool:
    """Whether it stands for more than one destination."""
    return bool(_WILDCARDS & set(title.rpartition("://")[2].split("."))) or "," in title


def example_of(title: str) -> Destination | None:
    """A destination that a pattern matches; None where it is none of ours."""
    first = title.partition(",")[0]
    scheme, separator, name = first.rpartition("://")
    name = ".".join(_SAMPLE if word in _WILDCARDS else word for word in name.split("."))
    return _read(f"{scheme}://{name}" if separator else name)


def examples_of(title: str, titles: Iterable[str]) -> tuple[Destination, ...]:
    """Destinations of each depth that a pattern matches: with no, one and two further words for ``>``.

    A wildcard becomes a word that is in none of ``titles``, so that no other one matches an example by accident.
    """
    taken = {word for each in titles for word in each.rpartition("://")[2].split(".")}
    sample = _SAMPLE
    while sample in taken:
        sample += _SAMPLE
    found = (_read(each) for pattern in title.split(",") for each in _names(pattern, sample))
    return tuple(dict.fromkeys(each for each in found if each is not None))


def examples_by_title(titles: Iterable[str]) -> dict[str, list[Destination]]:
    """Each title's examples, without those about which a more specific title says more."""
    titles = tuple(dict.fromkeys(titles))
    owners: dict[Destination, str] = {}  # the title that says most of an example
    for title in sorted(titles, key=specificity):
        for example in examples_of(title, titles):
            owners.setdefault(example, title)
    examples: dict[str, list[Destination]] = {title: [] for title in titles}
    for example, title in owners.items():
        examples[title].append(example)
    return examples


def specificity(title: str) -> tuple[bool, int, int]:
    """Sorts names before patterns, and of patterns those first that leave less open."""
    words = title.rpartition("://")[2].split(".")
    return is_pattern(title) and bool({REST, "#"} & set(words)), sum(each in _WILDCARDS for each in words), -len(words)


def overlaps(titles: Iterable[str]) -> dict[str, tuple[str, str]]:
    """What two patterns match of which neither covers the other, and these two: ``a.b`` of ``a.*`` and ``*.b``.

    The first 500 of them: a file can have more patterns than could be compared with each other in a reasonable time.
    """
    split = [(each, *_split(each)) for each in titles if is_pattern(each) and "," not in each]
    found: dict[str, tuple[str, str]] = {}
    for (one, scheme, words), (two, other_scheme, other_words) in combinations(split, 2):
        if scheme and other_scheme and scheme != other_scheme:
            continue
        both = _both(words, other_words)
        if both is None or covers(words, other_words) or covers(other_words, words):
            continue
        name = ".".join(both)
        joined = scheme or other_scheme
        found.setdefault(f"{joined}://{name}" if joined else name, (one, two))
        if len(found) == _MOST_OVERLAPS:
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


def _names(pattern: str, sample: str) -> Iterator[str]:
    scheme, separator, name = pattern.rpartition("://")
    words = [REST if word == "#" else word for word in name.split(".")]
    ends = words[-1] == REST
    words = [sample if word in _WILDCARDS else word for word in (words[:-1] if ends else words)]
    for depth in range(_DEPTHS if ends else 1):
        if words or depth:
            yield f"{scheme}{separator}{'.'.join([*words, *[sample] * depth])}"


def _read(text: str) -> Destination | None:
    try:
        return read_destination(text)
    except InvalidDestinationError:
        return None
