"""Large bodies over STOMP: in the parts that came, and in those that leave; no copy of the whole is made on the way."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from typing import Final

from redelivery.broker.engine.stored import EncodedBody
from redelivery.model.errors import MessageFormatError
from redelivery.transports.stomp.codec.frames import Frame
from redelivery.transports.stomp.codec.reader import FrameCutter, Parts

LARGE: Final = 1 << 20  # bytes; what is not larger is one piece, which costs less
TEXT, BYTES = "text", "bytes"  # a store's names for these bodies
_decoder = getincrementaldecoder("utf-8")


class PartsReader(FrameCutter[Parts]):
    """Reads frames, and leaves the parts of a large body as they came."""

    __slots__ = ()

    def _whole(self, parts: Parts) -> bytes | Parts:
        return parts if self._size > LARGE else b"".join(parts)


class LargeFrame(Frame):
    """A frame with a large body: that is in `parts`, and ``body`` is empty."""

    __slots__ = ("parts",)

    def __init__(self, head: bytes, parts: Parts, version: str = "1.2") -> None:
        super().__init__(head, b"", version)
        self.parts = parts

    def join(self) -> bytes:
        """The body as one; it is the only part then."""
        self.parts[:] = [b"".join(self.parts)]
        return bytes(self.parts[0])

    def __repr__(self) -> str:
        return f"<Frame {self.command} of {sum(map(len, self.parts))} bytes>"


class ArrivedBody(EncodedBody):
    """A large body as it came; ``protocol`` is `TEXT` or `BYTES`."""

    __slots__ = ("_parts", "_size")

    def __init__(self, protocol: str, parts: Parts) -> None:
        super().__init__(protocol)
        self._parts = parts
        self._size = sum(map(len, parts))

    def parts(self) -> Parts:
        """The parts of the body, which are not to be changed."""
        return self._parts

    def read(self) -> str | bytes:
        """See `redelivery.broker.engine.stored.WireBody`."""
        data = b"".join(self._parts)
        self._parts = [data]  # as bytes it is the receiver's too, and is not copied for the next one
        return data.decode() if self.protocol == TEXT else data

    def __len__(self) -> int:
        return self._size


def read_large(frame: LargeFrame, *, text: bool) -> ArrivedBody:
    """The body of a SEND. Raises MessageFormatError where text is not UTF-8."""
    if text:
        check_text(frame.parts)
    return ArrivedBody(TEXT if text else BYTES, frame.parts)


def check_text(parts: Iterable[bytes | bytearray]) -> None:
    """Decode part by part, and keep nothing. Raises MessageFormatError where it is not UTF-8."""
    decoder, size, begun = _decoder(), 0, 0
    try:
        for part in parts:
            begun = len(decoder.getstate()[0])  # bytes of a character that the parts before have begun
            decoder.decode(part)
            size += len(part)
        begun = len(decoder.getstate()[0])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise not_text(error, size - begun) from error


def not_text(error: UnicodeDecodeError, before: int = 0) -> MessageFormatError:
    """The error that refuses a text body; ``before``: so many of its bytes were decoded before these."""
    return MessageFormatError(
        f"the text body is not UTF-8 ({error.reason} at byte {before + error.start}): send bytes with a content-length"
    )


def parts_of(body: EncodedBody) -> Sequence[bytes | bytearray] | None:
    """The parts of a body that leaves as it is; None where it must be read for that. Raises as `EncodedBody.parts`."""
    if body.protocol not in (TEXT, BYTES):
        return None
    parts = body.parts()
    if body.protocol == TEXT:
        try:
            check_text(parts)
        except MessageFormatError:  # half a character, which ``vm://`` can send
            return None
    return parts
