"""Producers and publishers, but for their calls that wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from redelivery.client.operations.prepare import SendOptions, prepare
from redelivery.client.operations.resend import identify
from redelivery.client.session.state import SessionState
from redelivery.model.content.headers import SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.wire.clock import epoch_ms


class BaseProducer:
    """Of both shells."""

    _core: SessionState

    def __init__(self, core: SessionState, options: SendOptions) -> None:
        self._core = core
        self._options = options
        self._closed = False
        self._transacted = core.mode == AckMode.TRANSACTED
        self._identifies = core.options.deduplicate_sends
        self._comes_back = core.options.reconnect is not None

    @property
    def destination(self) -> Destination | None:
        """The destination that it sends to; None where each send names its own."""
        return self._options.destination

    @property
    def closed(self) -> bool:
        """True: it was closed."""
        return self._closed

    def check_open(self, action: str) -> None:
        """Raise IllegalStateError where it is closed; the text names ``action``."""
        if self._closed:
            raise IllegalStateError(f"{action}: the producer was closed by close()")

    def __repr__(self) -> str:
        return f"<Producer {self.destination or 'without a destination'}{' closed' if self._closed else ''}>"

    def _prepare(self, body: object, destination: Destination | str | None, options: SendKeywords) -> Message:
        """The message as it leaves. By the holder of the session."""
        if self._closed:
            self.check_open("send")
        message = prepare(self._options, body, destination, options, epoch_ms())
        if self._identifies:
            identify(message, self._core.epoch.transport.peer.capabilities)
        return message


class BasePublisher(ABC):
    """A publisher of both shells, but for its calls that wait."""

    def __init__(self, check_open: Callable[[str], None], what: str) -> None:
        self._check_connection = check_open
        self._what = what
        self._closed = False

    @property
    def closed(self) -> bool:
        """True: it was closed."""
        return self._closed

    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection closed or lost; the text names ``action``.

        Raises:
            IllegalStateError: one of them was closed.
            ConnectionLostError: the connection was lost.
        """
        self._check_connection(action)
        if self._closed:
            raise IllegalStateError(f"{action}: the publisher was closed by close()")

    def __repr__(self) -> str:
        return f"<Publisher of {self._what}{' closed' if self._closed else f', {self._sessions_now()} sessions'}>"

    @abstractmethod
    def _sessions_now(self) -> int:
        """The number of its sessions."""
