"""A peer that follows a script frame by frame, and the sessions that talk to it over AMQP 1.0.

The frames are made by hand, so that a script can also say what no library would.
"""

from __future__ import annotations

import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("proton")  # with its reason, the files are skipped that need this one

import proton
from proton import Described, symbol
from tests.transports import scripted
from tests.transports.amqp_frames import (
    ACCEPTED,
    FRAMES,
    HEADER,
    NUMBERS,
    SASL_HEADER,
    Frame,
    code,
    declared,
    decode,
    error,
    frame_bytes,
)
from tests.transports.scripted import TIMEOUT

_NO_END = 0x7FFFFFFF


@dataclass
class PeerEnd:
    """The peer's end of one connection.

    Attributes:
        window: transfers that each session may send in all.
    """

    sock: socket.socket
    taken: list[Frame] = field(default_factory=list)
    flows: list[Frame] = field(default_factory=list)
    window: int = _NO_END

    def __post_init__(self) -> None:
        self.sock.settimeout(TIMEOUT)
        self._data = bytearray()
        self._ids: Counter[int] = Counter()  # of the next delivery, by channel
        self._attached: dict[tuple[int, int], Frame] = {}
        self._ended: set[tuple[int, int | None]] = set()  # a link's channel and handle, or a session's channel
        self._probes: set[tuple[int, int]] = set()  # links by which the client looks for a queue: channel and handle

    # reading

    def read(self, size: int) -> bytes:
        while len(self._data) < size:
            data = self.sock.recv(1 << 18)
            if not data:
                raise ConnectionError("the client has closed")
            self._data += data
        taken = bytes(self._data[:size])
        del self._data[:size]
        return taken

    def _read_frame(self) -> Frame | None:
        size = int.from_bytes(self.read(4), "big")
        rest = self.read(size - 4)
        if size == 8:
            return None  # a sign of life
        described, length = decode(rest[4:4096])
        text = FRAMES[code(described)].split()
        names = [each.partition(":")[0] for each in text[1:]]
        values = [int(each) if type(each) in NUMBERS else each for each in described.value]
        fields = dict(zip(names, [*values, *[None] * len(names)], strict=False))
        return Frame(text[0], int.from_bytes(rest[2:4], "big"), fields, rest[4 + length :])

    def take(self, *names: str) -> Frame:
        """The next frame, which must be one of these. Flows are only kept, a begin is answered, unless asked for."""
        while True:
            frame = self._read_frame()
            if frame is None:
                continue
            if frame.name == "flow":
                self.flows.append(frame)
            if self._answer_probe(frame):
                continue
            if frame.name not in names:
                if frame.name == "flow":
                    continue
                if frame.name == "begin":
                    self.begun(frame)
                    continue
            self.taken.append(frame)
            assert not names or frame.name in names, f"{frame.name} came, not {names}: {frame}"
            return frame

    def _answer_probe(self, frame: Frame) -> bool:
        """A link that looks whether there is a queue with other arguments: there is none."""
        if frame.name == "attach" and str(frame["name"]).startswith("probe-"):
            self.confirm(frame)
            self._probes.add((frame.channel, int(frame["handle"])))
            return True
        if frame.name == "detach" and (probe := (frame.channel, int(frame["handle"]))) in self._probes:
            self._probes.remove(probe)
            self.send("detach", frame.channel, handle=frame["handle"], closed=True)
            return True
        return False

    def nothing(self, seconds: float = 0.1) -> None:
        """Nothing comes for so long but signs of life, flows and begins."""
        self.sock.settimeout(seconds)
        try:
            frame = self.take()
        except TimeoutError:
            return
        finally:
            self.sock.settimeout(TIMEOUT)
        raise AssertionError(frame)

    # writing

    def write(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send(self, kind: str, channel: int = 0, payload: bytes = b"", /, **fields: Any) -> None:
        self.write(frame_bytes(kind, channel, payload, **fields))

    # the login

    def header(self, expected: bytes = HEADER) -> None:
        assert self.read(8) == expected
        self.write(expected)

    def sasl(self, *mechanisms: str, outcome: int = 0) -> Frame:
        """Offer mechanisms, take the choice, and answer it; the sasl-init."""
        self.header(SASL_HEADER)
        names = [symbol(each) for each in mechanisms]
        self.send("sasl-mechanisms", mechanisms=proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *names))
        init = self.take("sasl-init")
        self.send("sasl-outcome", code=outcome)
        return init

    def log_in(
        self,
        product: str = "ActiveMQ",
        version: str | None = None,
        mechanisms: Iterable[str] = ("ANONYMOUS", "PLAIN"),
        offered: Iterable[str] = (),
        **fields: Any,
    ) -> Frame:
        """The client's open, after everything that comes before it."""
        self.sasl(*mechanisms)
        self.header()
        frame = self.take("open")
        version = version or ("3.10.8" if product == "RabbitMQ" else "5.18.3")
        reported = {symbol("product"): product, symbol("version"): version} if product else {}
        fields.setdefault("offered_capabilities", [symbol(each) for each in offered] or None)
        self.send("open", properties=reported, **{"container_id": "peer", **fields})
        return frame

    # sessions and links

    def begun(self, frame: Frame) -> Frame:
        self.send(
            "begin",
            frame.channel,
            remote_channel=frame.channel,
            next_outgoing_id=0,
            incoming_window=self.window,
            outgoing_window=_NO_END,
        )
        self._ids[frame.channel] = 0
        self._ended = {ended for ended in self._ended if ended[0] != frame.channel}
        return frame

    def attached(self, credit: int = 1000) -> Frame:
        """Take an attach and agree; a sender gets credit."""
        frame = self.take("attach")
        self.confirm(frame)
        if not frame["role"]:
            self.give(frame, credit)
        return frame

    def confirm(self, frame: Frame, **changed: Any) -> None:
        mirrored = ("name", "handle", "snd_settle_mode", "rcv_settle_mode", "source", "target")
        fields = {each: frame[each] for each in mirrored}
        if frame["role"]:
            fields["initial_delivery_count"] = 0
        self._attached[frame.channel, int(frame["handle"])] = frame
        self._ended.discard((frame.channel, int(frame["handle"])))
        self.send("attach", frame.channel, role=not frame["role"], **{**fields, **changed})

    def give(self, link: Frame, credit: int, delivery_count: int = 0) -> None:
        """Credit for a sender."""
        self._flow(link, link_credit=credit, delivery_count=delivery_count)

    def open_window(self, channel: int) -> None:
        """The session may send on."""
        self.window = _NO_END
        fields = {"next_incoming_id": 0, "incoming_window": _NO_END, "next_outgoing_id": 0, "outgoing_window": _NO_END}
        self.send("flow", channel, **fields)

    def drained(self, link: Frame, delivery_count: int) -> None:
        """All that a receiver has asked for, as far as there was any, has come."""
        self._flow(link, link_credit=0, delivery_count=delivery_count, drain=True)

    def _flow(self, link: Frame, **fields: Any) -> None:
        self.send(
            "flow",
            link.channel,
            next_incoming_id=0,
            incoming_window=self.window,
            next_outgoing_id=self._ids[link.channel],
            outgoing_window=_NO_END,
            handle=link["handle"],
            **fields,
        )

    def refuse(self, frame: Frame, condition: str, description: str = "") -> None:
        """Refuse an attach as the standard says: without a terminus, then detached."""
        self.confirm(frame, **{"source" if frame["role"] else "target": None})
        self.detach(frame, condition, description)

    def detach(self, link: Frame, condition: str | None = None, description: str = "", closed: bool = True) -> None:
        reported = None if condition is None else error(condition, description)
        self._ended.add((link.channel, int(link["handle"])))
        self.send("detach", link.channel, handle=link["handle"], closed=closed, error=reported)

    def end_session(self, channel: int, condition: str, description: str = "") -> None:
        self._ended.add((channel, None))
        self.send("end", channel, error=error(condition, description))

    # messages

    def message(self, link: Frame, number: int, body: bytes = b"x", count: int = 0, **transfer: Any) -> int:
        """A message of bytes with the id "m" and its number; the delivery's id."""
        identifier = b"m%d" % number
        header = b"\x00\x53\x70\xc0\x07\x05\x40\x40\x40\x40\x52%c" % count
        properties = b"\x00\x53\x73\xc0%c\x01\xa1%c%b" % (len(identifier) + 3, len(identifier), identifier)
        data = b"\x00\x53\x75\xb0%b" % len(body).to_bytes(4, "big")
        return self.transfer(link, b"".join((header, properties, data, body)), **transfer)

    def transfer(self, link: Frame, payload: bytes, frame_size: int = 1 << 20, **fields: Any) -> int:
        """A message as it is, in as many frames as it needs."""
        identifier = self._ids[link.channel]
        self._ids[link.channel] += 1
        fields = {"delivery_id": identifier, "delivery_tag": b"%d" % identifier, "message_format": 0, **fields}
        step = frame_size - 200
        for start in range(0, max(1, len(payload)), step):
            more = start + step < len(payload) or None
            part = payload[start : start + step]
            self.send("transfer", link.channel, part, handle=link["handle"], **{"more": more, **fields})
            fields = {}
        return identifier

    def settle(self, transfer: Frame, state: Described | None = ACCEPTED) -> Frame:
        """The outcome of a message that the client has sent."""
        self.send("disposition", transfer.channel, role=True, first=transfer["delivery_id"], settled=True, state=state)
        return transfer

    def whole(self) -> Frame:
        """A message that may be in several frames: the first, with all of the payload."""
        first = frame = self.take("transfer")
        parts = [frame.payload]
        while frame["more"]:
            frame = self.take("transfer")
            parts.append(frame.payload)
        first.payload = b"".join(parts)
        return first

    # transactions

    def declare(self, transaction: bytes) -> Frame:
        """Take a declare, and answer it by this id."""
        frame = self.take("transfer")
        assert frame.order == ("declare",)
        return self.settle(frame, declared(transaction))

    def discharge(self, transaction: bytes, *, fail: bool = False, state: Described = ACCEPTED) -> Frame:
        """Take a discharge, and answer it."""
        frame = self.take("transfer")
        assert frame.order == ("discharge", transaction, fail), frame.order
        return self.settle(frame, state)

    def coordinated(self, transaction: bytes) -> Frame:
        """Take the attach to the coordinator, and the first declare."""
        link = self.attached()
        assert link.address == "coordinator"
        self.declare(transaction)
        return link

    # the end

    def gone(self, name: str) -> None:
        """Take an end or a detach, after the settlements of what will have no answer."""
        while self.take("disposition", name).name == "disposition":
            pass

    def greet(self) -> None:
        """Let a client in, which then leaves."""
        self.log_in()
        self.goodbye()

    def goodbye(self) -> None:
        """Agree to every end until the client has gone."""
        try:
            while True:
                self.agree_to_end(self.take())
        except OSError:
            return

    def agree_to_end(self, frame: Frame) -> None:
        """Answer, unless it answers an end of ours: a second one would break the standard's rules."""
        if frame.name == "detach" and (ended := (frame.channel, int(frame["handle"]))) in self._ended:
            self._ended.remove(ended)
        elif frame.name == "end" and (frame.channel, None) in self._ended:
            self._ended.remove((frame.channel, None))
        elif frame.name == "detach":
            self.send("detach", frame.channel, handle=frame["handle"], closed=frame["closed"])
        elif frame.name in ("end", "close"):
            self.send(frame.name, frame.channel)


Script = Callable[[PeerEnd], None]


class ScriptedPeer(scripted.ScriptedBroker):
    """Listens on a port of its own; each connection follows the script. Leaving raises what a script raised."""

    ends: list[PeerEnd]  # type: ignore[assignment]  # of this protocol

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        def follow(end: scripted.BrokerEnd) -> None:
            mine = PeerEnd(end.sock)
            self.peers.append(mine)
            script(mine)

        self.peers: list[PeerEnd] = []
        super().__init__(follow, tls)
