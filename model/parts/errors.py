"""The errors that messages and destinations raise; `model.errors` has all of them, and is what others import."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class JMSError(Exception):
    """The root of all errors of this library."""


class IllegalStateError(JMSError):
    """The call does not fit the state of the object; the text says when and why it came into that state."""


class InvalidDestinationError(JMSError, ValueError):
    """The name is not a destination, or the broker does not accept it."""


class MessageFormatError(JMSError, TypeError):
    """The message type or the protocol cannot carry a body or property, or a body is of another kind than asked for."""


class MessageNotWriteableError(JMSError):
    """A received message is read-only."""


for _error in (JMSError, IllegalStateError, InvalidDestinationError, MessageFormatError, MessageNotWriteableError):
    _error.__module__ = "redelivery.model.errors"  # as it is imported, and as the cause of a dead letter names it


def forget_frames(error: BaseException) -> None:
    """Before an error is notified that the application may keep, in a log or by an observer.

    The frames of its tracebacks have the connection that was lost, or was not made, with all its buffers.
    """
    errors: list[BaseException | None] = [error]
    for each in errors:  # which grows meanwhile
        if each is not None:
            each.__traceback__ = None
            errors += [more for more in (each.__cause__, each.__context__) if more not in errors]


def unseen(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorator of what is called with a password: no frame of ours has it where an error reporter collects locals.

    The frames of an error that says that an argument does not fit are forgotten, since they are those that read it.
    """

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> _T:
        held: list[Any] = [keywords, args]
        del args, keywords
        try:
            return function(*held.pop(), **held.pop())
        except (JMSError, TypeError, ValueError) as error:
            if isinstance(error, (TypeError, ValueError)):  # ConfigError among them
                forget_frames(error)
            raise

    return call
