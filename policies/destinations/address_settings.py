"""Artemis' and HornetQ's rules for a rolled-back message: address settings, merged field by field per address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from redelivery.model.destinations import Destination, destination
from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import suggesting
from redelivery.policies.activemq.back_off import Random, artemis_delay
from redelivery.policies.checks import (
    Seconds,
    check_flag,
    check_number,
    check_optional_str,
    check_seconds,
    check_whole,
    to_ms,
)
from redelivery.policies.destinations.explain import DEFAULT_KEY, why_before
from redelivery.policies.destinations.map import DestinationMap, MapEntry
from redelivery.policies.redelivery import NO_LIMIT, RedeliveryPolicy

NO_EXPIRY: Final = -1.0
_MAX_FACTOR_OF_DELAY: Final = 10


def _check_str(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ConfigError(f"{name}={value!r}: use a str")


def _check_expiry(name: str, value: object) -> float:
    return NO_EXPIRY if isinstance(value, (int, float)) and value == NO_EXPIRY else check_seconds(name, value)


_FIELDS: Final[Mapping[str, tuple[object, Callable[[str, object], object]]]] = {
    "redelivery_delay": (0.0, check_seconds),
    "redelivery_delay_multiplier": (1.0, partial(check_number, minimum=0.0)),
    "redelivery_collision_avoidance_factor": (0.0, partial(check_number, minimum=0.0, maximum=1.0)),
    "max_redelivery_delay": (None, lambda name, value: None if value is None else check_seconds(name, value)),
    "max_delivery_attempts": (10, partial(check_whole, minimum=-1)),
    "dead_letter_address": (None, check_optional_str),
    "expiry_address": (None, check_optional_str),
    "auto_create_dead_letter_resources": (False, check_flag),
    "dead_letter_queue_prefix": ("DLQ.", _check_str),
    "dead_letter_queue_suffix": ("", _check_str),
    "send_to_dla_on_no_route": (False, check_flag),
    "expiry_delay": (NO_EXPIRY, _check_expiry),
    "min_expiry_delay": (NO_EXPIRY, _check_expiry),
    "max_expiry_delay": (NO_EXPIRY, _check_expiry),
    "no_expiry": (False, check_flag),
    "auto_create_expiry_resources": (False, check_flag),
    "expiry_queue_prefix": ("EXP.", _check_str),
    "expiry_queue_suffix": ("", _check_str),
}
"""Field -> (default, check)."""


@dataclass(frozen=True, slots=True, init=False)
class AddressSettings:
    """Artemis' ``address-setting``; durations in seconds, or given as timedelta. A field not given has the default.

    ``redelivery_delay`` (0): before the first redelivery; each later one is ``redelivery_delay_multiplier`` (1.0) times
    the previous one, moved up or down randomly by less than ``redelivery_collision_avoidance_factor`` (0.0, 0 to 1)
    of it, and at most ``max_redelivery_delay`` (ten times ``redelivery_delay``).
    ``max_delivery_attempts`` (10): deliveries in all, then the message goes to ``dead_letter_address``, or is removed
    where that is None; -1 for no limit.
    ``expiry_address``: where expired messages go.
    ``send_to_dla_on_no_route`` (False): a message that no queue takes goes to ``dead_letter_address``.
    ``expiry_delay`` (-1: none): the time to live of messages that have none; ``min_expiry_delay`` and
    ``max_expiry_delay`` (-1: no bound) change it where it is outside, or absent (then the maximum); ``no_expiry``: no
    message expires.
    ``auto_create_dead_letter_resources`` (False): a queue per original address, named ``dead_letter_queue_prefix``
    (``DLQ.``) + address + ``dead_letter_queue_suffix``; ``auto_create_expiry_resources``, ``expiry_queue_prefix``
    (``EXP.``) and ``expiry_queue_suffix`` are the same for expired messages.
    ``fields_set``: the names of the fields that were given: only these take part when settings are merged.

    Raises:
        ConfigError: a value of a wrong type or out of its range; the text names it.
    """

    redelivery_delay: float
    redelivery_delay_multiplier: float
    redelivery_collision_avoidance_factor: float
    max_redelivery_delay: float | None
    max_delivery_attempts: int
    dead_letter_address: str | None
    expiry_address: str | None
    auto_create_dead_letter_resources: bool
    dead_letter_queue_prefix: str
    dead_letter_queue_suffix: str
    send_to_dla_on_no_route: bool
    expiry_delay: float
    min_expiry_delay: float
    max_expiry_delay: float
    no_expiry: bool
    auto_create_expiry_resources: bool
    expiry_queue_prefix: str
    expiry_queue_suffix: str
    fields_set: frozenset[str] = field(compare=False)

    @suggesting({"max_redeliveries": "max_delivery_attempts", "maximum_redeliveries": "max_delivery_attempts"})
    def __init__(
        self,
        *,
        redelivery_delay: Seconds | None = None,
        redelivery_delay_multiplier: float | None = None,
        redelivery_collision_avoidance_factor: float | None = None,
        max_redelivery_delay: Seconds | None = None,
        max_delivery_attempts: int | None = None,
        dead_letter_address: str | None = None,
        expiry_address: str | None = None,
        auto_create_dead_letter_resources: bool | None = None,
        dead_letter_queue_prefix: str | None = None,
        dead_letter_queue_suffix: str | None = None,
        send_to_dla_on_no_route: bool | None = None,
        expiry_delay: Seconds | None = None,
        min_expiry_delay: Seconds | None = None,
        max_expiry_delay: Seconds | None = None,
        no_expiry: bool | None = None,
        auto_create_expiry_resources: bool | None = None,
        expiry_queue_prefix: str | None = None,
        expiry_queue_suffix: str | None = None,
        fields_set: Iterable[str] | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in _FIELDS}
        # dataclasses.replace hands every field over, and the old fields_set: then what differs from its default is new.
        was_set = None if fields_set is None else frozenset(fields_set)
        names = set()
        put = partial(object.__setattr__, self)
        for name, value in given.items():
            default, check = _FIELDS[name]
            checked = default if value is None else check(name, value)
            put(name, checked)
            if value is not None and (was_set is None or name in was_set or checked != default):
                names.add(name)
        put("fields_set", frozenset(names))

    @property
    def longest_delay(self) -> float:
        """The cap of every delay in seconds: ``max_redelivery_delay``, or ten times ``redelivery_delay``."""
        cap = self.max_redelivery_delay
        return self.redelivery_delay * _MAX_FACTOR_OF_DELAY if cap is None else cap

    def delay(self, delivery_count: int, rng: Random | None = None) -> float:
        """Seconds before the redelivery that follows the n-th delivery, n = 1, 2, …; exact to the millisecond.

        ``delivery_count``: that n.
        ``rng`` serves collision avoidance: its ``random()`` is drawn twice. The cap comes after it.

        Raises:
            ConfigError: the count is not an integer >= 1.
        """
        check_whole("delivery_count", delivery_count, 1)
        delay = artemis_delay(
            delivery_count,
            to_ms(self.redelivery_delay),
            self.redelivery_delay_multiplier,
            self.redelivery_collision_avoidance_factor,
            to_ms(self.longest_delay),
            rng,
        )
        return delay / 1000

    def exceeded(self, delivery_count: int) -> bool:
        """Say whether a message goes to the dead-letter address after its ``delivery_count``-th delivery.

        Raises:
            ConfigError: the count is not an integer >= 1.
        """
        check_whole("delivery_count", delivery_count, 1)
        return 0 < self.max_delivery_attempts <= delivery_count

    def merged_with(self, less_specific: AddressSettings) -> AddressSettings:
        """These settings, with the fields that they do not set taken from ``less_specific`` ones."""
        values: dict[str, Any] = {name: getattr(less_specific, name) for name in less_specific.fields_set}
        values.update((name, getattr(self, name)) for name in self.fields_set)
        return AddressSettings(**values)


class AddressSettingsMap:
    """Immutable. Each field comes from the most specific entry that sets it, else it has its default.

    ``entries``: settings by patterns: ``*`` stands for one word, ``#`` (or ``>``) for any further ones. The most
    specific one comes first: word by word literal before ``*`` before ``#``.

    Raises:
        ConfigError: a key is not a pattern or occurs twice, or a value is not an AddressSettings; the text names it.
    """

    __slots__ = ("_map",)

    def __init__(self, entries: Mapping[str, AddressSettings] | Mapping[str | Destination, AddressSettings]) -> None:
        self._map = DestinationMap(entries)
        for entry in self._map.entries:
            if not isinstance(entry.value, AddressSettings):
                raise ConfigError(f"{entry.key!r}: {entry.value!r} is not an AddressSettings")

    def settings_for(self, target: Destination | str) -> AddressSettings:
        """The merged settings of ``target``, an address. A str without a scheme is a queue.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        merged = AddressSettings()
        for entry in self._map.candidates(target):
            merged = merged.merged_with(entry.value)
        return merged

    def explain(self, target: Destination | str) -> SettingsExplanation:
        """List the entries that match ``target``, in their order, and say which one each field comes from.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        return SettingsExplanation(destination(target), self._map.candidates(target), self.settings_for(target))

    def __repr__(self) -> str:
        keys = ", ".join(repr(key) for key in dict.fromkeys(entry.key for entry in self._map.entries))
        return f"<AddressSettingsMap {keys or 'without entries'}>"


@dataclass(frozen=True, slots=True)
class SettingsExplanation:
    """``candidates``: the entries that match ``destination``, the most specific first; ``settings``: them merged."""

    destination: Destination
    candidates: tuple[MapEntry[AddressSettings], ...]
    settings: AddressSettings

    @property
    def winner(self) -> MapEntry[AddressSettings]:
        """The most specific entry, which is asked first for every field; ``(default)`` where nothing matches."""
        return self.candidates[0] if self.candidates else MapEntry(DEFAULT_KEY, DEFAULT_KEY, "", (), AddressSettings())

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


def client_policy(settings: AddressSettings) -> RedeliveryPolicy:
    """Return the policy of a client that waits and gives up as these settings say."""
    attempts = settings.max_delivery_attempts
    multiplier = settings.redelivery_delay_multiplier
    factor = settings.redelivery_collision_avoidance_factor
    first = settings.redelivery_delay if factor > 0 else min(settings.redelivery_delay, settings.longest_delay)
    return RedeliveryPolicy(
        maximum_redeliveries=attempts - 1 if attempts > 0 else NO_LIMIT,
        initial_redelivery_delay=first,
        redelivery_delay=first,
        use_exponential_back_off=multiplier > 1,
        back_off_multiplier=multiplier if multiplier > 1 else 5.0,
        maximum_redelivery_delay=settings.longest_delay if multiplier > 1 or factor > 0 else None,
        use_collision_avoidance=factor > 0,
        collision_avoidance_percent=round(factor * 100) if factor > 0 else 15,
        move_first_delay=factor > 0,
        pre_dispatch_check=None,
        pre_dispatch_check_set=False,
    )
