"""Translates a broker's ERROR frame into an error of ours."""

from __future__ import annotations

from typing import Final

from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.dialects.refusals import STOMP_DUMP, STOMP_HINTS, STOMP_UNFILLED, STOMP_WORDS
from redelivery.transports.stomp.codec.frames import Frame

_LONGEST: Final = 500  # of the broker's text; what follows is a stack trace


def broker_error(frame: Frame) -> JMSError:
    """The error that an ERROR frame means, with the broker's own words."""
    try:
        message = STOMP_DUMP.sub(r"a message to \1", frame.headers.get("message", ""))
    except ProtocolError:
        message = ""  # the frame means an error all the same
    first_line = frame.body[:4096].decode("utf-8", "replace").strip().partition("\n")[0].strip()
    shown = message if message and (message in first_line or not first_line) else f"{message} {first_line}".strip()
    shown = shown.replace(STOMP_UNFILLED, "")
    text = f"{message} {first_line}".lower()
    found = next((each for each in STOMP_WORDS if each[0] in text), None)
    kind = JMSError if found is None else found[1]
    hint = next((advice for words, advice in STOMP_HINTS if found is not None and words == found[0]), "")
    return kind(f"the broker says: {shown[:_LONGEST] or 'ERROR, without a reason'}{hint}")
