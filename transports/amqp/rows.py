"""Rows: steps on proton that no interrupt tears, in whichever thread, and without a hand-over to another one.

Python looks for signals between two of its own instructions. The steps of a row are calls of C functions that C code
makes one after the other, so that KeyboardInterrupt comes before the first of them or after the last, and no signal
handler runs while the lock is held. A row decides nothing: where something is not as it needs it, a step raises, and
the caller goes the long way, sheltered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import repeat, starmap
from operator import call
from typing import Any, Final, TypeAlias

from cproton_ffi import ffi, lib

from redelivery.transports.wire.sockets import Stream

Step: TypeAlias = tuple[Any, ...]  # a C function and its arguments

_SPACE: Final = 64 << 10  # bytes that leave in one write; more go the long way
_FAILED: Final = (KeyError, ValueError, OSError)  # what steps raise
_FITS: Final = range(_SPACE + 1)  # its `index` is the number itself, or raises


class Rows:
    """Those of one connection.

    Attributes:
        usable: holds an entry while they may be done: the connection is there, and nothing waits for the system to
            take it. Changed by the holder of the lock.
    """

    __slots__ = ("_begin", "_end", "_lock", "_stream", "_write", "usable")

    def __init__(self, lock: threading.Lock, transport: Any, stream: Stream) -> None:
        self._lock = lock
        self._stream = stream
        self.usable: list[bool] = []
        self._begin = (lock.acquire,), (self.usable.index, True)
        self._end = (lock.release,)
        self._write = _writing(transport, stream.send_directly or len)
        self.allow()

    def allow(self) -> None:
        """They may be done, where the stream is not TLS's. By the holder of the lock, as `forbid`."""
        if self._stream.send_directly is not None and not self.usable:
            self.usable.append(True)

    def forbid(self) -> None:
        """They may not."""
        self.usable.clear()

    def run(self, steps: tuple[Step, ...], *, write: bool) -> int | None:
        """Do them, then ``write`` what proton has to say; all as a whole, with the lock held.

        Returns:
            How many bytes are left to be written, or 0; None when a step has raised: it ends the row there.
        """
        noted: list[Any] = []
        row = (*self._begin, *steps, *self._write, self._end) if write else (*self._begin, *steps, self._end)
        try:
            noted += starmap(call, row)
        except BaseException as problem:
            if noted:  # the lock was taken
                self._lock.release()
            if isinstance(problem, _FAILED):
                return None
            raise
        if not write:
            return 0
        self._stream.owes_ack = False
        left: int = noted[-2]
        return left


def _writing(transport: Any, send: Callable[[Any], int]) -> tuple[Step, ...]:
    """The steps that send what there is: how much it is goes from one to the next in a list."""
    space = ffi.from_buffer(bytearray(_SPACE))
    size = [0]
    known = map(size.__getitem__, repeat(0))
    pending = map(lib.pn_transport_pending, repeat(transport))
    measure = map(size.__setitem__, repeat(0), map(_FITS.index, pending))
    copy = map(lib.pn_transport_peek, repeat(transport), repeat(space), known)
    take_off = map(lib.pn_transport_pop, repeat(transport), map(send, map(ffi.buffer, repeat(space), known)))
    ask = (lib.pn_transport_pending, transport)
    # asked first, since a buffer that is full grows then; and last, for what is left
    return ask, (next, measure), (next, copy), (next, take_off), ask
