"""The frames of a peer, as much of AMQP's encoding as they need, and the canned ones of one receiver."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from benchmarks.peers.server import body_of
from redelivery.transports.amqp.codec import encoding

BLOCK = 256  # frames that are patched and written at once
LARGE = 1 << 16  # bytes of a frame: a larger message is split, and its body is never copied
ID, DIGITS = "ID:bench-3:1:1:1:", b"~digits~"  # the digits, hexadecimal, are the delivery's number
NUMBER, TAG = b"~id~", b"~tg~"  # the same number in four bytes


class Encoded(bytes):
    """Is encoded already."""

    __slots__ = ()


def ubyte(number: int) -> Encoded:
    """Encode a number of a byte."""
    return Encoded(bytes((0x50, number)))


def symbol(text: str) -> Encoded:
    """Encode a symbol."""
    return Encoded(encoding.write_symbol(text))


def encode(value: object) -> bytes:
    """Encode None, bool, int (as uint), str, bytes (as binary), list, or a map of what is encoded already."""
    match value:
        case Encoded():
            return value
        case None | bool() | str() | bytes():
            return encoding.write(value, "a field")
        case int():
            return encoding.write_uint(value) if value else b"\x43"
        case list():
            return encoding.write_list([encode(each) for each in value])
        case Mapping():
            return encoding.write_map([each for pair in value.items() for each in pair])
    raise TypeError(f"{value!r} has no encoding here")


def described(code: int, value: object) -> Encoded:
    """Encode a value with its descriptor."""
    return Encoded(b"\x00\x53" + bytes((code,)) + encode(value))


def frame(body: bytes, channel: int = 0, kind: int = 0) -> bytes:
    """One frame; ``kind`` is 1 for SASL."""
    return struct.pack(">IBBH", 8 + len(body), 2, kind, channel) + body


def message(size: int, kind: str, *, durable: bool = True, to: str = "bench") -> tuple[bytes, bytes]:
    """One as ActiveMQ Classic writes it, in two parts: all that stands before the bytes of the body, and they."""
    text = kind == "text"
    annotations = {symbol("x-opt-jms-msg-type"): b"\x51\x05" if text else b"\x51\x03"}  # a byte
    annotations[symbol("x-opt-jms-dest")] = b"\x51\x00"
    created = Encoded(encoding.write_timestamp(1_700_000_000_000))
    head = (
        described(0x70, [durable, ubyte(4)])  # and the priority
        + described(0x72, annotations)
        + described(0x73, [ID + DIGITS.decode(), None, to, *[None] * 6, created])
        + (b"\x00\x53\x77\xb1" if text else b"\x00\x53\x75\xb0")
        + struct.pack(">I", size)
    )
    return head, body_of(size, kind)


def transfer(handle: int, *, first: bool, more: bool) -> bytes:
    """The performative, its number and tag still to be filled in."""
    delivery = [Encoded(b"\x70" + NUMBER), Encoded(b"\xa0\x04" + TAG), 0] if first else [None] * 3
    return described(0x14, [handle, *delivery, False, more])


class Feed:
    """So many messages, as far as credit and the session's window let them go."""

    def __init__(self, channel: int, handle: int, count: int, size: int, kind: str, largest_frame: int) -> None:
        self.channel, self.handle, self.left = channel, handle, count
        self.used = self.limit = 0  # the link's delivery count, and how far the credit lets it grow
        self.draining = False
        head, self.body = message(size, kind)
        self.chunk = min(largest_frame, LARGE) - 8 - len(head) - len(transfer(handle, first=True, more=True))
        self.large = size > self.chunk
        self.frames = len(range(0, size, self.chunk)) if self.large else 1  # of one delivery
        self.step = 1 if self.large else min(BLOCK, max(1, count))
        start = transfer(handle, first=True, more=self.large) + head
        self.places = [(start.index(mark) + 8, len(mark)) for mark in (NUMBER, TAG, DIGITS)]
        self.head = start
        self.block = bytearray() if self.large else bytearray(frame(start + self.body, channel) * self.step)

    def next(self, number: int, window: int) -> tuple[int, list[memoryview]]:
        """Return the number of deliveries that may go now, and their frames; ``window``: in frames."""
        taken = min(self.step, self.limit - self.used, self.left, window // self.frames)
        if taken <= 0:
            return 0, []
        self.used += taken
        self.left -= taken
        if self.large:
            return 1, list(self.split(number))
        length = len(self.block) // self.step
        self.fill(self.block, length, self.step, number)
        return taken, [memoryview(bytes(memoryview(self.block)[: taken * length]))]

    def fill(self, block: bytearray, length: int, frames: int, number: int) -> None:
        """Number the deliveries of a block of frames of one length: byte by byte, each in all frames at once."""
        numbers = struct.pack(f">{frames}I", *range(number, number + frames))
        for (at, width), digits in zip(self.places, (numbers, numbers, numbers.hex().encode()), strict=True):
            for byte in range(width):
                block[at + byte :: length] = digits[byte::width]

    def split(self, number: int) -> Iterable[memoryview]:
        """One large delivery as frames."""
        body = memoryview(self.body)
        for at in range(0, len(body), self.chunk):
            part = body[at : at + self.chunk]
            more = at + self.chunk < len(body)
            head = self.head if not at else transfer(self.handle, first=False, more=more)
            opening = bytearray(struct.pack(">IBBH", 8 + len(head) + len(part), 2, 0, self.channel) + head)
            if not at:
                self.fill(opening, len(opening), 1, number)
            yield memoryview(opening)
            yield part
