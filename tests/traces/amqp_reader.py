"""Reads what is left in the queues of a real broker with plain proton: independent of the client under test."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from proton import Message, SSLUnavailable, Terminus, Timeout, reactor, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption, Selector
from proton.utils import BlockingConnection

ANSWER_SECONDS = 20.0
LATE_SECONDS = 0.1  # for what a broker puts back only now
_ABSENT: Final = "amqp:not-found"
_INTERNAL: Final = ("_AMQ", "__AMQ", "JMS_", "x-", "JMSX")


class _NoTls:
    """Each `Container` would read all certificates of the machine, twice: half of the time of a short scenario."""

    def __init__(self) -> None:
        raise SSLUnavailable("not used here")


reactor.SSLConfig = _NoTls


def drain(url: str, names: Sequence[str], prefix: str) -> list[list[dict[str, Any]]]:
    """What is left in each of these queues, which is taken away. ``prefix``: of a queue's name at this broker."""
    reader = _Reader(url, [prefix + name for name in names])
    Container(reader).run()
    assert reader.unread == 0, f"{reader.unread} of {', '.join(names)} cannot be read{reader.refusal}"
    return [[_as_recorded(each, prefix, flag=reader.flag) for each in reader.found[prefix + name]] for name in names]


def empty(url: str, name: str, selector: str | None = None) -> None:
    """Take away all that is there, or that is selected; our own client would release what has expired.

    For a queue of which several take at once: `drain` waits for a message of its own, which another may have taken.
    """
    connection = BlockingConnection(url, timeout=ANSWER_SECONDS)
    try:
        receiver = connection.create_receiver(name, credit=10, options=None if selector is None else Selector(selector))
        while True:
            receiver.receive(timeout=3 * LATE_SECONDS)
            receiver.accept()
    except Timeout:
        pass
    finally:
        connection.close()


class _Queue(LinkOption):  # type: ignore[misc]  # proton has no types
    """Says that the address is a queue's, for the brokers that make what is not there.

    ``lasting``: and that it outlives its links; RabbitMQ ends the session where that is not as the queue was made.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting

    def apply(self, link: Any) -> None:
        end = link.target if link.is_sender else link.source
        end.capabilities.put_object(symbol("queue"))
        if self._lasting:
            end.durability = Terminus.CONFIGURATION


class _Reader(MessagingHandler):  # type: ignore[misc]  # proton has no types
    """All that comes before a last message of ours, and soon after.

    ``flag``: the broker has no count, only whether a message was delivered before.
    """

    def __init__(self, url: str, addresses: Sequence[str]) -> None:
        super().__init__(prefetch=200)
        self.found: dict[str, list[Any]] = {address: [] for address in addresses}
        self.flag = False
        self.unread = len(self.found)
        self.refusal = ""
        self._url = url
        self._last = uuid.uuid4().hex
        self._sent: set[str] = set()
        self._sessions: dict[str, Any] = {}  # by address: where there is no such queue, its session may end with it
        self._connection: Any = None
        self._watch: Any = None

    def on_start(self, event: Any) -> None:
        options = {} if urlsplit(self._url).username else {"allowed_mechs": "ANONYMOUS"}
        self._connection = event.container.connect(self._url, reconnect=False, **options)
        self._watch = event.container.schedule(ANSWER_SECONDS, self)

    def on_connection_opened(self, event: Any) -> None:
        properties = event.connection.remote_properties or {}
        self.flag = properties.get("product") == "RabbitMQ"
        for address in self.found:
            session = self._sessions[address] = self._connection.session()
            session.open()
            event.container.create_sender(session, address, options=_Queue(lasting=self.flag))

    def on_link_error(self, event: Any) -> None:
        self._refused(event.link.remote_condition, event)

    def on_session_error(self, event: Any) -> None:
        self._refused(event.session.remote_condition, event)

    def _refused(self, condition: Any, event: Any) -> None:
        """What is not there is empty; all else is an error."""
        if condition.name == _ABSENT:
            self._is_read(event)
        else:
            self.refusal = f": {condition}"
            self.on_timer_task(event)

    def on_sendable(self, event: Any) -> None:
        address = event.sender.target.address
        if address not in self._sent:
            self._sent.add(address)
            event.sender.send(Message(self._last, priority=0, durable=True))
            options = _Queue(lasting=self.flag)
            event.container.create_receiver(self._sessions[address], address, name=address, options=options)

    def on_message(self, event: Any) -> None:
        if event.message.body == self._last:
            self._is_read(event)
        else:
            self.found[event.receiver.name].append(event.message)

    def _is_read(self, event: Any) -> None:
        self.unread -= 1
        if self.unread == 0:
            event.container.schedule(LATE_SECONDS, self)

    def on_timer_task(self, _: Any) -> None:
        self._watch.cancel()
        self._connection.close()


def _as_recorded(message: Any, prefix: str, *, flag: bool) -> dict[str, Any]:
    """In the form of the recordings. ``flag``: there is no count, only whether it was delivered before."""
    body = message.body
    seen: dict[str, Any] = {
        "body": bytes(body).decode() if isinstance(body, memoryview) else body,
        "redelivered": not message.first_acquirer if flag else message.delivery_count > 0,
        "count": message.delivery_count + 1,
        "persistent": message.durable,
        "destination": f"queue://{message.address.removeprefix(prefix)}",
    }
    if message.priority != 4:
        seen["priority"] = message.priority
    for name, value in (message.properties or {}).items():
        if name != "ref" and not name.startswith(_INTERNAL):
            seen[name] = int(value) if type(value) is not bool and isinstance(value, int) else value
    return seen
