"""The reader cuts frames from a stream of bytes, in time linear in the bytes whatever they hold and however they come.

It works for both ends of a connection: what is read from a server, and what is read from a client. Only the bytes of
the frame under way are kept, and they are bounded: a peer's claim (``content-length``) allocates nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Final, Generic, TypeAlias, TypeVar

from redelivery.model.errors import ProtocolError
from redelivery.transports.wire.signatures import protocol_of

Parts: TypeAlias = list[bytes | bytearray]  # of a body, as they came
Whole = TypeVar("Whole")  # what a reader makes of them
AnyFrame: TypeAlias = tuple[bytes, bytes | Whole]  # head (see frames.py) and body
RawFrame: TypeAlias = AnyFrame[bytes]

MAX_HEAD: Final = 256 << 10
MAX_BODY: Final = 100 << 20  # ActiveMQ's own limit (maxDataLength)

_SMALL: Final = 4 << 10  # bytes of a read below which it is copied to the one before: each part has its overhead
_LINE_ENDS: Final = frozenset(b"\r\n")
_CR, _M, _R = b"\rMR"
_blank_line = re.compile(rb"\n\r?\n")
_command_line = re.compile(
    rb"(?:MESSAGE|RECEIPT|ERROR|CONNECTED|SEND|ACK|NACK|BEGIN|COMMIT|ABORT|SUBSCRIBE|UNSUBSCRIBE|CONNECT|STOMP|DISCONNECT)"
    rb"\n"
)
_unfinished_command_line = re.compile(rb"[A-Z]{1,11}(?:\r?\n|\r?$)", re.DOTALL)
_FREQUENT: Final = (b"MESSAGE\n", b"SEND\n", b"ACK\n", b"RECEIPT\n")
# where the head ends; the group is the first content-length
_end_of_head = re.compile(rb"\n(?:\n|content-length:([^\n]*)\n(?:[^\n]+\n)*\n)")
# what confirms, as brokers write it; often many in a row
_receipts = re.compile(rb"(?:RECEIPT\nreceipt-id:[^\r\n\0]{1,64}\n\n\0\n*)+")
_receipt = re.compile(rb"(RECEIPT\nreceipt-id:[^\n]+\n)\n()\0")
_lone_receipt = re.compile(rb"RECEIPT\nreceipt-id:([^\r\n\0]{1,64})\n\n\0\n*")


class FrameCutter(ABC, Generic[Whole]):
    """Bytes in, frames out; what happens to a body that came in parts is its subclass's choice.

    ``version`` is the one spoken: only 1.2 lets a line end with CR LF; before the handshake ended it is 1.2.
    """

    __slots__ = (
        *("_body", "_crlf", "_head", "_left", "_max_body", "_max_head", "_scanned", "_size", "_tail", "version"),
    )

    def __init__(self, *, max_head: int = MAX_HEAD, max_body: int = MAX_BODY) -> None:
        self.version = "1.2"
        self._max_head = max_head
        self._max_body = max_body
        self._tail = bytearray()  # of a head under way
        self._scanned = 0  # of the tail, what surely holds no end of a head
        self._head: bytes | None = None  # of a body under way
        self._body: Parts = []  # a list: a buffer that grows is copied and touched anew
        self._size = 0  # of that
        self._left = -1  # bytes of the body that are missing; -1: it ends at NUL
        self._crlf = False  # this peer ends its lines with CR LF

    def lone_receipt(self, data: bytes) -> bytes | None:
        """The id where the bytes are one RECEIPT and nothing else, as the answer to one who waits is; else None."""
        if self._head is not None or self._tail:
            return None
        found = _lone_receipt.fullmatch(data)
        return None if found is None else found[1]

    def feed(self, data: bytes) -> list[AnyFrame[Whole]]:
        """The frames that these bytes complete; heart-beats are swallowed.

        Raises:
            ProtocolError: the bytes are no STOMP, or exceed a limit. The reader must not be used any more.
        """
        frames: list[AnyFrame[Whole]] = []
        at = 0
        if self._head is not None:
            at = self._continue_body(data, frames)
            if at < 0:
                return frames
        if self._tail:
            if not self._continue_head(data):
                return frames
            data, at = bytes(self._tail), 0
            self._tail.clear()
        at = self._cut(data, at, frames)
        if at < len(data):
            self._keep(data, at)
        return frames

    def _cut(self, data: bytes, at: int, frames: list[AnyFrame[Whole]]) -> int:
        """Cut whole frames off: the place of the rest. Changes nothing but what is known of the peer's line ends."""
        size, find, search, most = len(data), data.find, _end_of_head.search, self._max_head + 2
        while at < size:
            first = data[at]
            if first in _LINE_ENDS:  # a heart-beat, or the line ends that may follow a frame
                at += 1
                continue
            if first == _M and not self._crlf and (found := search(data, at, at + most)) is not None:
                start = found.end()
                head = data[at : start - 1]
                if _CR not in head:  # the way of most messages, in few steps
                    if not head.startswith(b"MESSAGE\n"):
                        raise _not_stomp(head[:64])
                    measured = found.lastindex is not None
                    end = self._end(data, start, self._length(found[1])) if measured else find(b"\0", start)
                    if end < 0:
                        return at
                    if end - start > self._max_body:
                        raise self._too_large()
                    frames.append((head, data[start:end]))
                    at = end + 1
                    continue
            begin, at = at, self._cut_one(data, at, frames)
            if at == begin:
                break
        return at

    def _cut_one(self, data: bytes, at: int, frames: list[AnyFrame[Whole]]) -> int:
        """One frame of any form, or RECEIPTs in a row: where the next one begins, or ``at`` where it is not whole."""
        if data[at] == _R and (run := _receipts.match(data, at)) is not None:
            frames += _receipt.findall(data, at, run.end())
            return run.end()
        end, start = self._find_blank_line(data, at)
        if end < 0:
            self._check_head(data[at:])
            return at
        head = data[at : end + 1]
        if self.version == "1.2":
            head = head.replace(b"\r\n", b"\n")
        if not head.startswith(_FREQUENT) and _command_line.match(head) is None:
            raise _not_stomp(data[at : at + 64])
        length = self._content_length(head) if b"\ncontent-length:" in head else -1
        end = data.find(b"\0", start) if length < 0 else self._end(data, start, length)
        if end < 0:
            return at
        if end - start > self._max_body:
            raise self._too_large()
        frames.append((head, data[start:end]))
        return end + 1

    def _keep(self, data: bytes, at: int) -> None:
        """A frame that is not whole, as `_cut` has found it."""
        end, start = self._find_blank_line(data, at)
        if end < 0:
            self._keep_head(data[at:])
            return
        head = data[at : end + 1]
        self._head = head = head.replace(b"\r\n", b"\n") if self.version == "1.2" else head
        length = self._content_length(head) if b"\ncontent-length:" in head else -1
        self._left = -1 if length < 0 else length - (len(data) - start)
        self._keep_body(data[start:])

    def _find_blank_line(self, data: bytes, at: int) -> tuple[int, int]:
        """The places where the head ends and the body starts, with CR LF or without; -1 where it does not end here."""
        found = _blank_line.search(data, at, at + self._max_head + 3)
        if found is None:
            return -1, -1
        self._crlf = found.end() - found.start() == 3
        return found.start(), found.end()

    def _content_length(self, head: bytes) -> int:
        at = head.find(b"\ncontent-length:") + 16
        return self._length(head[at : head.find(b"\n", at)])

    def _end(self, data: bytes, start: int, length: int) -> int:
        """The place where a body of so many bytes ends; -1 where it is not whole."""
        end = start + length
        if end >= len(data):
            return -1
        if data[end]:
            raise ProtocolError(f"the body is not {length} bytes long as its content-length says")
        return end

    def _length(self, digits: bytes) -> int:
        digits = digits.strip()
        if len(digits) > 10 or not digits.isdigit():
            raise ProtocolError(f"content-length {digits[:20]!r} is not a number of bytes")
        length = int(digits)
        if length > self._max_body:
            raise self._too_large()
        return length

    def _keep_head(self, rest: bytes) -> None:
        self._check_head(rest)
        self._tail += rest
        self._scanned = max(0, len(rest) - 2)

    def _continue_head(self, data: bytes) -> bool:
        """True when the kept bytes hold a whole head now."""
        tail = self._tail
        tail += data
        if _blank_line.search(tail, self._scanned) is not None:
            return True
        self._check_head(tail)
        self._scanned = len(tail) - 2
        return False

    def _check_head(self, rest: bytes | bytearray) -> None:
        if _unfinished_command_line.match(rest) is None:
            raise _not_stomp(bytes(rest[:64]))
        if len(rest) > self._max_head:
            raise ProtocolError(f"the head of a frame is longer than {self._max_head} bytes")

    def _continue_body(self, data: bytes, frames: list[AnyFrame[Whole]]) -> int:
        """The place where the rest of the data begins when it ends the body, else -1."""
        assert self._head is not None, "only called with a body under way"
        if self._left < 0:
            end = data.find(b"\0")
            if end < 0:
                self._keep_body(data)
                return -1
        else:
            end = self._left
            if end >= len(data):
                self._left -= len(data)
                self._keep_body(data)
                return -1
            if data[end]:
                raise ProtocolError("a body is longer than its content-length says")
        self._keep_body(data[:end])
        frames.append((self._head, self._whole(self._body)))
        self._head = None
        self._body = []
        self._size = 0
        return end + 1

    def _keep_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_body:
            raise self._too_large()
        body = self._body
        if len(data) >= _SMALL:
            body.append(data)
        elif body and isinstance(last := body[-1], bytearray) and len(last) < _SMALL:
            last += data
        else:
            body.append(bytearray(data))

    @abstractmethod
    def _whole(self, parts: Parts) -> bytes | Whole:
        """A body that came in parts, which are the caller's to keep."""

    def _too_large(self) -> ProtocolError:
        return ProtocolError(f"the body of a frame is larger than {self._max_body} bytes")


class FrameReader(FrameCutter[bytes]):
    """A reader of frames whose bodies are bytes."""

    __slots__ = ()

    def _whole(self, parts: Parts) -> bytes:
        return b"".join(parts)


def _not_stomp(start: bytes) -> ProtocolError:
    guess = protocol_of(start)
    looks = f"it looks like {guess}" if guess else "it looks like no protocol that is known"
    if guess in ("OpenWire", "AMQP"):
        looks += "; a broker has a port for each protocol, for STOMP as a rule 61613"
    return ProtocolError(f"the peer does not speak STOMP, {looks}: it sent {start[:24]!r}")
