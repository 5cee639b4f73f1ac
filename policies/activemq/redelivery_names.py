"""ActiveMQ's spelling of a redelivery policy: bean names, milliseconds, and numbers as Java writes them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from redelivery.policies.checks import (
    INT_MAX,
    LONG_MAX,
    Bean,
    check_known,
    read_bean,
    read_flag,
    read_number,
    read_whole,
)


def _limit(name: str, value: object) -> int:
    return read_whole(name, value, -1, INT_MAX)


def _delay(name: str, value: object) -> float:
    return max(read_whole(name, value, -LONG_MAX - 1, LONG_MAX), 0) / 1000


def _cap(name: str, value: object) -> float | None:
    # Java takes a negative cap other than -1 for a cap below redeliveryDelay, which 0 is as well.
    return None if read_whole(name, value, -LONG_MAX - 1, LONG_MAX) == -1 else _delay(name, value)


def _multiplier(name: str, value: object) -> float:
    return read_number(name, value, 0.0)


def _percent(name: str, value: object) -> int:
    return read_whole(name, value, 0, 100)


BEAN: Final[Bean] = {
    "maximumRedeliveries": ("maximum_redeliveries", _limit),
    "initialRedeliveryDelay": ("initial_redelivery_delay", _delay),
    "redeliveryDelay": ("redelivery_delay", _delay),
    "useExponentialBackOff": ("use_exponential_back_off", read_flag),
    "backOffMultiplier": ("back_off_multiplier", _multiplier),
    "maximumRedeliveryDelay": ("maximum_redelivery_delay", _cap),
    "useCollisionAvoidance": ("use_collision_avoidance", read_flag),
    "collisionAvoidancePercent": ("collision_avoidance_percent", _percent),
    "preDispatchCheck": ("pre_dispatch_check", read_flag),
}
"""Name of an option -> the field of RedeliveryPolicy, and what reads its value."""

_SYNONYMS: Final[Mapping[str, str]] = {
    "maxRedeliveries": "maximumRedeliveries",
    "maxRedeliveryDelay": "maximumRedeliveryDelay",
    "multiplier": "backOffMultiplier",
    "collisionAvoidanceFactor": "collisionAvoidancePercent",
}


def read_policy(options: Mapping[str, object], prefix: str) -> dict[str, Any]:
    """Return keyword arguments of a RedeliveryPolicy. Raises ConfigError that names the option, ``prefix`` included."""
    check_known(BEAN, options, prefix, _SYNONYMS)
    return read_bean(BEAN, options, prefix)


def java_double(value: float) -> str:
    """Java's Double.toString of a number that is not negative: ``5.0``, ``1.0E7``."""
    if value == 0 or 1e-3 <= value < 1e7:
        return repr(value)
    digits, exponent = Decimal(repr(value)).normalize().as_tuple()[1:]
    assert isinstance(exponent, int), "the number is finite"
    text = "".join(map(str, digits))
    return f"{text[0]}.{text[1:] or '0'}E{exponent + len(text) - 1}"
