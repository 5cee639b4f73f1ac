"""The value that counts for a queue: that of its arguments, of its policy, or of the operator's policy.

Where both policies set something, the lower limit counts, and otherwise the operator's; then the queue's arguments are
compared with that. All of it was seen on RabbitMQ 3.10, 4.0 and 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from redelivery.policies.activemq.back_off import Random
from redelivery.policies.brokers.rabbitmq.names import ARGUMENT, NAMES
from redelivery.policies.brokers.rabbitmq.values import QUORUM, RabbitLevel, RabbitQueue
from redelivery.policies.brokers.rules import Delay, listed_delays
from redelivery.policies.files.places import Setting

_LOWEST: Final = frozenset(
    {"message_ttl", "expires", "max_length", "max_length_bytes", "delayed_retry_min", "delayed_retry_max"}
)

_RETRIES: Final = ("all", "failed")  # the delayed-retry-type in which a failure waits


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers that say something about a queue: each with its title, None where there is none."""

    arguments: tuple[str, RabbitLevel] | None = None
    policy: tuple[str, RabbitLevel] | None = None
    operator: tuple[str, RabbitLevel] | None = None

    @property
    def all(self) -> tuple[tuple[str, RabbitLevel], ...]:
        """The layers that there are, the arguments first."""
        return tuple(each for each in (self.arguments, self.policy, self.operator) if each is not None)


def merged(layers: Layers, kind: str, *, major: int | None = None) -> RabbitLevel:
    """Return the values that count for a queue, and the settings that give them.

    ``kind``: its type: a quorum queue prefers its policy's ``overflow``, a classic one its argument. ``major``: of the
    version; before 4 there is no limit below 0.
    """
    values: dict[str, Any] = {}
    levels = [None if each is None else each[1] for each in (layers.arguments, layers.policy, layers.operator)]
    for field, _ in NAMES.values():
        argument, policy, operator = (None if each is None else getattr(each, field) for each in levels)
        of_policies = _both(field, policy, operator, later=operator)
        preferred = (
            of_policies if (field == "overflow" and kind == QUORUM) or field == "delayed_retry_type" else argument
        )
        value = _both(field, argument, of_policies, later=preferred, unlimited=major is None or major >= 4)
        if value is not None:
            values[field] = value
    given = [each for each in levels if each is not None]
    settings = [each for level in reversed(given) for each in level.settings if _counts(each, level, given, values)]
    return replace(RabbitLevel(**values), settings=tuple(settings))


def is_at_least_once(queue: RabbitQueue, level: RabbitLevel) -> bool:
    """Say whether a dead letter stays in the queue until its target has it."""
    return (
        queue.kind == QUORUM
        and level.dead_letter_strategy == "at-least-once"
        and level.overflow == "reject-publish"
        and level.dead_letter_exchange is not None
    )


def delays(level: RabbitLevel, maximum: int | None, version: tuple[int, ...]) -> tuple[Delay, ...]:
    """Return the delays before redeliveries: delayed-retry of RabbitMQ 4.3; ``version``: empty if not known."""
    least = level.delayed_retry_min or 0.0
    most = level.delayed_retry_max or least
    if level.delayed_retry_type not in _RETRIES or (version and version < (4, 3)):
        least = 0.0

    def delay(count: int, _: Random | None) -> float:
        return min(least * count, most)

    return listed_delays(delay, maximum)


def _both(field: str, one: Any, other: Any, *, later: Any, unlimited: bool = True) -> Any:
    """Return the one that is given; of two that which counts: the lower limit, or ``later``."""
    if one is None or other is None:
        return other if one is None else one
    if field == "delivery_limit" and unlimited and min(one, other) < 0:
        return max(one, other)  # below 0 is no limit
    return min(one, other) if field in _LOWEST or field == "delivery_limit" else later


def _counts(setting: Setting, level: RabbitLevel, levels: Iterable[RabbitLevel], values: dict[str, Any]) -> bool:
    """Say whether a setting is the first that gave the value that counts."""
    field, _ = NAMES[setting.name.removeprefix(ARGUMENT)]
    return next((each for each in levels if getattr(each, field) == values[field]), None) is level
