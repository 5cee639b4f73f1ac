"""How Artemis and HornetQ spell the address settings that concern redelivery, dead letters and expiry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from redelivery.policies.checks import INT_MAX, LONG_MAX, read_flag, read_number, read_whole, to_ms
from redelivery.policies.destinations.address_settings import NO_EXPIRY


def _milliseconds(name: str, value: str) -> float:
    return read_whole(name, value, 0, LONG_MAX) / 1000


def _expiry(name: str, value: str) -> float:
    milliseconds = read_whole(name, value, -1, LONG_MAX)
    return NO_EXPIRY if milliseconds == -1 else milliseconds / 1000


def _multiplier(name: str, value: str) -> float:
    return read_number(name, value, 0.0)


def _factor(name: str, value: str) -> float:
    return read_number(name, value, 0.0, 1.0)


def _attempts(name: str, value: str) -> int:
    return read_whole(name, value, -1, INT_MAX)


def _text(name: str, value: str) -> str:  # noqa: ARG001  # the others need the name for their errors
    return value


NAMES: Final[Mapping[str, tuple[str, Callable[[str, str], object]]]] = MappingProxyType(
    {
        "redelivery-delay": ("redelivery_delay", _milliseconds),
        "redelivery-delay-multiplier": ("redelivery_delay_multiplier", _multiplier),
        "redelivery-collision-avoidance-factor": ("redelivery_collision_avoidance_factor", _factor),
        "max-redelivery-delay": ("max_redelivery_delay", _milliseconds),
        "max-delivery-attempts": ("max_delivery_attempts", _attempts),
        "dead-letter-address": ("dead_letter_address", _text),
        "send-to-dla-on-no-route": ("send_to_dla_on_no_route", read_flag),
        "auto-create-dead-letter-resources": ("auto_create_dead_letter_resources", read_flag),
        "dead-letter-queue-prefix": ("dead_letter_queue_prefix", _text),
        "dead-letter-queue-suffix": ("dead_letter_queue_suffix", _text),
        "expiry-address": ("expiry_address", _text),
        "expiry-delay": ("expiry_delay", _expiry),
        "min-expiry-delay": ("min_expiry_delay", _expiry),
        "max-expiry-delay": ("max_expiry_delay", _expiry),
        "no-expiry": ("no_expiry", read_flag),
        "auto-create-expiry-resources": ("auto_create_expiry_resources", read_flag),
        "expiry-queue-prefix": ("expiry_queue_prefix", _text),
        "expiry-queue-suffix": ("expiry_queue_suffix", _text),
    }
)
"""Element of an ``address-setting`` -> the field of AddressSettings, and what reads its value."""

SINCE_ARTEMIS: Final = frozenset(
    {
        "redelivery-collision-avoidance-factor",
        "auto-create-dead-letter-resources",
        "dead-letter-queue-prefix",
        "dead-letter-queue-suffix",
        "min-expiry-delay",
        "max-expiry-delay",
        "no-expiry",
        "auto-create-expiry-resources",
        "expiry-queue-prefix",
        "expiry-queue-suffix",
    }
)
"""What HornetQ does not have."""

CONCERNS: Final = re.compile(r"redel|deliv|dead|dlq|dla\b|expir", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""

ELEMENTS: Final[Mapping[str, str]] = MappingProxyType({field: name for name, (field, _) in NAMES.items()})


def spelled(field: str, value: object) -> str:
    """A value as the file writes it: durations in milliseconds, ``true`` and ``false``."""
    if isinstance(value, bool):
        return str(value).lower()
    if field.endswith("_delay") and isinstance(value, (int, float)):
        return "-1" if value == NO_EXPIRY else str(to_ms(value))
    return str(value)
