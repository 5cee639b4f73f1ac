"""``python -m benchmarks.large``: a large body that comes by a socket, in Python without a client.

A body of 64 MiB costs more a MiB than one of 4 MiB, however it is put together: glibc takes a block of more than 32 MiB
from the system each time (mallopt(3), M_MMAP_THRESHOLD), and the first touch of its pages costs more than the copy into
them. So this is the most that a client in Python can reach. With both thresholds put up, as no library can do for its
application, the same code shows what is left:
``MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=2147483648 python -m benchmarks.large``
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Final

MIB: Final = 1 << 20
_READ: Final = 64 << 10


def text(sock: socket.socket, size: int) -> str:
    """Receive parts, join them once, and return the str that an application wants."""
    parts, left = [], size
    while left:
        part = sock.recv(min(_READ, left))
        parts.append(part)
        left -= len(part)
    return b"".join(parts).decode()


def rate(size: int, rounds: int) -> float:
    """Return MiB per second of processor of the thread that reads: the best of the rounds. ``size`` in MiB."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=theirs.sendall, args=(b"x" * (size * (rounds + 1) * MIB),))
        writer.start()
        times = []
        for _ in range(rounds + 1):
            began = time.thread_time()
            body = text(ours, size * MIB)
            times.append(time.thread_time() - began)
            assert len(body) == size * MIB
        writer.join()
    return size / min(times[1:])


if __name__ == "__main__":
    rates = {size: rate(size, 5) for size in (1, 4, 16, 64)}
    print("MiB per second of processor:", ", ".join(f"{size} MiB {each:,.0f}" for size, each in rates.items()))
    print(f"64 MiB of 4 MiB: {rates[64] / rates[4]:.2f}")
