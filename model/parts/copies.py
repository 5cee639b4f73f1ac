"""A copy of a message that others wrote: whatever of it can be read, and the names of what cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redelivery.model.messages import Message
from redelivery.model.parts.errors import InvalidDestinationError, MessageFormatError
from redelivery.model.parts.headers import COPIED
from redelivery.model.parts.raw import readable_of
from redelivery.model.values import Value

_SHOWN: Final = 40  # characters of a name


def readable_copy(message: Message) -> tuple[Message, list[str]]:
    """As `Message.copy`, of a received message: without what cannot be read, and how that is called. Never raises."""
    properties, left_out = readable(message)
    left_out = [*left_out, *(named(name) for name in properties if not name)]
    copy = Message()
    copy.fields["body"] = message.carried()
    for header in COPIED:
        try:
            value = getattr(message, header)
            if value is not None:
                setattr(copy, header, value)
        except (MessageFormatError, InvalidDestinationError):
            left_out.append(header)
    copy.adopt({name: value for name, value in properties.items() if name})
    return copy, left_out


def readable(message: Message) -> tuple[Mapping[str, Value], list[str]]:
    """The properties of a message that can be read, and what to call the others."""
    return (message.properties, []) if message.source is None else readable_of(message.source)


def named(name: object) -> str:
    """The name of an unreadable property in a cause."""
    text = ascii(name)
    return f"property {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
