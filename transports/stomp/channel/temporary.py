"""Temporary destinations over STOMP, as a broker's dialect has them: see `StompTemporaries`.

The wire on which they are made keeps them; their names are for all wires, also of other connections, to send to. To
consume them ActiveMQ Classic 6.3 allows that wire alone: so a session makes its own on its wire.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import cast
from uuid import uuid4

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import InvalidDestinationError, ProtocolError
from redelivery.transports.dialects.dialect import StompTemporaries
from redelivery.transports.seam import Flow, Pending, Waiter
from redelivery.transports.stomp.channel.commits import empty
from redelivery.transports.stomp.codec.control import ControlFrames
from redelivery.transports.stomp.codec.frames import encode
from redelivery.transports.stomp.connection.protocol import StompWire
from redelivery.transports.wire.threads.waiter import ThreadWaiter


class TemporaryMaker:
    """Makes those of one connection. Thread-safe."""

    def __init__(self, wire: StompWire, how: StompTemporaries) -> None:
        self._wire = wire
        self._how = how
        self._lock = threading.Lock()  # what is asked for is numbered in the order in which it leaves
        self._numbers = count(1)

    def make(self, kind: type[Destination], waiter: Waiter) -> Flow[Destination]:
        """A TemporaryQueue or TemporaryTopic.

        Raises:
            ProtocolError: the broker has not given it the name that it should have.
            JMSError: the broker refuses.
            ConnectionLostError, RequestTimeoutError: it did not answer.
        """
        router = self._wire.protocol.router
        asked = [Pending(waiter) for _ in range(2)]
        receipts = [router.expect(pending) for pending in asked]
        try:
            with self._lock:
                made, first, second = self._frames(kind, *receipts)
                self._wire.protocol.outbox.write(first + second)
            if cast(ThreadWaiter, waiter).place is not self._wire:
                self._wire.read_on_behalf()  # it is no session's, and nobody reads it
            for pending in asked:
                if not pending.done:
                    yield pending
        finally:
            for receipt in receipts:
                router.forget(receipt)
        if asked[0].error is not None:
            raise asked[0].error
        error = asked[1].error
        if isinstance(error, InvalidDestinationError):
            raise ProtocolError(f"the broker has made a {kind.__name__}, and not called it {made.name}") from error
        if error is not None:
            raise error
        return made

    def _frames(self, kind: type[Destination], made: bytes, named: bytes) -> tuple[Destination, bytes, bytes]:
        """The destination, a SUBSCRIBE and UNSUBSCRIBE that make it, and what is refused where it has another name."""
        how, number = self._how, next(self._numbers)
        topic = issubclass(kind, Topic)
        control = self._wire.protocol.control()
        session = self._wire.protocol.session
        name = f"{session}:{number}" if how.named_by_session else f"redelivery-temporary-{uuid4().hex}"
        identifier = f"temporary-{number}"
        headers = {**dict(how.headers), "receipt": made.decode()}
        subscribe = control.subscribe((how.made_topic if topic else how.made_queue) + name, identifier, headers)
        written = (how.topic if topic else how.queue) + name
        probe = _probe(control, written, named, self._wire.protocol.version) if how.named_by_session else empty(named)
        return kind(f"{kind.scheme}://{name}"), subscribe + control.unsubscribe(identifier), probe


def _probe(control: ControlFrames, destination: str, receipt: bytes, version: str) -> bytes:
    """A message to it, never committed: refused where there is none of that name."""
    transaction = f"temporary-{receipt.decode()}"
    send = {"destination": destination, "transaction": transaction, "receipt": receipt.decode()}
    begin = encode("BEGIN", {"transaction": transaction}, version=version)
    return begin + encode("SEND", send, version=version) + control.abort(transaction)
