"""Arguments of a session's calls, checked: what would have no effect, or another than was meant, is refused."""

from __future__ import annotations

import threading
from datetime import timedelta

from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import ConfigError, InvalidDestinationError

_USUAL = 1e6
_LONGEST = threading.TIMEOUT_MAX / 2  # more than a hundred years: what a wait can take
_NO_DURATION = 1e300


def check_selector(selector: object) -> None:
    """Raise ConfigError where it is neither a str nor None."""
    if selector is not None and not isinstance(selector, str):
        raise ConfigError(f"selector must be a str, not a {type(selector).__name__}")


def check_no_local(target: Destination, no_local: object) -> None:
    """Raise ConfigError for a queue, whose messages each go to one consumer, whatever sent them (JMS 3.1, §8.3.1)."""
    if no_local and isinstance(target, Queue):
        raise ConfigError(f"no_local=True has no effect on {target}: it is for topics")


def check_cause(action: str, cause: object) -> None:
    """Raise ConfigError where the cause of a rollback is not an exception."""
    if cause is not None and not isinstance(cause, BaseException):
        right = f"ValueError({cause!r})" if isinstance(cause, str) else "error"
        raise ConfigError(
            f"{action}: the cause must be an exception, not a {type(cause).__name__}: write {action}(cause={right})"
        )


def plain_name(scheme: str, name: str) -> str:
    """The name of a queue or topic, without a scheme before it that says the same.

    Raises:
        InvalidDestinationError: the scheme says the other kind.
    """
    if not isinstance(name, str):
        return name  # refused where the destination is made
    other = "topic" if scheme == "queue" else "queue"
    if name.startswith(f"{other}://"):
        raise InvalidDestinationError(f"{name!r} is a {other}: write session.{other}({name.partition('://')[2]!r})")
    return name.removeprefix(f"{scheme}://")


def seconds(name: str, value: float | timedelta) -> float:
    """Seconds, not negative.

    Raises:
        ConfigError: it is not a finite number from 0, nor a timedelta; the text names ``name``.
    """
    if value.__class__ is float or value.__class__ is int:  # the usual case, on the path of every receive
        if 0 <= value < _USUAL:
            return value
    elif isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _NO_DURATION:
        raise ConfigError(f"{name}={repr(value)[:40]} is not a duration: pass seconds ≥ 0 or a timedelta")
    return min(float(value), _LONGEST)


def optional_seconds(name: str, value: float | timedelta | None) -> float | None:
    """The same, where None means "without end"."""
    return None if value is None else seconds(name, value)
