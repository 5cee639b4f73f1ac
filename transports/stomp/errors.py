"""What a broker's ERROR frame means, as an error of ours."""

from __future__ import annotations

import re
from typing import Final

from redelivery.model.errors import (
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    ProtocolError,
    ResourceAllocationError,
    SecurityError,
)
from redelivery.transports.stomp.frames import Frame

# The first that occurs, ignoring case, in the text decides. JMS brokers put their exception's class into the body.
_MEANINGS: Final[tuple[tuple[str, type[JMSError]], ...]] = (
    ("invalidclientidexception", InvalidClientIDError),
    ("already connected from", InvalidClientIDError),
    ("invalidselectorexception", InvalidSelectorError),
    ("invalid selector", InvalidSelectorError),
    ("invalid filter", InvalidSelectorError),
    ("invaliddestinationexception", InvalidDestinationError),
    ("destination doesnt exist", InvalidDestinationError),
    ("does not exist", InvalidDestinationError),
    ("not_found", InvalidDestinationError),
    ("resourceallocationexception", ResourceAllocationError),
    ("usage manager", ResourceAllocationError),
    ('" is full', ResourceAllocationError),
    ("is full", ResourceAllocationError),
    ("securityexception", SecurityError),
    ("is not authorized", SecurityError),
    ("not authorised", SecurityError),
    ("access refused", SecurityError),
    ("access_refused", SecurityError),
    ("access denied", SecurityError),
    ("bad credentials", SecurityError),
    ("password is invalid", SecurityError),
    ("login failed", SecurityError),
    ("authentication", SecurityError),
    ("permission", SecurityError),
    ("destination must start with", InvalidDestinationError),
    ("unknown destination", InvalidDestinationError),
)
# The whole message, with its properties: they are the application's own, and decide nothing.
_dump = re.compile(r"\b(?:Core|Server)Message\[(?:.*?\baddress=([^,\]]*))?.*", re.DOTALL)
_LONGEST: Final = 500  # of the broker's text; what follows is a stack trace


def broker_error(frame: Frame) -> JMSError:
    """The error that an ERROR frame tells, with the broker's own words."""
    try:
        message = _dump.sub(r"a message to \1", frame.headers.get("message", ""))
    except ProtocolError:
        message = ""  # the frame tells of an error all the same
    first_line = frame.body[:4096].decode("utf-8", "replace").strip().partition("\n")[0].strip()
    shown = message if message and (message in first_line or not first_line) else f"{message} {first_line}".strip()
    text = f"{message} {first_line}".lower()
    kind = next((error for words, error in _MEANINGS if words in text), JMSError)
    return kind(f"the broker says: {shown[:_LONGEST] or 'ERROR, without a reason'}")
