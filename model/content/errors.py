"""The errors that messages and destinations raise; `model.errors` has all of them, and is what others import."""

from __future__ import annotations

from typing import Any


class JMSError(Exception):
    """The root of all errors of this library."""


class IllegalStateError(JMSError):
    """The call does not fit the state of the object; the text says when and why it came into that state."""


class InvalidDestinationError(JMSError, ValueError):
    """The name is not a destination, or the broker does not accept it."""


class MessageFormatError(JMSError, TypeError):
    """The message type or the protocol cannot carry a body or property, or a body is of another kind than asked for.

    ``message``: of a consumer with ``body_type``, the message whose body does not convert; its ``body`` is as it came.
    """

    message: Any = None


class MessageNotWriteableError(JMSError):
    """A received message is read-only."""
