"""Arguments of a session's calls, checked: what would have no effect, or another than was meant, is refused."""

from __future__ import annotations

from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import ConfigError, InvalidDestinationError


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
