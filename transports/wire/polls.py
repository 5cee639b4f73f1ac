"""Waits for sockets by `select.poll`; where the system has none, which is Windows, by `select.select` in its form."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import Final, Protocol

from redelivery.model.errors import UnsupportedError
from redelivery.transports.wire.clock import monotonic

READABLE: Final[int] = getattr(select, "POLLIN", 1)
WRITABLE: Final[int] = getattr(select, "POLLOUT", 4)
CLOSED_BY_PEER: Final[int] = getattr(select, "POLLRDHUP", 0)  # Linux has it
_AT_ONCE: Final = 500  # sockets; Windows takes 512
_LOOK: Final = 0.2  # seconds; Ctrl-C does not end a `select.select` on Windows, so it waits again


class Poller(Protocol):
    """The part of `select.poll` that is used."""

    def register(self, descriptor: int, events: int, /) -> object:
        """Look at it from now on."""

    def poll(self, milliseconds: float | None, /) -> list[tuple[int, int]]:
        """Wait until a descriptor is ready, closed included, and say which are."""


def poller() -> Poller:
    """Make one; asked anew each time, as gevent puts its own into `select`."""
    return select.poll() if hasattr(select, "poll") else Selecting()


class Selecting:
    """A `Poller` by `select.select`."""

    def __init__(self) -> None:
        self._registered: list[tuple[int, int]] = []

    def register(self, descriptor: int, events: int, /) -> None:
        """See `Poller.register`."""
        try:
            select.select([descriptor], [], [], 0)
        except ValueError as error:  # not Windows, and a large number
            raise UnsupportedError(
                f"too many open files: without select.poll none is waited for whose number is {descriptor}"
            ) from error
        except OSError:
            pass  # closed: `poll` says so
        self._registered.append((descriptor, events))

    def poll(self, milliseconds: float | None, /) -> list[tuple[int, int]]:
        """See `Poller.poll`."""
        until = float("inf") if milliseconds is None else monotonic() + milliseconds / 1000
        groups = [self._registered[at : at + _AT_ONCE] for at in range(0, len(self._registered), _AT_ONCE)]
        while True:
            left = max(0.0, until - monotonic())
            found = [each for group in groups for each in _ready(group, min(left, _LOOK / len(groups)))]
            if found or not left:
                return found


def _ready(group: list[tuple[int, int]], seconds: float) -> Iterator[tuple[int, int]]:
    inputs = [descriptor for descriptor, events in group if events & READABLE]
    outputs = [descriptor for descriptor, events in group if events & WRITABLE]
    try:
        readable, writable, failed = select.select(inputs, outputs, outputs, seconds)
    except OSError:  # of one that is closed
        yield from (each for each in group if _is_closed(each[0]))
        return
    yield from ((descriptor, READABLE) for descriptor in readable)
    yield from ((descriptor, WRITABLE) for descriptor in {*writable, *failed})  # a failed connect: in the third only


def _is_closed(descriptor: int) -> bool:
    try:
        select.select([descriptor], [], [], 0)
    except OSError:
        return True
    return False
