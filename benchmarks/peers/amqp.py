"""An AMQP 1.0 peer that out-runs any Python client: ``python -m benchmarks.peers.amqp [--port 0]``.

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
    Encoded,
    Small,
    Symbol,
    body_value,
    described,
    descriptor,
    fields_of,
    number,
    scalar,
    symbols,
)

SASL = b"AMQP\x03\x01\x00\x00"
ACCEPTED, COORDINATOR, DECLARE, DECLARED, TRANSACTIONAL = 0x24, 0x30, 0x31, 0x33, 0x34
OUTCOMES = {ACCEPTED: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}
WINDOW = (1 << 31) - 1
CREDIT = 1 << 20
PRODUCT = ((Symbol("product"), "ActiveMQ"), (Symbol("version"), "5.18.3"))


@dataclass(slots=True)
class Inbound:
    """A link that the client sends over."""

    coordinator: bool
    count: int = 0  # whole deliveries
    number: int = 0  # of the delivery that comes


@dataclass(slots=True)
class Session:
    """One channel."""

    inbound: dict[int, Inbound] = field(default_factory=dict)  # by handle
    feed: Feed | None = None
    number: int = 0  # of the next delivery to the client
    written: int = 0  # transfer frames
    window: int = 0  # so many of them the client takes
    received: int = 0  # transfer frames
    owed: range = range(0)  # deliveries of the client that await their outcome
    outcomes: bytearray = field(default_factory=bytearray)  # by the number of the delivery, 0: none yet


@dataclass(frozen=True, slots=True)
class Enlisted:
    """Deliveries whose outcome waits for a discharge."""

    channel: int
    session: Session
    deliveries: range
    settled: bool


class AmqpServer(Server):
    """One connection. Our handle of a link is the client's."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.sessions: dict[int, Session] = {}
        self.ended: list[Session] = []
        self.transactions: dict[object, list[Enlisted]] = {}
        self.largest_frame = 512
        self.seen = dict.fromkeys(("transfers", "declared", "committed", "rolled back"), 0)
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
        """Deliveries sent by the client, transactions, and the client's outcomes."""
        sessions = (*self.ended, *self.sessions.values())
        return self.seen | {
            name: sum(each.outcomes.count(code) for each in sessions) for code, name in OUTCOMES.items()
        }

    def refill(self) -> bool:
        """The next block of some feed."""
        for channel, session in self.sessions.items():
            feed = session.feed
            if feed is None:
                continue
            taken, parts = feed.next(session.number, session.window - session.written)
            if taken:
                session.number += taken
                session.written += taken * feed.frames
                session.outcomes += bytes(taken)
                self.out.extend(parts)
                return True
            if feed.draining and not feed.left:  # the rest of the credit is used up by nothing
                feed.draining, feed.used = False, feed.limit
                self.flow(channel, session, feed.handle, feed.used, 0, drain=True)
                return True
        return False

    def take(self, data: bytes) -> None:
        """Every whole frame, and one disposition for what they sent."""
        at = 0
        while len(data) - at >= 8:
            if data[at : at + 4] == b"AMQP":
                self.on_header(data[at : at + 8])
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

    def on_header(self, header: bytes) -> None:
        """Agree with the protocol; let anyone in."""
        self.out.append(memoryview(header))
        if header == SASL:
            self.say(0x40, symbols("ANONYMOUS", "PLAIN"), kind=1)

    def on_frame(self, data: bytes, at: int, end: int) -> None:
        """By its performative."""
        body = at + 4 * data[at + 4]
        channel = data[at + 6] << 8 | data[at + 7]
        code, inner = (data[body + 2], 3) if data[body + 1] == 0x53 else descriptor(data[body : body + 64])
        if code == 0x14:
            fields, payload = fields_of(data, body + inner, 6)
            self.on_transfer(channel, fields, data, payload, end)
        else:
            self.controls[code](channel, fields_of(data, body + inner)[0])

    def on_open(self, _channel: int, fields: list[bytes]) -> None:
        """A connection without time-outs."""
        self.largest_frame = number(fields[2], WINDOW) if len(fields) > 2 else WINDOW
        self.say(0x10, "bench", None, WINDOW, None, *[None] * 5, dict(PRODUCT))

    def on_begin(self, channel: int, fields: list[bytes]) -> None:
        """On the same channel."""
        self.sessions[channel] = Session(window=number(fields[2]))
        self.say(0x11, Encoded(b"\x60" + channel.to_bytes(2, "big")), 0, WINDOW, WINDOW, channel=channel)

    def on_attach(self, channel: int, fields: list[bytes]) -> None:
        """Everything that is asked for; a sender gets its credit at once."""
        fields += [NULL] * (7 - len(fields))
        name, handle, role, send_mode, receive_mode, source, target = map(Encoded, fields[:7])
        session, receives = self.sessions[channel], scalar(role) is True
        modes = (send_mode, receive_mode, source, target, None, None)
        self.say(0x12, name, handle, not receives, *modes, 0 if receives else None, channel=channel)
        if receives:
            _, at = descriptor(source)
            address = scalar(fields_of(source, at)[0][0])
            assert isinstance(address, bytes), "a source has an address"
            wanted = self.wanted(address.decode())
            session.feed = Feed(channel, number(handle), *wanted, self.largest_frame)
            return
        session.inbound[number(handle)] = Inbound(descriptor(target)[0] == COORDINATOR)
        self.flow(channel, session, number(handle), 0, CREDIT)

    def wanted(self, address: str) -> tuple[int, int, str]:
        """How many messages a receiver from there gets, of how many bytes, of which kind."""
        return parse_queue(address)

    def on_flow(self, channel: int, fields: list[bytes]) -> None:
        """How far the window and the credit have moved."""
        session = self.sessions[channel]
        session.window = number(fields[0]) + number(fields[1])
        feed = session.feed
        if len(fields) < 7 or feed is None or scalar(fields[4]) != feed.handle:
            return
        feed.limit = number(fields[5]) + number(fields[6])
        feed.draining = len(fields) > 8 and scalar(fields[8]) is True

    def on_disposition(self, channel: int, fields: list[bytes]) -> None:
        """Outcomes of the client; those that are not settled are settled here, or by the discharge."""
        if scalar(fields[0]) is not True or len(fields) < 5:
            return
        session = self.sessions[channel]
        first = number(fields[1])
        deliveries = range(first, number(fields[2], first) + 1)
        settled = scalar(fields[3]) is True
        code, at = descriptor(fields[4])
        if code == TRANSACTIONAL:
            (name, *outcome), _ = fields_of(fields[4], at)
            code, _ = descriptor(outcome[0])
            self.transactions[scalar(name)].append(Enlisted(channel, session, deliveries, settled))
        elif not settled:
            self.settle(channel, deliveries, Encoded(fields[4]), receiver=False)
        session.outcomes[deliveries.start : deliveries.stop] = bytes((code,)) * len(deliveries)

    def on_transfer(self, channel: int, fields: list[bytes], data: bytes, payload: int, end: int) -> None:
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
            self.control(channel, link.number, body_value(data[payload:end]))
            return
        self.seen["transfers"] += 1
        if len(fields) < 5 or scalar(fields[4]) is not True:
            session.owed = range(session.owed.start if session.owed else link.number, link.number + 1)

    def answer(self, channel: int, session: Session) -> None:
        """Accept all that is owed."""
        if session.owed:
            self.settle(channel, session.owed, described(ACCEPTED, []), receiver=True)
            session.owed = range(0)

    def control(self, channel: int, delivery: int, request: bytes) -> None:
        """Declare or discharge."""
        code, at = descriptor(request)
        if code == DECLARE:
            self.seen["declared"] += 1
            name = self.seen["declared"].to_bytes(4, "big")
            self.transactions[name] = []
            state = described(DECLARED, [name])
        else:
            fields, _ = fields_of(request, at)
            self.discharge(scalar(fields[0]), failed=len(fields) > 1 and scalar(fields[1]) is True)
            state = described(ACCEPTED, [])
        self.settle(channel, range(delivery, delivery + 1), state, receiver=True)

    def discharge(self, name: object, *, failed: bool) -> None:
        """Let what was enlisted stand and settle it, or undo it."""
        self.seen["rolled back" if failed else "committed"] += 1
        for each in self.transactions.pop(name):
            if failed:
                each.session.outcomes[each.deliveries.start : each.deliveries.stop] = bytes(len(each.deliveries))
            elif not each.settled:
                self.settle(each.channel, each.deliveries, described(ACCEPTED, []), receiver=False)

    def on_detach(self, channel: int, fields: list[bytes]) -> None:
        """The feed ends with its link."""
        session, handle = self.sessions[channel], number(fields[0])
        session.inbound.pop(handle, None)
        if session.feed is not None and session.feed.handle == handle:
            session.feed = None
        self.say(0x16, handle, True, channel=channel)

    def on_end(self, channel: int, _fields: list[bytes]) -> None:
        """Its outcomes are kept for the counts."""
        self.ended.append(self.sessions.pop(channel))
        self.say(0x17, channel=channel)

    def on_close(self, _channel: int, _fields: list[bytes]) -> None:
        """Goodbye."""
        self.finished = True
        self.ended += self.sessions.values()
        self.sessions.clear()
        self.say(0x18)

    def settle(self, channel: int, deliveries: range, state: Encoded, *, receiver: bool) -> None:
        """A settled disposition."""
        self.say(0x15, receiver, deliveries.start, deliveries.stop - 1, True, state, channel=channel)

    def flow(
        self, channel: int, session: Session, handle: int, count: int, credit: int, *, drain: bool = False
    ) -> None:
        """The state of a link."""
        link = (handle, count, credit, 0, drain)
        self.say(0x13, session.received, WINDOW, session.number, WINDOW, *link, channel=channel)

    def say(self, code: int, *fields: object, channel: int = 0, kind: int = 0) -> None:
        """Write one performative."""
        self.out.append(memoryview(frame(described(code, list(fields)), channel, kind)))


if __name__ == "__main__":
    listen(AmqpServer, "AMQP 1.0")
