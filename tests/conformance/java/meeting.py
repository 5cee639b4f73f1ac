"""Us and a Java client on one broker."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import Any

from tests.conformance.java.cases import Header
from tests.conformance.java.client import JavaClients, JavaMessage
from tests.conformance.java.sides import Side
from tests.conformance.stage import SOON

import redelivery
from redelivery import AckMode, Connection, Message


class Meeting:
    """``queue`` is the test's own; our connections are closed after the test, Java's are kept."""

    def __init__(self, side: Side, url: str, java: JavaClients, java_url: str, opened: ExitStack) -> None:
        self.side = side
        self.queue = f"java.{uuid.uuid4().hex[:12]}"
        self.java = java
        self.java_url = java_url
        self._url = url
        self._opened = opened
        self._connection: Connection | None = None
        if side.made_by_us:
            self._make_queue()

    def _make_queue(self) -> None:
        """By use: RabbitMQ's session stops answering, at times, where a consumer is closed as soon as it is there."""
        with redelivery.connect(self._url) as connection:
            session = connection.session(AckMode.AUTO)
            session.producer(self.queue).send("to make it")
            assert session.consumer(self.queue).receive(timeout=SOON) is not None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.connect()
        return self._connection

    def connect(self, **options: Any) -> Connection:
        """One more connection, with options of its own."""
        return self._opened.enter_context(redelivery.connect(self._url, **options))

    def we_send(self, message: Message, **options: Any) -> Message:
        """Send to the queue; the message as sent."""
        with self.connection.session(AckMode.AUTO) as session:
            return session.producer(self.queue).send(message, **options)

    def separate(self) -> Meeting:
        """The same with another queue, and another connection of ours: for what may end it."""
        return Meeting(self.side, self._url, self.java, self.java_url, self._opened)

    def we_receive(self) -> Message:
        return self.we_receive_all(1)[0]

    def we_receive_all(self, count: int) -> list[Message]:
        """The next ones, in order."""
        session = self.connection.session(AckMode.AUTO)
        consumer = session.consumer(self.queue)
        found = [consumer.receive(timeout=SOON) for _ in range(count)]
        session.close()
        messages = [each for each in found if each is not None]
        assert len(messages) == count, f"{len(messages)} of {count} came from Java within {SOON} s each"
        return messages

    def java_sends(self, message: JavaMessage) -> str | None:
        """Send to the queue; its JMSMessageID."""
        return self.java.send(self.java_url, self.javas_queue, message)

    def java_receives(self, queue: str = "") -> JavaMessage:
        return self.java_receives_all(1, queue)[0]

    def java_receives_all(self, count: int, queue: str = "") -> list[JavaMessage]:
        """The next ones, in order."""
        where = self.side.attached(queue or self.queue)
        found = self.java.receive(self.java_url, where, count)
        assert len(found) == count, f"{len(found)} of {count} came to Java from {where}"
        return found

    @property
    def javas_queue(self) -> str:
        """To attach to."""
        return self.side.attached(self.queue)

    @property
    def impatient(self) -> str:
        """The URL of a Java connection of its own that gives up after a second, for what is never answered."""
        return f"{self.java_url}?jms.requestTimeout=1000&jms.closeTimeout=1000"

    def in_java(self, header: Header) -> Any:
        """The value of a header as Java has it."""
        return self.side.javas(header.value) if header.ours == "reply_to" else header.in_java
