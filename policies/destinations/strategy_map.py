"""A dead-letter strategy per destination, by pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from redelivery.model.destinations import Destination
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, DeadLetterStrategy
from redelivery.policies.destinations.map import DestinationMap, MapEntry


class DeadLetterStrategyMap(Mapping[str, DeadLetterStrategy]):
    """Immutable. A mapping from patterns to strategies, of which the most specific pattern counts for a destination.

    Keys and their order: `destination_map`. ``BrokerConfig(dead_letter_strategies=…)`` takes it as it is, as
    long as no strategy leaves it to the broker.

    Raises:
        ConfigError: a key is not a pattern, or two keys are the same pattern.
    """

    __slots__ = ("_entries", "_map")

    def __init__(self, entries: Mapping[str, DeadLetterStrategy]) -> None:
        self._entries = MappingProxyType(dict(entries))
        self._map = DestinationMap(entries)

    @property
    def entries(self) -> tuple[MapEntry[DeadLetterStrategy], ...]:
        """All entries, the most specific first."""
        return self._map.entries

    def strategy_for(self, target: Destination | str) -> DeadLetterStrategy:
        """The strategy of the most specific pattern that matches, else the broker's own. A str is a queue.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        return self._map.get(target) or BrokerDeadLetterStrategy()

    def __getitem__(self, pattern: str) -> DeadLetterStrategy:
        return self._entries[pattern]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        keys = ", ".join(map(repr, self._entries))
        return f"<DeadLetterStrategyMap {keys or 'without entries'}>"
