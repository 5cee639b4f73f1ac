"""The headers that an application sets, checked as it sets them."""

from __future__ import annotations

from typing import Final

from redelivery.model.destinations import destination
from redelivery.model.parts.errors import MessageFormatError

COPIED: Final = ("correlation_id", "reply_to", "type", "group_id", "group_sequence")
"""The headers that a copy has from its original."""


def check_header(name: str, value: object) -> object:
    """The value of a header, if it is one. Raises MessageFormatError, which names the header."""
    if value is None:
        return None
    if name == "reply_to":
        return destination(value)  # type: ignore[arg-type]  # it checks the type itself
    if name == "group_sequence":
        if isinstance(value, int) and not isinstance(value, bool) and value >= -1:
            return value
        raise MessageFormatError(f"group_sequence={value!r} must be an integer >= 0, or -1 (the last)")
    if isinstance(value, str) or (name == "correlation_id" and isinstance(value, bytes)):
        return value
    raise MessageFormatError(f"{name}={value!r} is not a str")
