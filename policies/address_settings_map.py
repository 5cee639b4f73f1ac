"""Address settings per address, merged field by field as Artemis does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from redelivery.model.destinations import Destination, destination
from redelivery.model.errors import ConfigError
from redelivery.policies.address_settings import AddressSettings
from redelivery.policies.destination_map import DestinationMap, Entry
from redelivery.policies.explain import DEFAULT_KEY, why_before


class AddressSettingsMap:
    """Immutable. Each field comes from the most specific entry that sets it, else it has its default.

    Keys and their order: `destination_map`; ``#`` (or ``>``) stands for any further words, ``*`` for one.

    Raises:
        ConfigError: a key is no pattern or occurs twice, or a value is no AddressSettings; the text names it.
    """

    __slots__ = ("_map",)

    def __init__(self, entries: Mapping[str, AddressSettings] | Mapping[str | Destination, AddressSettings]) -> None:
        self._map = DestinationMap(entries)
        for entry in self._map.entries:
            if not isinstance(entry.value, AddressSettings):
                raise ConfigError(f"{entry.key!r}: {entry.value!r} is no AddressSettings")

    def settings_for(self, target: Destination | str) -> AddressSettings:
        """The merged settings of an address. A text without a scheme is a queue.

        Raises:
            InvalidDestinationError: the text is no destination.
        """
        merged = AddressSettings()
        for entry in self._map.candidates(target):
            merged = merged.merged_with(entry.value)
        return merged

    def explain(self, target: Destination | str) -> SettingsExplanation:
        """Which entries match, in their order, and which one each field comes from.

        Raises:
            InvalidDestinationError: the text is no destination.
        """
        return SettingsExplanation(destination(target), self._map.candidates(target), self.settings_for(target))

    def __repr__(self) -> str:
        keys = ", ".join(repr(key) for key in dict.fromkeys(entry.key for entry in self._map.entries))
        return f"<AddressSettingsMap {keys or 'without entries'}>"


@dataclass(frozen=True, slots=True)
class SettingsExplanation:
    """``candidates``: the entries that match ``destination``, the most specific first; ``settings``: them merged."""

    destination: Destination
    candidates: tuple[Entry[AddressSettings], ...]
    settings: AddressSettings

    @property
    def winner(self) -> Entry[AddressSettings]:
        """The most specific entry, which is asked first for every field; ``(default)`` where nothing matches."""
        return self.candidates[0] if self.candidates else Entry(DEFAULT_KEY, DEFAULT_KEY, "", (), AddressSettings())

    @property
    def origins(self) -> Mapping[str, str]:
        """Field -> the pattern that it comes from, of the fields that any candidate sets."""
        return {name: entry.pattern for entry in reversed(self.candidates) for name in sorted(entry.value.fields_set)}

    def __str__(self) -> str:
        lines = [
            f"{self.destination}: asked in this order: {', '.join(e.pattern for e in self.candidates) or 'nothing'}"
        ]
        lines += [
            f"{name} = {getattr(self.settings, name)!r}, from {self.origins[name]}" for name in sorted(self.origins)
        ]
        lines += [why_before(self.winner, later) for later in self.candidates[1:]]
        return "\n  ".join(lines)
