"""Values by destination, with wildcards, and one total order of which entry comes first.

A key is the name of a destination or a pattern (`destination_patterns`); ``queue://`` or ``topic://`` narrows it,
without a scheme it is for both, and commas join several in one key.

Of the entries that match, the most specific comes first: word by word a literal before ``*`` before ``>``, and of two
equal patterns the one with a scheme. So an exact name comes before every pattern. Unlike in ActiveMQ, where the order
of a hash table decides some pairs, the order in which the entries were given never matters.

``address::queue`` (Artemis) has what its address has, unless an entry names it whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from redelivery.model.destinations import Destination, check_spelling, destination, read_destination
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.policies.destinations.patterns import ONE, REST, covers, words_of

T = TypeVar("T")

QUALIFIED: Final = "::"
_WILDNESS: Final = {ONE: 1, REST: 2}


@dataclass(frozen=True, slots=True)
class MapEntry(Generic[T]):
    """One pattern and its value.

    ``key``: the whole key as it was given; ``pattern``: this one of those that commas join in it.
    ``scheme``: ``queue``, ``topic``, or "" for both.
    """

    key: str
    pattern: str
    scheme: str
    words: tuple[str, ...]
    value: T

    @property
    def is_qualified(self) -> bool:
        """True where it names a queue with its address."""
        return QUALIFIED in self.pattern

    @property
    def rank(self) -> tuple[tuple[int, ...], bool, tuple[str, ...], str]:
        """The smaller one comes first."""
        return tuple(_WILDNESS.get(word, 0) for word in self.words), not self.scheme, self.words, self.scheme


class DestinationMap(Generic[T]):
    """An immutable map from patterns to values.

    Raises:
        ConfigError: a key is not a pattern, or two keys are the same pattern.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, T] | Mapping[Destination, T] | Mapping[str | Destination, T]) -> None:
        if not isinstance(entries, Mapping):
            raise ConfigError(f"a map from patterns to values is needed, not a {type(entries).__name__}")
        parsed: dict[tuple[str, tuple[str, ...]], MapEntry[T]] = {}
        for key, value in entries.items():
            for entry in _parse(key, value):
                same = parsed.setdefault((entry.scheme, entry.words), entry)
                if same is not entry:
                    raise ConfigError(
                        f"{entry.key!r} and {same.key!r} both hold the pattern {entry.pattern!r}; leave one out"
                    )
        self._entries = tuple(sorted(parsed.values(), key=lambda entry: entry.rank))

    @property
    def entries(self) -> tuple[MapEntry[T], ...]:
        """All entries, the most specific first."""
        return self._entries

    def candidates(self, target: Destination | str) -> tuple[MapEntry[T], ...]:
        """The entries that match, the most specific first; empty where none does.

        A wildcard in ``target`` (that of a consumer) is matched by an entry that is equal to it or covers all of it.
        Raises InvalidDestinationError: the str is not a destination.
        """
        wanted = destination(target)
        names = wanted.name.split(",")
        split = [words_of(name) for name in names]
        addresses = [words_of(name.partition(QUALIFIED)[0]) for name in names]
        found = [
            entry
            for entry in self._entries
            if entry.scheme in ("", wanted.scheme)
            and any(covers(entry.words, name) for name in (split if entry.is_qualified else addresses))
        ]
        return tuple(sorted(found, key=lambda entry: not entry.is_qualified))

    def get(self, target: Destination | str) -> T | None:
        """The value of the first candidate, None where nothing matches."""
        found = self.candidates(target)
        return found[0].value if found else None


def _parse(key: object, value: T) -> Iterator[MapEntry[T]]:
    text = str(key) if isinstance(key, Destination) else key
    if not isinstance(text, str):
        raise ConfigError(f"{key!r} is not a destination or pattern; use a str like 'orders.*' or 'topic://news.>'")
    shared = text.partition("://")[0] if "://" in text.partition(",")[0] else ""
    for part in text.split(","):
        before, separator, name = part.rpartition("://")
        scheme = before if separator else shared  # the first one's counts for those without, as in ActiveMQ
        try:
            words = words_of(read_destination(f"{scheme or 'queue'}://{name}").name)
            if not scheme:  # with one it is said what the name is
                check_spelling(name)
        except InvalidDestinationError as error:
            raise ConfigError(f"{text!r} is not a destination or pattern: {error}") from error
        if REST in words[:-1]:
            raise ConfigError(f"{text!r}: '>' or '#' can only be the last word of a pattern")
        yield MapEntry(text, f"{scheme}://{name}" if scheme else name, scheme, words, value)
