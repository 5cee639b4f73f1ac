"""A STOMP peer that out-runs any Python client: ``python -m benchmarks.peers.stomp``.

It is no broker. A SUBSCRIBE to ``/queue/bench.<n>.<size>.<kind>`` gets n MESSAGE frames of size bytes, written from a
block that was encoded once; everything else is read, counted and forgotten, and every receipt is answered. It names
itself ActiveMQ, so that a client speaks to it as it would to ActiveMQ Classic.

kind: ``text`` (no content-length, as ActiveMQ sends a TextMessage), ``nul`` or ``random`` (bytes, with content-length).
The window is ``activemq.prefetchSize`` of the SUBSCRIBE (1000 without one, none with ``ack:auto``); an ACK moves it,
also inside a transaction. When a connection ends, one line of JSON says what came over it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

from benchmarks.peers.server import Server, body_of, listen, parse_queue

BLOCK = 50  # frames per block: one write, one step of the window
LARGE = 1 << 16  # from this size on a frame is written in two parts and its body is never copied
EPOCH = b"~epoch~~"  # replaced in every block, so that no two messages of a subscription share an id
HEAD = 400  # a receipt is looked for in so many bytes of a frame, not in its body
COUNTED = (b"SEND", b"ACK", b"NACK", b"BEGIN", b"COMMIT", b"ABORT")
CONNECTED = b"CONNECTED\nserver:ActiveMQ/5.18.3\nheart-beat:0,0\nsession:ID\\cbench-1\nversion:1.2\n\n\0\n"


def head_of(subscription: bytes, number: int, size: int, kind: str) -> bytes:
    """The head of one MESSAGE as ActiveMQ writes it, its epoch still to be filled in."""
    length = b"" if kind == "text" else b"content-length:%d\n" % size
    return (
        b"MESSAGE\n%bexpires:0\ndestination:/queue/bench\nack:ID\\cbench-5\\c%b-%d\nsubscription:%b\npriority:4\n"
        b"message-id:ID\\cbench-3\\c1\\c-1\\c1\\c%b-%d\npersistent:true\ntimestamp:1700000000000\n\n"
    ) % (length, EPOCH, number, subscription, EPOCH, number)


class Feed:
    """The messages of one subscription, as far as its window lets them go."""

    def __init__(
        self, wanted: tuple[int, int, str], headers: Mapping[bytes, bytes], counts: Mapping[bytes, int]
    ) -> None:
        self.count, self.size, self.kind = wanted
        automatic = headers.get(b"ack", b"auto") == b"auto"
        self.window = self.count if automatic else int(headers.get(b"activemq.prefetchSize", 1000))
        self.sent, self.counts, self.acked_before = 0, counts, counts[b"ACK"]
        self.step = 1 if self.size >= LARGE else max(1, min(BLOCK, self.window // 2))
        self.body = body_of(self.size, self.kind)
        self.heads = [head_of(headers[b"id"], number, self.size, self.kind) for number in range(self.step)]
        self.block = b"" if self.size >= LARGE else b"".join(head + self.body + b"\0\n" for head in self.heads)

    def next(self) -> Iterable[bytes]:
        """Return what may be written now; nothing where the window is full or all is sent."""
        left = self.count - self.sent
        if left <= 0 or self.sent - (self.counts[b"ACK"] - self.acked_before) > self.window - min(self.step, left):
            return ()
        epoch = b"%08d" % (self.sent // self.step)
        taken = min(self.step, left)
        self.sent += taken
        if not self.block:
            return (self.heads[0].replace(EPOCH, epoch), self.body, b"\0\n")
        block = self.block
        if taken < self.step:
            block = b"".join(head + self.body + b"\0\n" for head in self.heads[:taken])
        return (block.replace(EPOCH, epoch),)


class StompServer(Server):
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.feed: Feed | None = None
        self.seen = dict.fromkeys(COUNTED, 0)

    def counts(self) -> dict[str, int]:
        """Frames by command."""
        return {name.decode(): count for name, count in self.seen.items()}

    def refill(self) -> bool:
        """The next block of the feed."""
        if self.feed is not None:
            self.out.extend(memoryview(part) for part in self.feed.next())
        return bool(self.out)

    def take(self, data: bytes) -> None:
        """Count the frames and answer their receipts."""
        end = data.rfind(b"\0")
        if end < 0:
            self.rest = data
            return
        whole, self.rest = data[:end], data[end + 1 :]
        answers: list[bytes] = []
        counts = self.seen
        for frame in whole.split(b"\0"):
            if frame[:1] == b"\n":  # ends of line between frames
                frame = frame.lstrip(b"\n")
            command = frame[: frame.find(b"\n")]
            if command in counts:
                counts[command] += 1
            else:
                answers += self.control(command, frame)
            at = frame.find(b"\nreceipt:", 0, HEAD)
            if at >= 0:
                answers += (b"RECEIPT\nreceipt-id:", frame[at + 9 : frame.find(b"\n", at + 9)], b"\n\n\0\n")
        if answers:
            self.out.append(memoryview(b"".join(answers)))

    def control(self, command: bytes, frame: bytes) -> tuple[bytes, ...]:
        """The frames that come once: the newest subscription is the one that is fed."""
        if command in (b"CONNECT", b"STOMP"):
            return (CONNECTED,)
        if command == b"SUBSCRIBE":
            headers = dict(line.partition(b":")[::2] for line in frame.split(b"\n")[1:])
            self.feed = Feed(parse_queue(headers[b"destination"].decode().removeprefix("/queue/")), headers, self.seen)
        elif command in (b"UNSUBSCRIBE", b"DISCONNECT"):
            self.feed = None
            self.finished = command == b"DISCONNECT"
        return ()


if __name__ == "__main__":
    listen(StompServer)
