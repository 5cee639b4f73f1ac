"""RabbitMQ's HTTP API, as its plug-in rabbitmq_management of 3.10, 4.0 and 4.3 has it: one virtual host of it.

What is returned is what the API answers: dicts, whose names its own documentation has (``/api/index.html`` of a
broker). Names are percent-encoded here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final
from urllib.parse import quote

from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.http import HttpAnswer, JsonClient

_PAGE: Final = 500  # queues of one answer, the most that it gives
_SECONDS_EACH: Final = 0.02  # that a look may take for each message: it gets them one by one
DEFAULT_VHOST: Final = "/"
_CRASHED: Final = 500
_INEQUIVALENT: Final = "inequivalent arg"

Json = dict[str, Any]


class OtherwiseError(JMSError):
    """The thing to be declared is there with other arguments; the text has the broker's words."""


class RabbitApi:
    """Raises of all calls: SecurityError, ConnectError, RequestTimeoutError, ProtocolError, JMSError: see `JsonClient`.

    Args:
        address: where it is; its ``vhost`` is the virtual host that is asked about, ``/`` where it says none.
    """

    def __init__(self, address: ManagementAddress) -> None:
        path = address.path.removesuffix("/api")  # as other tools write it
        self.client = JsonClient(replace(address, path=path))
        self.vhost = address.vhost or DEFAULT_VHOST

    def overview(self) -> Json:
        """``rabbitmq_version``, ``product_name``, ``node``, ``listeners``, …"""
        found = self.client.call("GET", "/api/overview", doing="asking the broker's management who it is")
        return self._dict(found, "rabbitmq_version")

    def queues(self) -> Iterator[Json]:
        """All queues of the virtual host, with depths and consumers, in pages."""
        for page in count(1):
            path = f"{self._path('queues')}?page={page}&page_size={_PAGE}"
            found = self._dict(self.client.call("GET", path, doing=f"listing the queues of {self.vhost}"), "items")
            yield from found["items"]
            if page >= found["page_count"]:
                return

    def queue(self, name: str) -> Json | None:
        """A queue: ``type``, ``durable``, ``arguments``, ``policy``, ``messages_ready``, …; None: it is not there."""
        return self._found(self._path("queues", name), f"looking for queue://{name}")

    def declare_queue(self, name: str, *, arguments: Mapping[str, Any] | None = None) -> bool:
        """Make a queue; False: it was there, declared in the same way.

        Raises:
            OtherwiseError: it is there with other arguments.
        """
        body: Json = {"durable": True, "auto_delete": False, "arguments": dict(arguments or {})}
        doing = f"declaring queue://{name}"
        answer = self.client.ask("PUT", self._path("queues", name), body)
        if answer.status == _CRASHED and self.queue(name) is not None:  # of a name that is not ASCII, 4 has no words
            raise OtherwiseError(f"{doing}: it is there with other arguments than {body['arguments']}")
        return self._made(answer, doing)

    def delete_queue(self, name: str) -> None:
        """Delete a queue with what it holds. Raises InvalidDestinationError: it is not there."""
        self.client.call("DELETE", self._path("queues", name), doing=f"deleting queue://{name}")

    def policies(self) -> list[Json]:
        """``name``, ``pattern``, ``apply-to``, ``definition``, ``priority``; none where the user may not see them."""
        return self._list(self._path("policies"), "the policies")

    def operator_policies(self) -> list[Json]:
        """The same of the operator's."""
        return self._list(self._path("operator-policies"), "the operator policies")

    def get(self, queue: str, number: int, *, truncate: int | None = None) -> list[Json]:
        """Look at so many messages from the head of a queue, and put them back: `ack_requeue_true`.

        Each has ``properties`` (with ``headers``), ``payload``, ``payload_encoding`` (``string`` or ``base64``),
        ``payload_bytes``, ``redelivered``, ``exchange``, ``routing_key``. ``truncate``: bytes of a body, at most.

        Raises:
            InvalidDestinationError: it is not there.
            JMSError: it cannot be looked at so, such as a stream.
        """
        body: Json = {"count": number, "ackmode": "ack_requeue_true", "encoding": "auto"}
        if truncate is not None:
            body["truncate"] = truncate
        path, doing = self._path("queues", queue, "get"), f"looking at queue://{queue}"
        found = self.client.call("POST", path, body, doing=doing, more_time=number * _SECONDS_EACH)
        if not isinstance(found, list):
            raise self._strange()
        return [{**each, "properties": each["properties"] or {}} for each in found]  # none are shown as a list

    def _made(self, answer: HttpAnswer, doing: str) -> bool:
        refusal = answer.refusal(doing)
        if refusal is None:
            return answer.status == 201
        if _INEQUIVALENT in str(refusal):
            raise OtherwiseError(str(refusal))
        raise refusal

    def _path(self, kind: str, *names: str) -> str:
        return "/api/" + "/".join(quote(each, safe="") for each in (kind, self.vhost, *names))

    def _found(self, path: str, doing: str) -> Json | None:
        answer = self.client.ask("GET", path)
        if answer.status == 404:
            return None
        answer.check(doing)
        return self._dict(answer.body, "name")

    def _list(self, path: str, doing: str) -> list[Json]:
        found = self.client.call("GET", path, doing=doing)
        if not isinstance(found, list):
            raise self._strange()
        return found

    def _dict(self, found: Any, name: str) -> Json:
        """An object that has this. Raises ProtocolError: it is none."""
        if not isinstance(found, dict) or name not in found:
            raise self._strange()
        return found

    def _strange(self) -> ProtocolError:
        return ProtocolError(f"what answers at {self.client.address.masked} is not RabbitMQ's management")
