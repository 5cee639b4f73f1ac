"""An AMQP 1.0 peer that out-runs any Python client: ``python -m benchmarks.peers.amqp``.

It is no broker. A receiver from ``bench.<n>.<size>.<kind>`` gets n messages of size bytes, within its credit, written
from a block that was encoded once; what is sent is counted, forgotten and accepted, all that one read brought by one
disposition; a coordinator declares and discharges. It names itself ActiveMQ, so that a client speaks to it as it would
to ActiveMQ Classic.

kind: ``text`` (an amqp-value string), ``nul`` or ``random`` (data). A session has one receiver at a time. When a
connection ends, one line of JSON says what came over it; an outcome in a transaction counts unless it is rolled back.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchmarks.peers.amqp_feed import Encoded, Feed, described, frame, symbol, ubyte
from benchmarks.peers.server import Server, listen, parse_queue
from redelivery.broker.servers.amqp.codec.data import described as descriptor
from redelivery.broker.servers.amqp.codec.data import places
from redelivery.broker.servers.amqp.links.coordinator import read_request
from redelivery.transports.amqp.codec.encoding import write_text
from redelivery.transports.amqp.codec.values import read

SASL = b"AMQP\x03\x01\x00\x00"
MECHANISMS = Encoded(b"\xe0\x12\x02\xa3\x09ANONYMOUS\x05PLAIN")  # an array of two symbols
ACCEPTED, DECLARED, TRANSACTIONAL = 0x24, 0x33, 0x34
COORDINATOR = (0x30, "amqp:coordinator:list")
OUTCOMES: dict[Any, str] = {ACCEPTED: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}
WINDOW = (1 << 31) - 1
CREDIT = 1 << 20
PRODUCT = {symbol("product"): write_text("ActiveMQ"), symbol("version"): write_text("5.18.3")}


@dataclass(slots=True)
class Inbound:
    """A link that the client sends over; ``count``: of whole deliveries, ``number``: of the one that comes."""

    coordinator: bool
    count: int = 0
    number: int = 0


@dataclass(slots=True)
class Session:
    """One channel.

    ``number``: of the next delivery to the client; ``written``: transfer frames, of which the client takes ``window``;
    ``owed``: deliveries of the client that await their outcome.
    """

    inbound: dict[int, Inbound] = field(default_factory=dict)  # by handle
    feed: Feed | None = None
    number: int = 0
    written: int = 0
    window: int = 0
    received: int = 0  # transfer frames
    owed: range = range(0)


class AmqpServer(Server):
    """One connection. Our handle of a link is the client's."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.sessions: dict[int, Session] = {}
        self.transactions: dict[object, list[tuple[int, range, bool]]] = {}  # channel, deliveries, whether settled
        self.largest_frame = 512
        self.seen = dict.fromkeys(("transfers", "declared", "committed", "rolled back", *OUTCOMES.values()), 0)
        self.controls: dict[object, Callable[[int, list[Any]], None]] = {
            0x10: self.on_open,
            0x11: self.on_begin,
            0x13: self.on_flow,
            0x16: self.on_detach,
            0x17: self.on_end,
            0x18: self.on_close,
            0x41: lambda _channel, _fields: self.say(0x44, ubyte(0), kind=1),
        }

    def counts(self) -> dict[str, int]:
        """Return the deliveries sent by the client, transactions, and the client's outcomes."""
        return self.seen

    def refill(self) -> bool:
        """Write the next block of some feed."""
        for channel, session in self.sessions.items():
            feed = session.feed
            if feed is None:
                continue
            taken, parts = feed.next(session.number, session.window - session.written)
            if taken:
                session.number += taken
                session.written += taken * feed.frames
                self.out.extend(parts)
                return True
            if feed.draining and not feed.left:  # the rest of the credit is used up by nothing
                feed.draining, feed.used = False, feed.limit
                self.flow(channel, session, feed.handle, feed.used, 0, drain=True)
                return True
        return False

    def take(self, data: bytes) -> None:
        """Take every whole frame, and answer what they sent by one disposition."""
        at = 0
        while len(data) - at >= 8:
            if data[at : at + 4] == b"AMQP":
                header = data[at : at + 8]
                self.out.append(memoryview(header))
                if header == SASL:
                    self.say(0x40, MECHANISMS, kind=1)
                at += 8
                continue
            size = int.from_bytes(data[at : at + 4], "big")
            if len(data) - at < size:
                break
            if size > 8:
                self.on_frame(data, at, at + size)
            at += size
        self.rest = data[at:]
        for channel, session in self.sessions.items():
            self.answer(channel, session)

    def on_frame(self, data: bytes, at: int, end: int) -> None:
        body = at + 4 * data[at + 4]
        channel = data[at + 6] << 8 | data[at + 7]
        code, inner = (data[body + 2], body + 3) if data[body + 1] == 0x53 else descriptor(data, body)
        fields, payload = read(data, inner)
        if code == 0x14:
            self.on_transfer(channel, fields, data[payload:end])
        elif code == 0x15:
            self.on_disposition(channel, fields, data, inner)
        elif code == 0x12:
            self.on_attach(channel, fields, data[:end], inner)
        else:
            self.controls[code](channel, fields + [None] * 11)

    def on_open(self, _channel: int, fields: list[Any]) -> None:
        self.largest_frame = fields[2] or WINDOW
        self.say(0x10, "bench", None, WINDOW, None, *[None] * 5, PRODUCT)

    def on_begin(self, channel: int, fields: list[Any]) -> None:
        self.sessions[channel] = Session(window=fields[2])
        self.say(0x11, Encoded(b"\x60" + channel.to_bytes(2, "big")), 0, WINDOW, WINDOW, channel=channel)

    def on_attach(self, channel: int, fields: list[Any], data: bytes, at: int) -> None:
        """Agree to everything that is asked for; a sender gets its credit at once."""
        starts = [*places(data, at), len(data)]
        asked = [Encoded(data[start:stop]) for start, stop in pairwise(starts)] + [Encoded(b"\x40")] * 4
        session, receives, handle = self.sessions[channel], fields[2], fields[1]
        modes = (*asked[3:7], None, None)
        self.say(0x12, *asked[:2], not receives, *modes, 0 if receives else None, channel=channel)
        if receives:
            session.feed = Feed(channel, handle, *parse_queue(fields[5][0]), self.largest_frame)
            return
        session.inbound[handle] = Inbound(descriptor(data, starts[6])[0] in COORDINATOR)
        self.flow(channel, session, handle, 0, CREDIT)

    def on_flow(self, channel: int, fields: list[Any]) -> None:
        session = self.sessions[channel]
        session.window = (fields[0] or 0) + fields[1]
        feed = session.feed
        if feed is not None and fields[4] == feed.handle:
            feed.limit = fields[5] + fields[6]
            feed.draining = fields[8] is True

    def on_disposition(self, channel: int, fields: list[Any], data: bytes, at: int) -> None:
        """Note the client's outcomes; those that are not settled are settled here, or by the discharge."""
        if not fields[0] or len(fields) < 5:
            return
        _, first, last, settled, state = fields[:5]
        deliveries = range(first, (first if last is None else last) + 1)
        code: Any = descriptor(data, places(data, at)[4])[0]
        if code == TRANSACTIONAL:
            self.transactions[state[0]].append((channel, deliveries, bool(settled)))
        else:
            self.seen[OUTCOMES[code]] += len(deliveries)
            if not settled:
                self.settle(channel, deliveries, described(code, []), receiver=False)

    def on_transfer(self, channel: int, fields: list[Any], payload: bytes) -> None:
        """Count it and owe it an answer; what a coordinator gets is answered at once."""
        session = self.sessions[channel]
        session.received += 1
        handle, number, _, _, settled, more = (fields + [None] * 6)[:6]
        link = session.inbound[handle]
        if number is not None:
            link.number = number
        if more:
            return
        link.count += 1
        if link.count % (CREDIT // 2) == 0:
            self.flow(channel, session, handle, link.count, CREDIT)
        if link.coordinator:
            self.answer(channel, session)
            self.control(channel, link.number, payload)
            return
        self.seen["transfers"] += 1
        if not settled:
            session.owed = range(session.owed.start if session.owed else link.number, link.number + 1)

    def answer(self, channel: int, session: Session) -> None:
        """Accept all that is owed."""
        if session.owed:
            self.settle(channel, session.owed, described(ACCEPTED, []), receiver=True)
            session.owed = range(0)

    def control(self, channel: int, delivery: int, payload: bytes) -> None:
        """Declare or discharge: settle what was enlisted, or forget it."""
        request = read_request(payload)
        state = described(ACCEPTED, [])
        if request is None:
            self.seen["declared"] += 1
            name = self.seen["declared"].to_bytes(4, "big")
            self.transactions[name] = []
            state = described(DECLARED, [name])
        else:
            self.seen["rolled back" if request.fail else "committed"] += 1
            for where, deliveries, settled in self.transactions.pop(request.transaction):
                self.seen["accepted"] += 0 if request.fail else len(deliveries)
                if not request.fail and not settled:
                    self.settle(where, deliveries, state, receiver=False)
        self.settle(channel, range(delivery, delivery + 1), state, receiver=True)

    def on_detach(self, channel: int, fields: list[Any]) -> None:
        session, handle = self.sessions[channel], fields[0]
        session.inbound.pop(handle, None)
        if session.feed is not None and session.feed.handle == handle:
            session.feed = None
        self.say(0x16, handle, True, channel=channel)

    def on_end(self, channel: int, _fields: list[Any]) -> None:
        del self.sessions[channel]
        self.say(0x17, channel=channel)

    def on_close(self, _channel: int, _fields: list[Any]) -> None:
        self.finished = True
        self.sessions.clear()
        self.say(0x18)

    def settle(self, channel: int, deliveries: range, state: Encoded, *, receiver: bool) -> None:
        """Write a settled disposition."""
        self.say(0x15, receiver, deliveries.start, deliveries.stop - 1, True, state, channel=channel)

    def flow(
        self, channel: int, session: Session, handle: int, count: int, credit: int, *, drain: bool = False
    ) -> None:
        """Write the state of a link."""
        link = (handle, count, credit, 0, drain)
        self.say(0x13, session.received, WINDOW, session.number, WINDOW, *link, channel=channel)

    def say(self, code: int, *fields: object, channel: int = 0, kind: int = 0) -> None:
        """Write one performative."""
        self.out.append(memoryview(frame(described(code, list(fields)), channel, kind)))


if __name__ == "__main__":
    listen(AmqpServer)
