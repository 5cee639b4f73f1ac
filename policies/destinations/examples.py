"""Destinations that stand for a pattern, so that two configurations can be compared by what they do with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from redelivery.model.destinations import Destination, read_destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.policies.destinations.overlaps import WILDCARDS, as_destination, is_pattern
from redelivery.policies.destinations.patterns import ONE, REST

OTHER: Final = "any.other.destination"
"""A name that no file names."""
_SAMPLE: Final = "x"
_DEPTHS: Final = 3  # no, one and two words for '>'


def sample_of(key: str) -> Destination:
    """Return a destination that a key of a map matches."""
    return as_destination(OTHER if key == REST else key.replace(ONE, _SAMPLE).replace(REST, _SAMPLE))


def example_of(title: str) -> Destination | None:
    """Return a destination that a pattern matches; None where it is none of ours."""
    first = title.partition(",")[0]
    scheme, separator, name = first.rpartition("://")
    name = ".".join(_SAMPLE if word in WILDCARDS else word for word in name.split("."))
    return _read(f"{scheme}://{name}" if separator else name)


def examples_of(title: str, titles: Iterable[str]) -> tuple[Destination, ...]:
    """List destinations of each depth that a pattern matches: with no, one and two further words for ``>``.

    A wildcard becomes a word that is in none of ``titles``, so that no other one matches an example by accident.
    """
    taken = {word for each in titles for word in each.rpartition("://")[2].split(".")}
    sample = _SAMPLE
    while sample in taken:
        sample += _SAMPLE
    found = (_read(each) for pattern in title.split(",") for each in _names(pattern, sample))
    return tuple(dict.fromkeys(each for each in found if each is not None))


def examples_by_title(titles: Iterable[str]) -> dict[str, list[Destination]]:
    """Return each title's examples, without those about which a more specific title says more."""
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
    """Sort names before patterns, and of patterns those first that leave less open."""
    words = title.rpartition("://")[2].split(".")
    return is_pattern(title) and bool({REST, "#"} & set(words)), sum(each in WILDCARDS for each in words), -len(words)


def _names(pattern: str, sample: str) -> Iterator[str]:
    scheme, separator, name = pattern.rpartition("://")
    words = [REST if word == "#" else word for word in name.split(".")]
    ends = words[-1] == REST
    words = [sample if word in WILDCARDS else word for word in (words[:-1] if ends else words)]
    for depth in range(_DEPTHS if ends else 1):
        if words or depth:
            yield f"{scheme}{separator}{'.'.join([*words, *[sample] * depth])}"


def _read(text: str) -> Destination | None:
    try:
        return read_destination(text)
    except InvalidDestinationError:
        return None
