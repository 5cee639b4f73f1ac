"""What a dead letter says of itself, as one line: the same from the real broker and from the embedded one.

Times and the brokers' own numbers are named, not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from time import time
from typing import Any, Final

# What each delivery over STOMP has, dead letter or not, and is not compared, or said otherwise.
_FRAME: Final = frozenset(
    ("subscription", "message-id", "ack", "timestamp", "expires", "priority", "persistent", "redelivered")
)
_NUMBERS: Final = ("ORIG-MESSAGE-ID", "ORIG_MESSAGE_ID")
_IDS: Final = ("scheduledJobId",)
_EXPIRATION: Final = re.compile(r"(Expiration:)\d+")  # of a cause
_TIMES: Final = ("ACTUAL-EXPIRY", "ACTUAL_EXPIRY", "originalExpiration")


def describe_amqp(message: Any) -> str:
    """Of a proton message."""
    annotations = {str(key): value for key, value in (message.annotations or {}).items()}
    expires = bool(message.ttl or message.expiry_time)
    head = _head(
        "persistent" if message.durable else "non-persistent",
        expires,
        message.priority,
        f"count {message.delivery_count}",
    )
    return ", ".join((*head, f"id {message.id}", *_others({**annotations, **(message.properties or {})})))


def describe_stomp(headers: Mapping[str, str]) -> str:
    """Of a MESSAGE frame; what a header says that is not there differs from broker to broker."""
    expires = headers.get("expires", "0") != "0"
    count = {"true": "redelivered", "false": "redelivered:false"}.get(headers.get("redelivered", ""), "not redelivered")
    persistent = {"true": "persistent", "false": "persistent:false"}.get(headers.get("persistent", ""), "")
    head = _head(persistent, expires, int(headers.get("priority", "4")), count)
    return ", ".join((*head, *_others({name: value for name, value in headers.items() if name not in _FRAME})))


def now_ms() -> int:
    """Epoch milliseconds."""
    return round(time() * 1000)


def _head(persistent: str, expires: bool, priority: int, count: str) -> Iterator[str]:
    if persistent:
        yield persistent
    yield "expires" if expires else "does not expire"
    yield f"priority {priority}"
    yield count


def _others(found: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(found):
        value = found[name]
        if name.endswith(_NUMBERS) and str(value).isdigit():
            value = "a number"
        elif name in _IDS and value:
            value = "an id"
        elif name.endswith(_TIMES) and str(value).isdigit() and int(value):
            value = "a time"
        text = _EXPIRATION.sub(r"\1a time", str(value))
        yield f"{name}: {text}"
