"""Large bodies: in the file in pieces, and read from there when they are asked for, not kept in memory.

One is removed from the file when no stored message has it any more and nobody in this process can still read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Final, TypeAlias
from weakref import WeakValueDictionary, finalize

from redelivery.broker.engine.stored import EncodedBody, StoredMessage
from redelivery.broker.store.encoding import body_of, encode_body, encoded_parts, late_wire
from redelivery.broker.store.journal import UnreadableStoreError
from redelivery.model.values import Body

LARGE: Final = 1 << 20  # bytes; what is not larger is written and read as one piece, with its message
PIECE: Final = 256 << 10  # bytes

Load: TypeAlias = Callable[[int, Callable[[bytes], object]], None]  # reads one by its number, and passes each piece on


class KeptBody(EncodedBody):
    """A body in the file."""

    __slots__ = ("_load", "_size", "number")

    def __init__(self, number: int, protocol: str, size: int, load: Load) -> None:
        super().__init__(protocol)
        self.number = number
        self._size = size
        self._load = load

    def data(self) -> bytes:
        """The body's bytes. Raises MessageFormatError if the file is closed, UnreadableStoreError if it is damaged."""
        data = BytesIO()
        self._load(self.number, data.write)
        return data.getvalue()

    def parts(self) -> list[bytes]:
        """The body's pieces. Raises as `data`."""
        found: list[bytes] = []
        self._load(self.number, found.append)
        return found

    def read(self) -> Body:
        """See `redelivery.broker.engine.stored.WireBody`. Raises as `data`."""
        data = self.data()
        try:
            return body_of(self.protocol, data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableStoreError(f"a body in the store is damaged: {error}; restore it from a copy") from error

    def __len__(self) -> int:
        return self._size


class LargeBodies:
    """The bodies in the file, by number, and how many of its messages have each. Used under the broker's lock."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._last = 0
        self._messages: dict[int, int] = {}
        self._by_key: dict[int, int] = {}  # of the messages in memory
        self._alive: WeakValueDictionary[int, KeptBody] = WeakValueDictionary()
        self._unread: deque[int] = deque()  # nobody in this process can read them any more
        self._new: dict[int, tuple[int, object]] = {}  # not in the file yet, by the identity of what has them in memory
        self._sources: dict[int, int] = {}  # these identities

    def restore(self, number: int, messages: int) -> None:
        """One that the file has."""
        self._last = max(self._last, number)
        self._messages[number] = messages

    def add(self, key: int, message: StoredMessage) -> tuple[int, bool]:
        """A message is put under a key; the number of its body, 0 where that is not large, and whether to write that.

        Messages that share it in memory share it in the file.
        """
        kept, new = _kept(message), False
        source = message.wire or message.body
        if kept is not None:
            number = kept.number
        elif message.size > LARGE and source:
            number, _ = self._new.get(id(source), (0, None))
            if not number:
                new = True
                number = self._last = self._last + 1
                self._new[id(source)] = number, source
                self._sources[number] = id(source)
        else:
            return 0, False
        self._messages[number] = self._messages.get(number, 0) + 1
        self._by_key[key] = number
        return number, new

    def written(self, number: int) -> None:
        """Note that a body is in the file, or is not to be there."""
        self._new.pop(self._sources.pop(number, 0), None)

    def remove(self, key: int) -> None:
        """The message of that key is removed."""
        number = self._by_key.pop(key, None)
        if number is not None:
            self._messages[number] -= 1
            if number not in self._alive:
                self._unread.append(number)

    def clear(self, first: int, last: int) -> None:
        """The messages behind that key, and up to the last, are removed."""
        for key in [key for key in self._by_key if first < key <= last]:
            self.remove(key)

    def found(self, key: int, number: int, protocol: str, size: int) -> KeptBody:
        """The body of a message that was read, under its key."""
        self._by_key[key] = number
        return self.kept(number, protocol, size)

    def kept(self, number: int, protocol: str, size: int) -> KeptBody:
        """A body that the file has."""
        body = self._alive.get(number)
        if body is None:
            body = self._alive[number] = KeptBody(number, protocol, size, self._load)
            finalize(body, self._unread.append, number).atexit = False
        return body

    def forgotten(self) -> list[int]:
        """The bodies to be removed from the file now."""
        found = []
        for _ in range(len(self._unread)):
            number = self._unread.popleft()
            if self._messages.get(number) == 0 and number not in self._alive:
                del self._messages[number]
                self.written(number)
                found.append(number)
        return found


def pieces(message: StoredMessage) -> Iterator[bytes | memoryview]:
    """The body of a message as it is written."""
    body = message.body
    if isinstance(body, str):
        yield from (body[at : at + PIECE].encode("utf-8", "surrogatepass") for at in range(0, len(body), PIECE))
    elif message.wire is None and isinstance(body, (dict, list)):
        yield from _grouped(encoded_parts(body))
    elif message.wire is None and isinstance(body, EncodedBody):
        views = (memoryview(part) for part in body.parts())
        yield from _grouped(view[at : at + PIECE] for view in views for at in range(0, len(view), PIECE))
    else:
        data = memoryview(encode_body(message).data if message.wire is None else message.wire.raw)
        yield from (data[at : at + PIECE] for at in range(0, len(data), PIECE))


def _grouped(parts: Iterator[bytes | memoryview]) -> Iterator[bytes]:
    """Pieces of that size, but for the last."""
    piece = bytearray()
    for part in parts:
        piece += part
        while len(piece) >= PIECE:
            yield bytes(piece[:PIECE])
            del piece[:PIECE]
    if piece:
        yield bytes(piece)


def with_kept(message: StoredMessage, kept: KeptBody) -> StoredMessage:
    """The message without its body in memory."""
    if kept.protocol == "amqp":
        wire = late_wire(kept)
        return replace(message, body=wire, wire=wire)
    return replace(message, body=kept)


def is_kept(message: StoredMessage) -> bool:
    """Check whether a message's body is in the file already."""
    return _kept(message) is not None


def _kept(message: StoredMessage) -> KeptBody | None:
    source = getattr(message.wire, "source", message.body)
    return source if isinstance(source, KeptBody) else None
