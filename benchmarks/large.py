"""``python -m benchmarks.large``: what Python itself makes of a large body that comes by a socket, and no client.

A body of 64 MiB costs more a MiB than one of 4 MiB, however it is put together: glibc takes a block of more than 32 MiB
from the system each time (mallopt(3), M_MMAP_THRESHOLD), and the first touch of its pages costs more than the copy into
them. So this is the most that a client in Python can reach. With both thresholds put up, as no library can do for its
application, the same code shows what is left:
``MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=2147483648 python -m benchmarks.large``
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

MIB: Final = 1 << 20
SIZES: Final = (1, 4, 16, 64)  # MiB
_READ: Final = 64 << 10
_BLOCK: Final = b"x" * MIB


def join(sock: socket.socket, size: int) -> bytes:
    """Parts, joined once."""
    parts, left = [], size
    while left:
        part = sock.recv(min(_READ, left))
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def recv_into(sock: socket.socket, size: int) -> bytearray:
    """Into one block of its size."""
    body = bytearray(size)
    view, at = memoryview(body), 0
    while at < size:
        at += sock.recv_into(view[at:], min(MIB, size - at))
    return body


def text(sock: socket.socket, size: int) -> str:
    """Joined, and the str that an application wants."""
    return join(sock, size).decode()


WAYS: Final[dict[str, Callable[[socket.socket, int], object]]] = {
    "a list, joined once": join,
    "recv_into a bytearray": recv_into,
    "joined, and a str of it": text,
}


def rate(way: Callable[[socket.socket, int], object], size: int, rounds: int) -> float:
    """MiB per second of processor of the thread that reads: the best of the rounds. ``size`` in MiB."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=_write, args=(theirs, size * (rounds + 1)))
        writer.start()
        times = []
        for _ in range(rounds + 1):
            began = time.thread_time()
            way(ours, size * MIB)
            times.append(time.thread_time() - began)
        writer.join()
    return size / min(times[1:])


def _write(sock: socket.socket, blocks: int) -> None:
    for _ in range(blocks):
        sock.sendall(_BLOCK)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each, after one that warms up (5)")
    options = parser.parse_args()
    print(f"{'MiB per second of processor':26}" + "".join(f"{size:>8} MiB" for size in SIZES) + "   64 of 4 MiB")
    for name, way in WAYS.items():
        rates = {size: rate(way, size, options.rounds) for size in SIZES}
        line = "".join(f"{each:12,.0f}" for each in rates.values())
        print(f"{name:26}{line}{rates[64] / rates[4]:14.2f}", flush=True)


if __name__ == "__main__":
    main()
