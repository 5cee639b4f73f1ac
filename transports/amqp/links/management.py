"""Queues at the broker's management node, where an address makes none: looked up, and made where there is none.

A request is a message to the node, its answer one that comes back on the other link of a pair (AMQP management by
HTTP's methods, as RabbitMQ 4 has it at ``/management``). Nobody waits here: an answer goes on by a callback, under the
connection's lock, on the thread that reads. So a link opens when its queue is there, and keeps what is sent until then.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote

import proton
from cproton_ffi import ffi, lib

from redelivery.model.errors import InvalidDestinationError, JMSError
from redelivery.transports.amqp.codec.encoding import write, write_list, write_map, write_text
from redelivery.transports.amqp.links.dispositions import ACCEPTED
from redelivery.transports.amqp.links.endpoints import Endpoint, Found, LinkTable
from redelivery.transports.amqp.links.senders import Parts, Sender
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.management.answers import ManagementAnswer
from redelivery.transports.seam import Flow, Pending, Waiter

Body: TypeAlias = Mapping[str, Any] | None
Writing: TypeAlias = Callable[[], AbstractContextManager[None]]
_NODE: Final = "/management"
_BACK: Final = "$me"  # how a request names the link that its answer comes by
_TOPICS: Final = "amq.topic"  # the exchange
_CREDIT: Final = 100
_numbers: Final = count(1)


class ManagementNode:
    """The management node of one connection; for the holder of the connection's lock where nothing else is said."""

    def __init__(self, table: LinkTable) -> None:
        self._table = table
        self._answers: Answers | None = None
        self._requests: RequestLink | None = None
        self.queues: dict[str, Mapping[str, Any]] = {}  # what was found, by name

    def ask(self, method: str, path: str, body: Body, then: Callable[[ManagementAnswer | JMSError], None]) -> None:
        """Send a request; ``then`` is called once, with the answer or with why none came."""
        number = str(next(_numbers))
        answers, requests = self._links()
        answers.asked[number] = then
        requests.send((_encode(number, method, path, body),), None, Pending(None))

    def request(self, method: str, path: str, body: Body, writing: Writing, waiter: Waiter) -> Flow[ManagementAnswer]:
        """The same as a flow, for who does not hold the connection; ``writing``: see `AmqpProtocol.writing`.

        Raises:
            RequestTimeoutError, ConnectionLostError: no answer came.
            JMSError: the broker ended the session instead, or refuses.
        """
        answer = yield from self.answer(method, path, body, writing, waiter)
        answer.check(f"{method} {path}")
        return answer

    def answer(self, method: str, path: str, body: Body, writing: Writing, waiter: Waiter) -> Flow[ManagementAnswer]:
        """`request`, but a refusal is an answer, too."""
        pending = Pending(waiter)

        def then(answer: ManagementAnswer | JMSError) -> None:
            error = answer if isinstance(answer, JMSError) else None
            self._table.notifications.answer(pending, error, None if error else answer)

        with writing():
            self.ask(method, path, body, then)
        if not pending.done:
            yield pending
        if pending.error is not None:
            raise pending.error
        return cast(ManagementAnswer, pending.value)

    def ensure(self, name: str, found: Found, *, make: bool = True) -> None:
        """Make a durable queue of that name where there is none; as it is where there is one. Then call ``found``."""
        self.ask("GET", queue_path(name), None, lambda answer: self._looked_up(name, answer, found, make=make))

    def _looked_up(self, name: str, answer: ManagementAnswer | JMSError, found: Found, *, make: bool) -> None:
        if isinstance(answer, JMSError):
            found(answer, None)
        elif answer.status == 404 and not make:
            found(not_there(name), None)
        elif answer.status == 404:
            self.ask("PUT", queue_path(name), {"durable": True}, lambda made: self._made(name, made, found))
        else:  # what is refused here is refused to the link, in better words
            if answer.status < 300 and isinstance(answer.body, Mapping):
                self.queues[name] = answer.body
            found(None, None)

    def _made(self, name: str, answer: ManagementAnswer | JMSError, found: Found) -> None:
        error = answer if isinstance(answer, JMSError) else None
        if isinstance(answer, ManagementAnswer) and answer.status != 409:  # another one has made it meanwhile
            error = answer.refusal(f"making queue://{name}")
        if error is None:  # of which kind it is, the virtual host has said
            self.ask("GET", queue_path(name), None, lambda queue: self._looked_up(name, queue, found, make=True))
        else:
            found(error, None)

    def bind(self, topic: str, writing: Writing, waiter: Waiter, exchange: str = _TOPICS) -> Flow[str]:
        """Make a queue for one consumer of a topic, or of an exchange, which ends with it; the answer is its address.

        Raises as `request`.
        """
        return self._own({"exclusive": True, "auto_delete": True, "durable": False}, writing, waiter, (exchange, topic))

    def temporary(self, writing: Writing, waiter: Waiter) -> Flow[str]:
        """Make a queue that only this connection may consume, and that ends with it. As `bind`."""
        return self._own({"exclusive": True, "durable": False}, writing, waiter)

    def _own(self, body: Body, writing: Writing, waiter: Waiter, bound: tuple[str, str] | None = None) -> Flow[str]:
        name = f"redelivery.{uuid.uuid4()}"
        yield from self.request("PUT", queue_path(name), body, writing, waiter)
        if bound is not None:
            exchange, key = bound
            binding = {"source": exchange, "destination_queue": name, "binding_key": key, "arguments": {}}
            yield from self.request("POST", "/bindings", binding, writing, waiter)
        return queue_path(name)

    def _links(self) -> tuple[Answers, RequestLink]:
        answers, requests = self._answers, self._requests
        if answers is None or requests is None or answers.ended is not None or requests.ended is not None:
            session = AmqpSession(self._table)
            session.open(None)
            name = f"management-{next(_numbers)}"
            answers = self._answers = Answers(session, name)
            requests = self._requests = RequestLink(session, "the broker's management", name)
            for each in (answers, requests):
                each.handle.source.address = each.handle.target.address = _NODE
                each.handle.properties = proton.PropertyDict({proton.symbol("paired"): True})
                each.handle.snd_settle_mode = proton.Link.SND_SETTLED
                each.open(None)
        return answers, requests


