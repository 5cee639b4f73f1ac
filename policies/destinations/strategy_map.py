"""A dead-letter strategy per destination, by pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from redelivery.model.destinations import Destination, destination
from redelivery.model.errors import ConfigError
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, DeadLetterStrategy
from redelivery.policies.destinations.bound import BoundTo
from redelivery.policies.destinations.explain import Explanation
from redelivery.policies.destinations.map import DestinationMap, MapEntry


class DeadLetterStrategyMap(Mapping[str, DeadLetterStrategy]):
    """Immutable. A mapping from patterns to strategies, of which the most specific pattern counts for a destination.

    Keys and their order: `destination_map`. ``default``: for what no entry matches; None: BrokerDeadLetterStrategy(),
    as where a connection is given no strategy. As a mapping it has its entries only, without the default. ``queues``:
    those that the broker's file makes, where it is of one whose addresses have queues of other names, and lists them.

    Raises:
        ConfigError: a key is not a pattern or occurs twice, or a value is not a DeadLetterStrategy; the text names it.
    """

    __slots__ = ("_default", "_entries", "_map", "_queues")

    def __init__(
        self,
        entries: Mapping[str, DeadLetterStrategy] | Mapping[str | Destination, DeadLetterStrategy],
        default: DeadLetterStrategy | None = None,
        *,
        queues: Sequence[BoundTo] | None = None,
    ) -> None:
        self._queues = None if queues is None else tuple(queues)
        self._default = BrokerDeadLetterStrategy() if default is None else default
        _check("default", self._default)
        self._map: DestinationMap[DeadLetterStrategy] = DestinationMap(entries)
        for entry in self._map.entries:
            _check(repr(entry.key), entry.value)
        self._entries = MappingProxyType({str(key): value for key, value in entries.items()})

    @property
    def default(self) -> DeadLetterStrategy:
        """The strategy that counts where no entry matches."""
        return self._default

    @property
    def entries(self) -> tuple[MapEntry[DeadLetterStrategy], ...]:
        """All entries, the most specific first."""
        return self._map.entries

    @property
    def queues(self) -> tuple[BoundTo, ...] | None:
        """The queues that the broker's file makes; None: nothing is known of them."""
        return self._queues

    def strategy_for(self, target: Destination | str) -> DeadLetterStrategy:
        """The strategy of the most specific entry that matches ``target``, else the default. A plain str is a queue.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        found = self._map.get(target)
        return self._default if found is None else found

    def explain(self, target: Destination | str) -> Explanation[DeadLetterStrategy]:
        """List the entries that match ``target``, in their order, and say why the first one counts.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        return Explanation(destination(target), self._map.candidates(target), self._default)

    def __getitem__(self, pattern: str) -> DeadLetterStrategy:
        return self._entries[pattern]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        """Compare the entries and the default."""
        if not isinstance(other, DeadLetterStrategyMap):
            return NotImplemented
        return self._entries == other._entries and self._default == other._default

    __hash__ = None  # type: ignore[assignment]  # as of every Mapping

    def __repr__(self) -> str:
        keys = ", ".join(map(repr, self._entries))
        return f"<DeadLetterStrategyMap {keys or 'without entries'}>"


def _check(name: str, value: object) -> None:
    if not isinstance(value, DeadLetterStrategy):
        raise ConfigError(f"{name}: {value!r} is not a dead-letter strategy: use e.g. SharedDeadLetterStrategy('DLQ')")
