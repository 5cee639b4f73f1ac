"""What Python itself takes for a message: loops over a bare socket against the peer of `in_thread`, and no client."""

from __future__ import annotations

import gc
import select
import socket
import time
from collections.abc import Callable
from typing import Final

from benchmarks.in_thread import PARTS, Peer

_READ: Final = 256 << 10
_BODY: Final = "x" * 1024
_SEND: Final = b"SEND\ndestination:/queue/x\npersistent:true\nreceipt:%d\n\n%b\0"


class Bare:
    """A socket that is connected to the peer, which acts where this side would wait."""

    def __init__(self) -> None:
        self.peer = Peer()
        self._socket = socket.create_connection(("127.0.0.1", self.peer.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self._rest = b""
        self.send = self._socket.sendall
        self.send(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
        self.frames()

    def frames(self) -> list[bytes]:
        """The whole frames of the next read, without their NUL."""
        began = time.thread_time()
        if not self._readable.poll(0):
            self.peer.act()
        self.peer.spent += time.thread_time() - began
        self._readable.poll(1000)
        *found, self._rest = (self._rest + self._socket.recv(_READ)).split(b"\0")
        return found

    def close(self) -> None:
        """Both ends."""
        self._socket.close()
        self.peer.close()


def floor(kind: str, messages: int) -> list[float]:
    """Microseconds of processor per message, of each part of the run. ``kind``: one of `KINDS`."""
    bare = Bare()
    try:
        run = KINDS[kind](bare)
        return [_timed(run, messages // PARTS, bare.peer) for _ in range(PARTS + 1)][1:]
    finally:
        bare.close()


def _timed(run: Callable[[int], int], messages: int, peer: Peer) -> float:
    gc.collect()
    began, spent = time.thread_time(), peer.spent
    done = run(messages)
    return (time.thread_time() - began - (peer.spent - spent)) / done * 1e6


def _receiving(ack: str) -> Callable[[Bare], Callable[[int], int]]:
    def prepare(bare: Bare) -> Callable[[int], int]:
        bare.send(b"SUBSCRIBE\ndestination:/queue/x\nid:1\nack:client-individual\n\n\0")

        def run(messages: int) -> int:
            done = 0
            while done < messages:
                acks = []
                for frame in bare.frames():
                    _read(frame)
                    done += 1
                    if ack == "none":
                        continue
                    at = frame.find(b"\nack:") + 5
                    written = b"ACK\nid:%b\n\n\0" % frame[at : frame.find(b"\n", at)]
                    if ack == "each":
                        bare.send(written)
                    else:
                        acks.append(written)
                if acks:
                    bare.send(b"".join(acks))
            return done

        return run

    return prepare


def _read(frame: bytes) -> tuple[str, str]:
    """Message id and body."""
    at = frame.find(b"\nmessage-id:") + 12
    identifier = frame[at : frame.find(b"\n", at)].replace(b"\\c", b":").decode()
    return identifier, frame[frame.find(b"\n\n", at) + 2 :].decode()


def _sending(window: int) -> Callable[[Bare], Callable[[int], int]]:
    def prepare(bare: Bare) -> Callable[[int], int]:
        def run(messages: int) -> int:
            for first in range(0, messages, window):
                bare.send(b"".join([_SEND % (first + number, _BODY.encode()) for number in range(window)]))
                answered = 0
                while answered < window:
                    answered += len(bare.frames())
            return -(-messages // window) * window

        return run

    return prepare


KINDS: Final[dict[str, Callable[[Bare], Callable[[int], int]]]] = {
    "an ACK each": _receiving("each"),
    "ACKs together": _receiving("together"),
    "no ACK": _receiving("none"),
    "send, window 100": _sending(100),
    "send, one by one": _sending(1),
}
