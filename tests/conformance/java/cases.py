"""What is sent both ways: bodies of every kind, properties of every type, headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery import Byte, Float, Long, Short

VALUES: Final[Mapping[str, Any]] = {
    "text": "naïve:\n日本語\\",
    "empty": "",
    "yes": True,
    "no": False,
    "byte": Byte(-128),
    "short": Short(300),
    "int": -(1 << 31),
    "small": 7,
    "long": 1 << 40,
    "small_long": Long(7),
    "float": Float(0.5),
    "double": 0.25,
}
BODIES: Final[Mapping[str, Any]] = {
    "text": "naïve Straße 日本語\nline:\\\r\n",
    "empty text": "",
    "emoji": "\N{GRINNING FACE}",
    "long text": "äbc" * 100_000,
    "bytes": bytes(range(256)),
    "empty bytes": b"",
    "map": {"name": "Ada", "count": 3},
    "map of every type": {**VALUES, "bytes": b"\0\xff", "nothing": None},
    "stream": [1, "two"],
    "stream of every type": [*VALUES.values(), b"\0\xff", None],
    "none": None,
}
KINDS: Final[Mapping[type, str]] = {str: "text", bytes: "bytes", dict: "map", list: "stream", type(None): "none"}
OBJECT: Final = ["Ada", 3]  # a java.util.ArrayList
SERIALIZED: Final = b"\xac\xed\x00\x05"  # how a serialized Java object begins


@dataclass(frozen=True, slots=True)
class Header:
    """A header by our name and Java's, and its value at each; ``option``: it is an argument of our send."""

    ours: str
    java: str
    value: Any
    option: bool = False
    javas: Any = None  # where Java has the value in another form
    together: Mapping[str, Any] = field(default_factory=dict)  # what must be set with it

    @property
    def in_java(self) -> Any:
        return self.value if self.javas is None else self.javas


HEADERS: Final[Mapping[str, Header]] = {
    "correlation text": Header("correlation_id", "correlation", "c:1\\ naïve\n"),
    "correlation id": Header("correlation_id", "correlation", "ID:host-1:2:3"),
    "correlation uuid": Header("correlation_id", "correlation", "ID:AMQP_UUID:00112233-4455-6677-8899-aabbccddeeff"),
    "correlation ulong": Header("correlation_id", "correlation", "ID:AMQP_ULONG:18446744073709551615"),
    "correlation bytes": Header("correlation_id", "correlation", b"\0\xfe\xff", javas="ID:AMQP_BINARY:00FEFF"),
    "type": Header("type", "type", "order naïve"),
    "reply to a queue": Header("reply_to", "reply", "queue://replies"),
    "reply to a topic": Header("reply_to", "reply", "topic://replies"),
    "group": Header("group_id", "group", "g:1 naïve"),
    "group sequence": Header("group_sequence", "sequence", 3, together={"group": "g"}),
    "priority 0": Header("priority", "priority", 0, option=True),
    "priority 9": Header("priority", "priority", 9, option=True),
    "persistent": Header("persistent", "persistent", True, option=True),
    "non-persistent": Header("persistent", "persistent", False, option=True),
}

# Each header once, those of a row on one message.
HEADER_ROWS: Final = (
    ("correlation text", "type", "reply to a queue", "group", "priority 0", "persistent"),
    ("correlation id", "reply to a topic", "group sequence", "priority 9", "non-persistent"),
    ("correlation uuid",),
    ("correlation ulong",),
    ("correlation bytes",),
)
assert sorted(name for row in HEADER_ROWS for name in row) == sorted(HEADERS)
