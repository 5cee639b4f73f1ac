"""proton as a protocol engine: bytes in, events, bytes out. No socket, no clock, no thread, no Container.

1. One thread at a time: the owner of an engine holds a lock around every call, and around every call of proton on
   what belongs to it. The C library is not thread-safe, and Python's lock is released inside of it.
2. Endpoints are set up through proton's classes. What happens for every message calls the C library beneath them
   (`cproton_ffi.lib`): the classes make a wrapper for each event, which costs more than all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import proton
from cproton_ffi import ffi, lib

from redelivery.model.errors import ProtocolError

Event: TypeAlias = Any  # a pn_event_t of the C library
Handlers: TypeAlias = Mapping[int, Callable[[Event], None]]  # by event type, such as lib.PN_DELIVERY

_NOTHING: Final = ffi.NULL
_WRITE: Final = 64 << 10  # bytes up to which one buffer serves all writes
_FULL: Final = 8 << 10  # bytes of proton's own buffer, at first: when it is full, asking again makes it grow
_LEAST: Final = 512  # bytes of its own buffer, at least: with fewer in it it has said all that it had to say


class _Unowned:
    # Does nothing, see `unowned`, and is no Python function: what a signal's handler raises in one, Python drops.
    __del__ = bool


class _Session(_Unowned, proton.Session):  # type: ignore[misc, unused-ignore]  # an extra that may be absent
    pass


class _Sender(_Unowned, proton.Sender):  # type: ignore[misc, unused-ignore]  # as above
    pass


class _Receiver(_Unowned, proton.Receiver):  # type: ignore[misc, unused-ignore]  # as above
    pass


_KINDS: Final = {proton.Session: _Session, proton.Sender: _Sender, proton.Receiver: _Receiver}


def unowned(endpoint: Any) -> Any:
    """proton's object for a session or link, without a share in it: the C library alone decides how long that lives.

    It lives until it is freed, or its connection goes. If the objects had a share, the order in which Python gives
    them up would matter: a session that goes frees its links in the C library, those with an object left as well,
    and that object then frees them again (proton 0.40).
    """
    endpoint.__class__ = _KINDS[type(endpoint)]
    lib.pn_decref(endpoint._impl)
    return endpoint


class AmqpEngine:
    """One connection's protocol state.

    Args:
        server: whether it is the side that was connected to.

    Attributes:
        raw: the C library's transport.
    """

    def __init__(self, *, server: bool = False) -> None:
        self.connection: Any = proton.Connection()
        self.transport: Any = proton.Transport(proton.Transport.SERVER if server else proton.Transport.CLIENT)
        self._collector: Any = proton.Collector()
        self.connection.collect(self._collector)
        self._events = self._collector._impl
        self.raw = self.transport._impl
        self._buffer = bytearray(_WRITE)
        self._view = memoryview(self._buffer)
        self._space: Any = ffi.from_buffer(self._buffer)
        self._left = self._view[:0]  # what was taken from proton, and not written yet

    def bind(self) -> None:
        """Begin, once SASL and the connection's own properties are set."""
        self.transport.bind(self.connection)

    def receive(self, data: bytes) -> None:
        """Take what the peer has sent; then ask for the events.

        Raises:
            ProtocolError: it is not AMQP, or breaks its rules.
        """
        source = ffi.from_buffer(data)
        done, size = 0, len(data)
        while done < size:  # it takes at most pn_transport_capacity() at a time
            taken = lib.pn_transport_push(self.raw, source + done, size - done)
            if taken <= 0:
                raise ProtocolError(self.failure or "it takes no more input")
            done += taken

    def dispatch(self, handlers: Handlers) -> None:
        """Call the handler of each event that has one, in order."""
        events = self._events
        while True:
            event = lib.pn_collector_peek(events)
            if event == _NOTHING:
                return
            handler = handlers.get(lib.pn_event_type(event))
            if handler is not None:
                handler(event)
            lib.pn_collector_pop(events)

    def output(self) -> tuple[memoryview, bool]:
        """The bytes to be written next (empty: none), and whether there are more. Call `written` with how many were.

        It is valid until the next call.
        """
        if self._left:
            return self._left, True
        size = lib.pn_transport_pending(self.raw)
        if size <= 0:
            return self._left, False
        # All that there is, at once: proton moves what is left inside, each time, and a frame may be a whole message.
        if size >= _FULL:
            while size < (grown := lib.pn_transport_pending(self.raw)):
                size = grown
        if size <= _WRITE:
            lib.pn_transport_peek(self.raw, self._space, size)
            self._left = self._view[:size]
        else:
            data = bytearray(size)
            lib.pn_transport_peek(self.raw, ffi.from_buffer(data), size)
            self._left = memoryview(data)
        lib.pn_transport_pop(self.raw, size)
        return self._left, size >= _LEAST

    def written(self, size: int) -> None:
        """Note that so many bytes of the last `output` are on their way."""
        self._left = self._left[size:]

    @property
    def closed(self) -> bool:
        """Nothing more can be written."""
        return not self._left and bool(lib.pn_transport_pending(self.raw) < 0)

    @property
    def failure(self) -> str | None:
        """The reason why the transport failed, in its own words."""
        condition = self.transport.condition
        return None if condition is None else f"{condition.name}: {condition.description}"

    def tick(self, now: float) -> float | None:
        """Let time pass (monotonic seconds); when to call it again, None for never. Empty frames may be there to write.

        Before the peer's open it answers None: ask again then.
        """
        due: float = self.transport.tick(now)
        return due or None

    def dispose(self) -> None:
        """Give the memory back, now: proton's objects must not be left to the garbage collector of another thread.

        Nor should the buffer wait for that collector: in a large program it comes after hundreds of lost connections.
        """
        self.transport = None
        self._collector = None
        self.connection = None
        self._buffer, self._space = bytearray(), None
        self._left = self._view = memoryview(b"")
