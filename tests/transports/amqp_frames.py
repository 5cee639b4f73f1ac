"""The frames of AMQP 1.0, read and made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

pytest.importorskip("proton")  # with its reason, the files are skipped that need this one

import proton
from proton import Described, symbol, uint, ulong

FRAMES: Final = {
    0x10: "open container_id hostname max_frame_size:I channel_max:H idle_time_out:I outgoing_locales incoming_locales "
    "offered_capabilities desired_capabilities properties",
    0x11: "begin remote_channel:H next_outgoing_id:I incoming_window:I outgoing_window:I handle_max:I",
    0x12: "attach name handle:I role snd_settle_mode:B rcv_settle_mode:B source target unsettled incomplete_unsettled "
    "initial_delivery_count:I max_message_size:L offered_capabilities desired_capabilities properties",
    0x13: "flow next_incoming_id:I incoming_window:I next_outgoing_id:I outgoing_window:I handle:I delivery_count:I "
    "link_credit:I available:I drain echo properties",
    0x14: "transfer handle:I delivery_id:I delivery_tag message_format:I settled more rcv_settle_mode:B state resume "
    "aborted batchable",
    0x15: "disposition role first:I last:I settled state batchable",
    0x16: "detach handle:I closed error",
    0x17: "end error",
    0x18: "close error",
    0x40: "sasl-mechanisms mechanisms",
    0x41: "sasl-init mechanism response hostname",
    0x42: "sasl-challenge challenge",
    0x43: "sasl-response response",
    0x44: "sasl-outcome code:B data",
}
_CODES: Final = {text.split()[0]: code for code, text in FRAMES.items()}
_FIELDS: Final = {text.split()[0]: [each.partition(":") for each in text.split()[1:]] for text in FRAMES.values()}
_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
    "": lambda value: value,
    "I": uint,
    "H": proton.ushort,
    "B": proton.ubyte,
    "L": ulong,
}
NUMBERS: Final = (uint, ulong, proton.ushort, proton.ubyte)
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
HEADER: Final = b"AMQP\x00\x01\x00\x00"
STATES: Final = {
    0x23: "received",
    0x24: "accepted",
    0x25: "rejected",
    0x26: "released",
    0x27: "modified",
    0x33: "declared",
    0x34: "transactional",
}
ACCEPTED: Final = Described(ulong(0x24), [])
RELEASED: Final = Described(ulong(0x26), [])
MODIFIED: Final = Described(ulong(0x27), [])
COORDINATOR: Final = 0x30


@dataclass
class Frame:
    """What stands in one frame; a field that was left out is None."""

    name: str
    channel: int
    fields: dict[str, Any]
    payload: bytes = b""

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    @property
    def address(self) -> str | None:
        """Of an attach: where it goes, None for the relay; "coordinator"."""
        end = self["source"] if self["role"] else self["target"]
        if code(end) == COORDINATOR:
            return "coordinator"
        address: str | None = end.value[0] if end.value else None
        return address

    @property
    def order(self) -> tuple[Any, ...]:
        """Of a transfer to the coordinator: ("declare",) or ("discharge", id, fail)."""
        body = decode(self.payload)[0].value
        if code(body) == 0x31:
            return ("declare",)
        return ("discharge", body.value[0], bool(body.value[1]))

    @property
    def outcome(self) -> str:
        """The state in words; of a transaction with its id and outcome."""
        return state_name(self["state"])

    @property
    def body(self) -> object:
        """Of a whole message."""
        message = proton.Message()
        message.decode(self.payload)
        return bytes(message.body) if isinstance(message.body, memoryview) else message.body


def code(described: Any) -> int:
    """The code of a described value."""
    return int(described.descriptor)


def state_name(state: Any) -> str:
    if state is None:
        return "none"
    name = STATES[code(state)]
    if name == "transactional":
        outcome = state_name(state.value[1]) if len(state.value) > 1 else "none"
        return f"{name} {state.value[0].decode()} {outcome}"
    if name == "modified":
        return f"{name} {'failed' if state.value and state.value[0] else 'unchanged'}"
    return name


def decode(raw: bytes) -> tuple[Any, int]:
    """The first value, and how long it is."""
    data = proton.Data()
    size = data.decode(raw)
    data.rewind()
    data.next()
    return _own(data.get_object()), size


def _own(value: Any) -> Any:
    """The same without views of proton's memory, which is released."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, Described):
        return Described(value.descriptor, _own(value.value))
    if isinstance(value, proton.Array):
        return proton.Array(value.descriptor, value.type, *map(_own, value.elements))
    if isinstance(value, list):
        return [_own(each) for each in value]
    if isinstance(value, dict):
        return {_own(key): _own(each) for key, each in value.items()}
    return value


def encode(value: Any) -> bytes:
    data = proton.Data()
    data.put_object(value)
    encoded: bytes = data.encode()
    return encoded


def rejected(condition: str, description: str = "") -> Described:
    return Described(ulong(0x25), [error(condition, description)])


def transactional(transaction: bytes, outcome: Described | None = ACCEPTED) -> Described:
    return Described(ulong(0x34), [transaction, outcome])


def declared(transaction: bytes) -> Described:
    return Described(ulong(0x33), [transaction])


def error(condition: str, description: str = "") -> Described:
    return Described(ulong(0x1D), [symbol(condition), description])


def frame_bytes(kind: str, channel: int, payload: bytes = b"", /, **fields: Any) -> bytes:
    """A frame, its fields by name."""
    values: list[Any] = []
    for each, _, width in _FIELDS[kind]:
        value = fields.pop(each, None)
        values.append(None if value is None else _TYPES[width](value))
    assert not fields, fields
    while values and values[-1] is None:
        values.pop()
    body = encode(Described(ulong(_CODES[kind]), values)) + payload
    start = b"\x02\x01" if kind.startswith("sasl") else b"\x02\x00"
    return (len(body) + 8).to_bytes(4, "big") + start + channel.to_bytes(2, "big") + body
