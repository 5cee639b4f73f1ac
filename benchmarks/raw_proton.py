"""Raw proton as its documentation and examples show it: a Container with a MessagingHandler, a Transaction, and
BlockingConnection. Only the window of a receiver is as large as ours instead of 10, in its favour.

Every function returns what the messages took.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from proton import Event, Link, Message, symbol
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container, LinkOption
from proton.utils import BlockingConnection

from benchmarks.machine import BenchmarkError, Spent, Stopwatch
from benchmarks.ours import BODY, PATIENCE
from benchmarks.places import Place, amqp_at, existing

CREDIT = 1000


class Queue(LinkOption):  # type: ignore[misc]  # proton is an extra, and so Any
    """Says that the address is a queue, where the broker wants to know."""

    def __init__(self, capability: str | None) -> None:
        self.capability = capability

    def apply(self, link: Link) -> None:
        if self.capability:
            terminus = link.target if link.is_sender else link.source
            terminus.capabilities.put_object(symbol(self.capability))


class Handler(MessagingHandler, ABC):  # type: ignore[misc]  # proton is an extra, and so Any
    """Connects, and fails rather than waits for ever."""

    def __init__(self, place: Place, queue: str, count: int, prefetch: int, auto_accept: bool = True) -> None:
        super().__init__(prefetch=prefetch, auto_accept=auto_accept)
        self.place, self.address = place, existing(place.broker) + queue
        self.option = Queue(amqp_at(place.broker).queue_capability)
        self.count, self.done = count, 0
        self.watch = Stopwatch()
        self.failure = ""

    def on_start(self, event: Event) -> None:
        self.container = event.container
        self.connection = event.container.connect(
            self.place.url, sasl_enabled=True, allowed_mechs=mechanisms(self.place), reconnect=False
        )
        self.deadline = event.container.schedule(PATIENCE, self)
        self.watch = Stopwatch()
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Open the links."""

    def on_timer_task(self, _event: Event) -> None:
        self.fail(f"not done after {PATIENCE:.0f} s")

    def on_transport_error(self, event: Event) -> None:
        self.fail(str(event.transport.condition))

    def on_connection_error(self, event: Event) -> None:
        self.fail(str((event.link or event.connection).remote_condition))

    on_link_error = on_connection_error

    def fail(self, why: str) -> None:
        self.failure = why
        self.finish()

    def finish(self) -> None:
        """The messages are through."""
        self.spent = self.watch.stop()
        self.deadline.cancel()
        self.connection.close()

    def run(self) -> Spent:
        Container(self).run()
        if self.failure or self.done != self.count:
            raise BenchmarkError(f"raw proton, {self.address}: {self.done} of {self.count} messages. {self.failure}")
        return self.spent


class Receive(Handler):
    """simple_recv: auto_accept; reads the body and the id, or nothing."""

    def __init__(self, place: Place, queue: str, count: int, read: bool) -> None:
        super().__init__(place, queue, count, CREDIT)
        self.read = read

    def begin(self) -> None:
        self.container.create_receiver(self.connection, self.address, options=self.option)

    def on_message(self, event: Event) -> None:
        if self.read:
            message = event.message
            _ = message.id, message.body
        self.done += 1
        if self.done == self.count:
            self.finish()


class ReceiveTransacted(Handler, TransactionHandler):  # type: ignore[misc]  # proton is an extra, and so Any
    """tx_recv: credit for a batch, which is accepted in a transaction and committed."""

    def __init__(self, place: Place, queue: str, count: int, batch: int) -> None:
        super().__init__(place, queue, count, 0, auto_accept=False)
        self.batch, self.current = batch, 0

    def begin(self) -> None:
        self.receiver = self.container.create_receiver(self.connection, self.address, options=self.option)
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Event) -> None:
        self.receiver.flow(self.batch)
        self.transaction = event.transaction

    def on_message(self, event: Event) -> None:
        message = event.message
        _ = message.id, message.body
        self.transaction.accept(event.delivery)
        self.current += 1
        if self.current == self.batch:
            self.transaction.commit()

    def on_transaction_committed(self, _event: Event) -> None:
        self.done += self.current
        self.current = 0
        if self.done < self.count:
            self.container.declare_transaction(self.connection, handler=self)
        else:
            self.finish()

    def on_transaction_declare_failed(self, _event: Event) -> None:
        self.fail("no transaction, or not committed")

    on_transaction_commit_failed = on_transaction_declare_failed


class Send(Handler):
    """simple_send, with a window: sends while there is credit, counts what is accepted."""

    def __init__(self, place: Place, queue: str, count: int, window: int) -> None:
        super().__init__(place, queue, count, 0)
        self.window, self.sent = window, 0

    def begin(self) -> None:
        self.container.create_sender(self.connection, self.address, options=self.option)

    def on_sendable(self, event: Event) -> None:
        sender = event.sender
        while sender.credit and self.sent < self.count and self.sent - self.done < self.window:
            self.sent += 1
            sender.send(Message(id=str(self.sent), body=BODY, durable=True))

    def on_accepted(self, event: Event) -> None:
        self.done += 1
        if self.done == self.count:
            self.finish()
        else:
            self.on_sendable(event)

    def on_rejected(self, _event: Event) -> None:
        self.fail("a message was refused")


def played(handler: Callable[..., Handler], **options: Any) -> Callable[[Place, str, int], Spent]:
    """Return what runs such a handler."""
    return lambda place, queue, count: handler(place, queue, count, **options).run()


def send_blocking(place: Place, queue: str, count: int) -> Spent:
    """Persistent, one by one: BlockingConnection."""
    option = Queue(amqp_at(place.broker).queue_capability)
    connection = BlockingConnection(place.url, timeout=PATIENCE, allowed_mechs=mechanisms(place))
    try:
        sender = connection.create_sender(existing(place.broker) + queue, options=option)
        watch = Stopwatch()
        for number in range(count):
            sender.send(Message(id=str(number), body=BODY, durable=True))
        return watch.stop()
    finally:
        connection.close()


def mechanisms(place: Place) -> str:
    """Return the way to log in."""
    return "PLAIN" if urlsplit(place.url).username else "ANONYMOUS"