class RequestLink(Sender):
    """The link that requests leave by, settled as they are sent."""

    __slots__ = ()

    def _transfer(self, parts: Parts, transaction: bytes | None, pending: Pending) -> None:
        super()._transfer(parts, transaction, pending)
        (handle,) = self.unanswered
        del self.unanswered[handle]
        self.table.unanswered -= 1
        lib.pn_delivery_settle(handle)


class ReplyLink(Endpoint):
    """A link that answers of a management node come by."""

    __slots__ = ("session",)

    def __init__(self, session: AmqpSession, name: str) -> None:
        super().__init__(session.table, session.handle.receiver(name), "the broker's management")
        self.session = session
        session.links.add(self)

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`."""
        super().on_opened()
        lib.pn_link_flow(self.raw, _CREDIT)

    def on_delivery(self, handle: Any) -> None:
        """An answer, or a part of one."""
        if not lib.pn_delivery_readable(handle) or lib.pn_delivery_partial(handle):
            return
        data = bytearray(lib.pn_delivery_pending(handle))
        lib.pn_link_recv(self.raw, ffi.from_buffer(data), len(data))
        lib.pn_link_advance(self.raw)
        if not lib.pn_delivery_settled(handle):
            lib.pn_delivery_update(handle, ACCEPTED)
        lib.pn_delivery_settle(handle)
        lib.pn_link_flow(self.raw, 1)
        message = proton.Message()
        message.decode(bytes(data))
        self.on_answer(message)

    def on_answer(self, message: Any) -> None:
        """Take an answer."""

    def on_end(self, error: JMSError, ours: bool) -> None:  # noqa: ARG002  # the error: of those who wait
        """See `Endpoint.on_end`: no answer comes any more."""
        if not ours:
            self.session.links.discard(self)

    def forget(self) -> None:
        """See `Endpoint.forget`."""
        self.session.links.discard(self)
        super().forget()


class Answers(ReplyLink):
    """The link that answers of the methods of HTTP come by."""

    __slots__ = ("asked",)

    def __init__(self, session: AmqpSession, name: str) -> None:
        super().__init__(session, name)
        self.asked: dict[str, Callable[[ManagementAnswer | JMSError], None]] = {}  # by the request's id

    def on_answer(self, message: Any) -> None:
        """See `ReplyLink.on_answer`."""
        then = self.asked.pop(str(message.correlation_id), None)
        if then is not None:
            status = str(message.subject)
            then(ManagementAnswer(int(status) if status.isdecimal() else 500, message.body))

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`."""
        super().on_end(error, ours)
        asked, self.asked = self.asked, {}
        for then in asked.values():
            then(error)


def not_there(name: str) -> InvalidDestinationError:
    """The error of a queue that is not there, and is not to be made."""
    return InvalidDestinationError(f"queue://{name}: there is no such queue, and it is not to be made (declare=False)")


def queue_path(name: str) -> str:
    """The path of a queue at the management node, and its address: percent-encoded UTF-8."""
    return f"/queues/{quote(name, safe='')}"


def _encode(number: str, method: str, path: str, body: Body) -> bytes:
    fields = [write_text(number), b"\x40", write_text(path), write_text(method), write_text(_BACK)]
    return b"\x00\x53\x73" + write_list(fields) + b"\x00\x53\x77" + _value(body)


def _value(value: Any) -> bytes:
    if isinstance(value, Mapping):
        return write_map([each for key, item in value.items() for each in (write_text(key), _value(item))])
    return write(value, "a request")
