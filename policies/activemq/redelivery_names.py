"""ActiveMQ's spelling of a redelivery policy: bean names, milliseconds, and numbers as Java writes them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from redelivery.policies.checks import LONG_MAX, check_known, read_whole
from redelivery.policies.kinds import FLAG, Kind, Names, number, read_all, spell_ms, whole


def _delay(name: str, value: object) -> float:
    return max(read_whole(name, value, -LONG_MAX - 1, LONG_MAX), 0) / 1000


def _cap(name: str, value: object) -> float | None:
    # Java takes a negative cap other than -1 for a cap below redeliveryDelay, which 0 is as well.
    return None if read_whole(name, value, -LONG_MAX - 1, LONG_MAX) == -1 else _delay(name, value)


BEAN: Final[Names] = {
    "maximumRedeliveries": ("maximum_redeliveries", whole(-1)),
    "initialRedeliveryDelay": ("initial_redelivery_delay", Kind(_delay, spell_ms)),
    "redeliveryDelay": ("redelivery_delay", Kind(_delay, spell_ms)),
    "useExponentialBackOff": ("use_exponential_back_off", FLAG),
    "backOffMultiplier": ("back_off_multiplier", number(0.0)),
    "maximumRedeliveryDelay": ("maximum_redelivery_delay", Kind(_cap, spell_ms)),
    "useCollisionAvoidance": ("use_collision_avoidance", FLAG),
    "collisionAvoidancePercent": ("collision_avoidance_percent", whole(0, 100)),
    "preDispatchCheck": ("pre_dispatch_check", FLAG),
}
"""Name of an option -> the field of RedeliveryPolicy, and the kind of its value."""

_SYNONYMS: Final[Mapping[str, str]] = {
    "maxRedeliveries": "maximumRedeliveries",
    "maxRedeliveryDelay": "maximumRedeliveryDelay",
    "multiplier": "backOffMultiplier",
    "collisionAvoidanceFactor": "collisionAvoidancePercent",
}


def read_policy(options: Mapping[str, object], prefix: str) -> dict[str, Any]:
    """Return keyword arguments of a RedeliveryPolicy. Raises ConfigError that names the option, ``prefix`` included."""
    check_known(BEAN, options, prefix, _SYNONYMS)
    return read_all(BEAN, options, prefix)


def java_double(value: float) -> str:
    """Java's Double.toString of a number that is not negative: ``5.0``, ``1.0E7``."""
    if value == 0 or 1e-3 <= value < 1e7:
        return repr(value)
    digits, exponent = Decimal(repr(value)).normalize().as_tuple()[1:]
    assert isinstance(exponent, int), "the number is finite"
    text = "".join(map(str, digits))
    return f"{text[0]}.{text[1:] or '0'}E{exponent + len(text) - 1}"
