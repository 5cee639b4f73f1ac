"""A message in one line for people: which one it is and what it is like, never what it holds."""

from __future__ import annotations

from typing import Protocol

from redelivery.model.content.errors import MessageFormatError
from redelivery.model.destinations import Destination


class Showable(Protocol):
    """The part of a message that is shown. Each of it may raise MessageFormatError."""

    @property
    def message_id(self) -> str | None:
        """The broker's id."""

    @property
    def destination(self) -> Destination | None:
        """The destination that it was sent to."""

    @property
    def body(self) -> object:
        """The body, decoded."""

    @property
    def source(self) -> object:
        """None where the application has made it."""

    @property
    def delivery_count(self) -> int:
        """The number of the delivery, 1 for the first."""


def shown(message: Showable) -> str:
    """``ID:…:1 queue://orders text of 9 characters, delivery 2``; what is not known or cannot be read is left out."""
    parts = [str(each) for each in (_header(message, "message_id"), _header(message, "destination")) if each]
    parts.append(_body(message))
    text = " ".join(parts)
    return text if message.source is None else f"{text}, delivery {message.delivery_count}"


def _header(message: Showable, name: str) -> object:
    try:
        return getattr(message, name)
    except MessageFormatError:
        return None


def _body(message: Showable) -> str:
    try:
        body = message.body
    except MessageFormatError:
        return "body that cannot be read"
    match body:
        case None:
            return "no body"
        case str():
            return f"text of {_count(len(body), 'character')}"
        case bytes():
            return _count(len(body), "byte")
        case dict():
            return f"map of {_count(len(body), 'entry', 'entries')}"
        case list():
            return f"stream of {_count(len(body), 'value')}"
        case _:  # of a consumer with body_type
            return f"body of the type {type(body).__name__}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
