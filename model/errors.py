"""Every error that redelivery raises; names and meaning are JMS's (Jakarta Messaging 3.1, "Exceptions").

    JMSError
    ├── IllegalStateError              the call does not fit the state of the object
    ├── InvalidDestinationError        also ValueError
    ├── InvalidSelectorError           also ValueError
    ├── InvalidClientIDError
    ├── MessageFormatError             also TypeError
    ├── MessageNotWriteableError       a received message is read-only; its copy() is not
    ├── ResourceAllocationError        the broker is full or has reached a limit
    ├── SecurityError                  login refused, or no permission
    ├── TransactionRolledBackError     commit() ended in a rollback; the messages are redelivered
    ├── InDoubtError                   the answer to a commit or send was lost
    ├── UnsupportedError               this broker or protocol cannot do it
    ├── ConfigError                    also ValueError: a bad option, URL or argument value
    ├── ProtocolError                  the peer does not speak the protocol, or broke it
    ├── RequestTimeoutError            also TimeoutError: a named time-out has passed
    ├── ConnectError                   also ConnectionError: no connection could be made
    └── ConnectionLostError            also ConnectionError: it was there and is gone

The cause, where there is one, is always ``__cause__``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from redelivery.model.content.errors import (
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
    MessageNotWriteableError,
)
from redelivery.model.messages import Message

__all__ = [
    "ConfigError",
    "ConnectError",
    "ConnectionLostError",
    "IllegalStateError",
    "InDoubtError",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "JMSError",
    "MessageFormatError",
    "MessageNotWriteableError",
    "ProtocolError",
    "RequestTimeoutError",
    "ResourceAllocationError",
    "SecurityError",
    "TransactionRolledBackError",
    "UnsupportedError",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class InvalidSelectorError(JMSError, ValueError):
    """The selector is not valid; the text shows the place (JMS 3.1 §3.8.1).

    ``position``: of what is wrong, in characters from 0; None where it was the broker that refused the selector.
    """

    def __init__(self, text: str, *, position: int | None = None) -> None:
        super().__init__(text)
        self.position = position


class InvalidClientIDError(JMSError):
    """The client id is refused, as a rule because another connection holds it."""


class ResourceAllocationError(JMSError):
    """The broker has no room: a full queue, a reached limit."""


class SecurityError(JMSError):
    """The broker refused the login, or the permission."""


class TransactionRolledBackError(JMSError):
    """The transaction was rolled back instead of committed: nothing was sent, and the messages are redelivered.

    ``redelivered_by_broker``: the deliveries were the broker's to decide (AMQP), so it redelivers them, at once and
    with its own count. Otherwise they are redelivered by the redelivery policy.
    """

    redelivered_by_broker = False


class InDoubtError(JMSError):
    """The answer to a commit or to a confirmed send did not arrive: it may or may not have happened.

    ``transaction_id`` is the broker's or our name of the transaction, None for a plain send;
    ``sent`` and ``received`` are the messages concerned. ``redelivered_by_client``: only the sends are in doubt (over
    STOMP on a broker that acknowledges outside of transactions), so what was received is redelivered by the policy.
    """

    redelivered_by_client = False

    def __init__(
        self,
        text: str,
        *,
        transaction_id: str | None = None,
        sent: tuple[Message, ...] = (),
        received: tuple[Message, ...] = (),
    ) -> None:
        super().__init__(text)
        self.transaction_id = transaction_id
        self.sent = sent
        self.received = received


class UnsupportedError(JMSError):
    """This broker, protocol or installation cannot do it; the text says what and why."""


class ConfigError(JMSError, ValueError):
    """An option, URL or argument value that cannot be used; the text names it."""


class ProtocolError(JMSError):
    """The peer sent something else than the protocol that was expected."""


class RequestTimeoutError(JMSError, TimeoutError):
    """The broker did not answer within the named time-out."""


class ConnectError(JMSError, ConnectionError):
    """No connection could be made."""


class ConnectionLostError(JMSError, ConnectionError):
    """The connection was lost; the broker redelivers unacknowledged messages."""


for _name in __all__:
    globals()[_name].__module__ = "redelivery"  # as it is imported, and as logs and the cause of a dead letter name it


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
