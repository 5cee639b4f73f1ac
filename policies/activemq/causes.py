"""The reasons why a message became a dead letter, in ActiveMQ's own words: the texts of ``dlqDeliveryFailureCause``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.model.passport.redaction import redacted_start
from redelivery.policies.redelivery import RedeliveryPolicy

MAX_CAUSE: Final = 2000
"""Longest exception text that a cause repeats, in characters: it travels as a header."""

_POLICY: Final = re.compile(r"RedeliveryPolicy \{([^{}]{1,1000})\}")
_FIELD: Final = re.compile(r"(\w+) = (-?[\w.]+(?:E-\d+)?)")
_READ: Final = frozenset(
    (
        *("maximumRedeliveries", "initialRedeliveryDelay", "redeliveryDelay", "maximumRedeliveryDelay"),
        *("useExponentialBackOff", "backOffMultiplier", "useCollisionAvoidance"),
    )
)


def delivery_cause(redelivery_count: int, policy: RedeliveryPolicy, cause: BaseException | str | None) -> str:
    """A delivery failed once too often; ``cause`` is the application's last failure with it, None where unknown."""
    return f"Delivery[{redelivery_count}] exceeds redelivery policy limit:{policy}, cause:{describe_cause(cause)}"


def given_up_cause(redelivery_count: int, reason: str, cause: BaseException | str | None) -> str:
    """The application has decided that it is not redelivered; ``cause`` as above."""
    return f"Delivery[{redelivery_count}] given up: {describe_cause(reason)}, cause:{describe_cause(cause)}"


def dispatch_cause(redelivery_count: int, consumer_id: str, policy: RedeliveryPolicy, *, listener: bool = False) -> str:
    """A message came from the broker with a count already beyond the limit, and nobody saw it."""
    dispatch = "listener dispatch" if listener else "Dispatch"
    return f"{dispatch}[{redelivery_count}] to {consumer_id} exceeds redelivery policy limit:{policy}"


def expired_cause(expiration_ms: int) -> str:
    """A message outlived its expiration (epoch milliseconds) before it could be delivered."""
    return f"Message Expired. Expiration:{expiration_ms}"


def policy_of(cause: str) -> RedeliveryPolicy | None:
    """The policy whose limit was exceeded, as a cause describes it, of this client or of a Java one; None: of neither.

    Its collision avoidance is at most 100 %, whatever it was.
    """
    found = _POLICY.search(cause)
    return None if found is None else _policy(found[1])


@lru_cache(maxsize=100)
def _policy(text: str) -> RedeliveryPolicy | None:
    said = dict(_FIELD.findall(text))
    if "wait" in said:  # a strategy, whose delays the text does not give
        return None
    options: dict[str, object] = {name: value for name, value in said.items() if name in _READ}
    factor = said.get("collisionAvoidanceFactor", "")
    try:
        options["collisionAvoidancePercent"] = min(100, round(float(factor) * 100))
        return RedeliveryPolicy.from_activemq(options)
    except (ConfigError, ValueError, OverflowError):
        return None  # another client's words


def describe_cause(cause: BaseException | str | None) -> str:
    """``module.Class: text`` on one line (``Class: text`` for Python's own), at most `MAX_CAUSE` characters.

    None is ``null``, as in Java. Control characters become spaces: the text travels as a header. What is recognized as
    a secret is masked.
    """
    if cause is None:
        return "null"
    text = redacted_start(cause if isinstance(cause, str) else _throwable(cause), MAX_CAUSE)
    return "".join(each if each.isprintable() else " " for each in text)


def _throwable(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - the application's own __str__ must not keep its message from the queue
        text = f"<its text cannot be read: {type(broken).__name__}>"
    return f"{name}: {text}" if text else name
