"""Sends that survive a loss: each has an id by which the broker drops a second one, and is sent again.

What the broker has answered is done. What it has not is sent again on the next connection, in its first order, so that
the application sees no more of the loss than a wait. A transaction that has received is not repeated: what it received
is redelivered.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.model.messages import Message
from redelivery.transports.seam import Pending

_OURS: Final = "redelivery-"  # what the ids begin with


def identify(message: Message, capabilities: Capabilities) -> None:
    """Give it an id, unless the application has given it one; a message that is sent once more gets another one."""
    name = capabilities.duplicate_id_property
    if name is not None and str(message.properties.get(name, _OURS)).startswith(_OURS):
        message.properties = {**message.properties, name: f"{_OURS}{uuid.uuid4().hex}"}


class Repeatable(Pending):
    """The answer to an asynchronous send, which a loss does not end while there will be another connection.

    ``message``: what is sent again; None before it has left.
    """

    __slots__ = ("_comes_back", "message")

    def __init__(self, comes_back: Callable[[], bool]) -> None:
        super().__init__()
        self.message: Message | None = None
        self._comes_back = comes_back

    def fail(self, error: JMSError) -> None:
        """See Pending."""
        if not isinstance(error, ConnectionLostError) or not self._comes_back():
            super().fail(error)
