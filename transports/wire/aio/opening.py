"""Waits for a connection that is being opened, under an event loop: the task waits, bounded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redelivery.model.errors import UnsupportedError
from redelivery.transports.flows import Lookup, Opening, Pause, Readable, Writable
from redelivery.transports.wire.clock import monotonic


async def fulfil(wish: Opening) -> None:
    """Return when it is fulfilled, or at its deadline: the flow that wished finds out which."""
    loop = asyncio.get_running_loop()
    match wish:
        case Readable(where, deadline):
            await _ready(loop.add_reader, loop.remove_reader, where.fileno(), deadline)
        case Writable(where, deadline):
            await _ready(loop.add_writer, loop.remove_writer, where.fileno(), deadline)
        case Pause(seconds):
            await asyncio.sleep(seconds)
        case Lookup():
            await _look_up(loop, wish)


def watch_by(add: Callable[..., Any], descriptor: int, callback: Callable[..., object], *arguments: object) -> None:
    """Watch a socket by ``add_reader`` or ``add_writer`` of a loop; raises UnsupportedError where it cannot."""
    try:
        add(descriptor, callback, *arguments)
    except NotImplementedError:
        raise UnsupportedError(
            f"asyncio's {type(asyncio.get_running_loop()).__name__} cannot watch sockets: use"
            " asyncio.Runner(loop_factory=asyncio.SelectorEventLoop); vm:// needs none"
        ) from None


async def _ready(add: Callable[..., Any], remove: Callable[[int], object], descriptor: int, deadline: float) -> None:
    if descriptor < 0:  # closed: the next call says so
        return
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not ready.done():
            ready.set_result(None)

    watch_by(add, descriptor, end)
    timer = loop.call_later(max(0.0, deadline - monotonic()), end)
    try:
        await ready
    finally:
        timer.cancel()
        remove(descriptor)


async def _look_up(loop: asyncio.AbstractEventLoop, wish: Lookup) -> None:
    """The loop's resolver, which is a thread and knows no time-out; an address needs none."""
    try:
        with suppress(OSError):
            wish.found = socket.getaddrinfo(wish.host, wish.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            return
        async with asyncio.timeout(max(0.0, wish.deadline - monotonic())):
            wish.found = await loop.getaddrinfo(wish.host, wish.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        return  # nothing was found in time
    except OSError as error:
        wish.problem = error
    except UnicodeError as error:
        wish.problem = OSError(str(error))
