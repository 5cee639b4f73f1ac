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

from benchmarks.peers.amqp_feed import Feed, frame
from benchmarks.peers.server import Server, listen, parse_queue
from benchmarks.peers.values import (
    NULL,
    VALUE_SECTION,
    Encoded,
    Small,
    Symbol,
    described,
    descriptor,
    end_of,
    fields_of,
    number,
    scalar,
)

SASL = b"AMQP\x03\x01\x00\x00"
MECHANISMS = Encoded(b"\xe0\x12\x02\xa3\x09ANONYMOUS\x05PLAIN")  # an array of two symbols
ACCEPTED, COORDINATOR, DECLARE, DECLARED, TRANSACTIONAL = 0x24, 0x30, 0x31, 0x33, 0x34
OUTCOMES = {ACCEPTED: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}
WINDOW = (1 << 31) - 1
CREDIT = 1 << 20
PRODUCT = {Symbol("product"): "ActiveMQ", Symbol("version"): "5.18.3"}


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
        self.controls: dict[int, Callable[[int, list[bytes]], None]] = {
            0x10: self.on_open,
            0x11: self.on_begin,
            0x12: self.on_attach,
            0x13: self.on_flow,
            0x15: self.on_disposition,
            0x16: self.on_detach,
            0x17: self.on_end,
            0x18: self.on_close,
            0x41: lambda _channel, _fields: self.say(0x44, Small(0), kind=1),
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
        code, inner = (data[body + 2], 3) if data[body + 1] == 0x53 else descriptor(data[body : body + 64])
        if code == 0x14:
            fields, payload = fields_of(data, body + inner, 6)
            self.on_transfer(channel, fields, data[payload:end])
        else:
            self.controls[code](channel, fields_of(data, body + inner)[0])

    def on_open(self, _channel: int, fields: list[bytes]) -> None:
        self.largest_frame = number(fields[2], WINDOW) if len(fields) > 2 else WINDOW
        self.say(0x10, "bench", None, WINDOW, None, *[None] * 5, PRODUCT)

    def on_begin(self, channel: int, fields: list[bytes]) -> None:
        self.sessions[channel] = Session(window=number(fields[2]))
        self.say(0x11, Encoded(b"\x60" + channel.to_bytes(2, "big")), 0, WINDOW, WINDOW, channel=channel)

    def on_attach(self, channel: int, fields: list[bytes]) -> None:
        """Agree to everything that is asked for; a sender gets its credit at once."""
        fields += [NULL] * (7 - len(fields))
        name, handle, role, send_mode, receive_mode, source, target = map(Encoded, fields[:7])
        session, receives = self.sessions[channel], scalar(role) is True
        modes = (send_mode, receive_mode, source, target, None, None)
        self.say(0x12, name, handle, not receives, *modes, 0 if receives else None, channel=channel)
        if receives:
            address = scalar(fields_of(source, descriptor(source)[1])[0][0])
            assert isinstance(address, bytes), "a source has an address"
            session.feed = Feed(channel, number(handle), *self.wanted(address.decode()), self.largest_frame)
            return
        session.inbound[number(handle)] = Inbound(descriptor(target)[0] == COORDINATOR)
        self.flow(channel, session, number(handle), 0, CREDIT)

    def wanted(self, address: str) -> tuple[int, int, str]:
        """Return how many messages a receiver from there gets, of how many bytes, of which kind."""
        return parse_queue(address)

    def on_flow(self, channel: int, fields: list[bytes]) -> None:
        session = self.sessions[channel]
        session.window = number(fields[0]) + number(fields[1])
        feed = session.feed
        if len(fields) > 6 and feed is not None and scalar(fields[4]) == feed.handle:
            feed.limit = number(fields[5]) + number(fields[6])
            feed.draining = len(fields) > 8 and scalar(fields[8]) is True

    def on_disposition(self, channel: int, fields: list[bytes]) -> None:
        """Note the client's outcomes; those that are not settled are settled here, or by the discharge."""
        if scalar(fields[0]) is not True or len(fields) < 5:
            return
        first = number(fields[1])
        deliveries = range(first, number(fields[2], first) + 1)
        settled = scalar(fields[3]) is True
        code, at = descriptor(fields[4])
        if code == TRANSACTIONAL:
            (name, *_), _ = fields_of(fields[4], at)
            self.transactions[scalar(name)].append((channel, deliveries, settled))
        else:
            self.seen[OUTCOMES[code]] += len(deliveries)
            if not settled:
                self.settle(channel, deliveries, Encoded(fields[4]), receiver=False)

    def on_transfer(self, channel: int, fields: list[bytes], payload: bytes) -> None:
        """Count it and owe it an answer; what a coordinator gets is answered at once."""
        session = self.sessions[channel]
        session.received += 1
        link = session.inbound[number(fields[0])]
        if len(fields) > 1 and fields[1] != NULL:
            link.number = number(fields[1])
        if len(fields) > 5 and scalar(fields[5]) is True:  # more of it comes
            return
        link.count += 1
        if link.count % (CREDIT // 2) == 0:
            self.flow(channel, session, number(fields[0]), link.count, CREDIT)
        if link.coordinator:
            self.answer(channel, session)
            self.control(channel, link.number, payload)
            return
        self.seen["transfers"] += 1
        if len(fields) < 5 or scalar(fields[4]) is not True:
            session.owed = range(session.owed.start if session.owed else link.number, link.number + 1)

    def answer(self, channel: int, session: Session) -> None:
        """Accept all that is owed."""
        if session.owed:
            self.settle(channel, session.owed, described(ACCEPTED, []), receiver=True)
            session.owed = range(0)

    def control(self, channel: int, delivery: int, payload: bytes) -> None:
        """Declare or discharge: settle what was enlisted, or forget it."""
        at = 0
        while (found := descriptor(payload[at : at + 64]))[0] != VALUE_SECTION:
            at = end_of(payload, at)
        request = payload[at + found[1] :]
        code, at = descriptor(request)
        state = described(ACCEPTED, [])
        if code == DECLARE:
            self.seen["declared"] += 1
            name = self.seen["declared"].to_bytes(4, "big")
            self.transactions[name] = []
            state = described(DECLARED, [name])
        else:
            fields, _ = fields_of(request, at)
            failed = len(fields) > 1 and scalar(fields[1]) is True
            self.seen["rolled back" if failed else "committed"] += 1
            for where, deliveries, settled in self.transactions.pop(scalar(fields[0])):
                self.seen["accepted"] += 0 if failed else len(deliveries)
                if not failed and not settled:
                    self.settle(where, deliveries, described(ACCEPTED, []), receiver=False)
        self.settle(channel, range(delivery, delivery + 1), state, receiver=True)

    def on_detach(self, channel: int, fields: list[bytes]) -> None:
        session, handle = self.sessions[channel], number(fields[0])
        session.inbound.pop(handle, None)
        if session.feed is not None and session.feed.handle == handle:
            session.feed = None
        self.say(0x16, handle, True, channel=channel)

    def on_end(self, channel: int, _fields: list[bytes]) -> None:
        del self.sessions[channel]
        self.say(0x17, channel=channel)

    def on_close(self, _channel: int, _fields: list[bytes]) -> None:
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
