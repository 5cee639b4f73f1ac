"""One connection through ``vm://`` with one session, driven at the seam itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from tests.run.opening import open_transport

from redelivery.broker.vm import VmTransport
from redelivery.client.sync.driver import close_transport
from redelivery.model.destinations import destination
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Channel, Delivery, Flow, Link, LinkSpec, Pending, TransportOptions, Waiter

T = TypeVar("T")


def now(flow: Flow[T]) -> T:
    """Drive a flow that must not wait."""
    try:
        next(flow)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("a flow of vm:// waited")


class Events:
    """A session and a connection, as far as the transport sees them."""

    def __init__(self) -> None:
        self.inbox: deque[Delivery] = deque()
        self.waiter: Waiter = None  # type: ignore[assignment]  # made by the transport
        self.lost: list[JMSError] = []

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        self.inbox.extend(deliveries)

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        raise AssertionError(link) from error

    def on_lost(self, error: JMSError) -> None:
        self.lost.append(error)

    def on_error(self, error: JMSError) -> None:
        raise AssertionError("not expected") from error


class Client:
    """One connection with one session."""

    def __init__(self, name: str = "vmtest", **options: Any) -> None:
        self.events = Events()
        self.transport = VmTransport(TransportOptions("vm", name, **options), self.events)
        open_transport(self.transport)
        self.events.waiter = self.transport.new_waiter()
        self.channel: Channel = now(self.transport.channel(AckMode.TRANSACTED, self.events))

    def close(self) -> None:
        close_transport(self.transport)

    def abort(self) -> None:
        self.transport.abort()

    def consume(self, name: str = "q", **options: Any) -> Link:
        link = Link(LinkSpec(destination(name), **options))
        now(self.channel.attach(link))
        return link

    def send(self, *bodies: object, to: str = "q", transacted: bool = False, **stamp: object) -> list[Message]:
        sent = []
        for body in bodies:
            message = Message(body)
            message.stamp(destination=destination(to), **stamp)
            pending = None if transacted else Pending()
            self.channel.send(message, transacted=transacted, pending=pending)
            if pending is not None:
                assert pending.done
                if pending.error is not None:
                    raise pending.error
            sent.append(message)
        return sent

    def take(self) -> list[Delivery]:
        """Everything that has come, dispatched to the application."""
        taken = []
        while self.events.inbox:
            taken.append(self.events.inbox.popleft())
            self.channel.dispatched(taken[-1])
        return taken

    def bodies(self) -> list[object]:
        return [delivery.body() for delivery in self.take()]
