"""Waits for a connection that is being opened, under threads: the calling thread blocks, bounded."""

from __future__ import annotations

import socket
import threading
import time

from redelivery.transports.flows import Lookup, Opening, Pause, Readable, Writable
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.polls import READABLE, WRITABLE, poller
from redelivery.transports.wire.threads.guard import interruptible, interruption_point


@interruptible
def fulfil(wish: Opening) -> None:
    """Return when it is fulfilled, or at its deadline: the flow that wished finds out which."""
    interruption_point()
    match wish:
        case Readable(where, deadline):
            _wait(where.fileno(), READABLE, deadline)
        case Writable(where, deadline):
            _wait(where.fileno(), WRITABLE, deadline)
        case Pause(seconds):
            time.sleep(seconds)
        case Lookup():
            _look_up(wish)


@interruptible
def _wait(descriptor: int, event: int, deadline: float) -> None:
    if descriptor < 0:  # closed: the next call says so
        return
    poll = poller()
    poll.register(descriptor, event)
    poll.poll(max(0.0, deadline - monotonic()) * 1000)


@interruptible
def _look_up(wish: Lookup) -> None:
    """The system's resolver knows no time-out, so it gets a thread, which may outlive us."""
    found = Lookup(wish.host, wish.port, wish.deadline)

    def ask() -> None:
        try:
            found.found = socket.getaddrinfo(wish.host, wish.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            found.problem = error if isinstance(error, OSError) else OSError(str(error))

    thread = threading.Thread(target=ask, name="redelivery-resolver", daemon=True)
    thread.start()
    thread.join(max(0.0, wish.deadline - monotonic()))
    wish.found, wish.problem = found.found, found.problem
