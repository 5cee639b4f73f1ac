"""Broker-J's queues, as entities of its AMQP management: their arguments are the attributes of a queue there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import ConfigError, IllegalStateError, InvalidDestinationError
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.managing.requests import Requests
from redelivery.transports.dialects.amqp import EntityNode
from redelivery.transports.flows import Flow, Waiter
from redelivery.transports.management.answers import refused
from redelivery.transports.management.declaring import NO_LIMIT, Declaration, Queues

_OWN: Final = ("name", "type", "id")  # what the destination and the broker say
_EXISTS: Final = 409
_ABSENT: Final = 404


class EntityQueues(Queues):
    """See `Queues`."""

    def __init__(self, protocol: AmqpProtocol, node: EntityNode, capability: str | None, waiter: Waiter) -> None:
        self._node = node
        self._requests = Requests(protocol, node.address, capability, waiter)

    def check(self, wanted: Declaration) -> None:
        """See `Queues.check`."""
        for name in _OWN:
            if name in wanted.arguments:
                raise ConfigError(f"{wanted.queue}: {name} is no argument of a queue: the destination and type= say it")
        if wanted.type is not None:
            wanted.check_free(self._node.kind)
        if wanted.dead_letters is not None:
            wanted.check_free(self._node.letters)
        if wanted.maximum_redeliveries is not None:
            wanted.check_free(self._node.limit)

    def exists(self, queue: Queue) -> Flow[bool]:
        """See `Queues.exists`."""
        return (yield from self._read(queue)) is not None

    def make(self, wanted: Declaration) -> Flow[bool]:
        """See `Queues.make`."""
        attributes = self._attributes(wanted)
        doing = f"declaring {wanted.queue}"
        answer = yield from self._ask("CREATE", None, {"name": wanted.queue.name, **attributes})
        code, said = _status(answer)
        if code == _EXISTS:
            has = (yield from self._read(wanted.queue)) or {}
            other = _differences(attributes, has)
            if other:
                raise InvalidDestinationError(f"{doing}: the broker says: {said} ({code}), and {', '.join(other)}")
            return False
        _check(code, said, doing)
        made = answer.body if isinstance(answer.body, Mapping) else {}
        wrong = [name for name in attributes if name not in made]
        if wrong:  # it passes over what it does not know
            yield from self._ask("DELETE", wanted.queue, {})
            raise ConfigError(f"{doing}: the broker knows no {', '.join(wrong)} of such a queue")
        return True

    def remove(self, queue: Queue) -> Flow[int | None]:
        """See `Queues.remove`."""
        doing = f"deleting {queue}"
        answer = yield from self._ask("getStatistics", queue, {})
        held = answer.body.get("queueDepthMessages") if isinstance(answer.body, Mapping) else None
        code, said = _status((yield from self._ask("DELETE", queue, {})))
        if code == _ABSENT:
            raise InvalidDestinationError(f"{doing}: there is no such queue")
        if self._node.needed in said:
            raise IllegalStateError(f"{doing}: the broker says: {said} ({code})")
        _check(code, said, doing)
        return None if held is None else int(held)

    def close(self) -> None:
        """See `Queues.close`."""
        self._requests.close()

    def _attributes(self, wanted: Declaration) -> dict[str, Any]:
        node, attributes = self._node, dict(wanted.arguments)
        if wanted.type is not None:
            attributes[node.kind] = wanted.type
        if wanted.dead_letters is not None:
            attributes[node.letters] = {node.destination: wanted.dead_letters.name}
        if wanted.maximum_redeliveries is not None:
            most = wanted.maximum_redeliveries
            attributes[node.limit] = 0 if most == NO_LIMIT else most + 1
        return attributes

    def _read(self, queue: Queue) -> Flow[Mapping[str, Any] | None]:
        """The facts that hold for a queue, given or by default; None: it is not there."""
        answer = yield from self._ask("READ", queue, {}, actuals=False)
        code, said = _status(answer)
        if code == _ABSENT:
            return None
        _check(code, said, f"looking for {queue}")
        return answer.body if isinstance(answer.body, Mapping) else {}

    def _ask(self, operation: str, queue: Queue | None, body: Mapping[str, Any], **more: object) -> Flow[Any]:
        where: dict[str, object] = {}
        if queue is not None:
            where = {"index": "object-path", "key": queue.name.replace("\\", r"\\").replace("/", r"\/")}
        properties = {"type": self._node.queue, "operation": operation, **where, **more}
        return (yield from self._requests.ask(properties, dict(body)))


def _status(answer: Any) -> tuple[int, str]:
    properties = answer.properties or {}
    return int(properties.get("statusCode") or 500), str(properties.get("statusDescription") or "nothing")[:500]


def _check(code: int, said: str, doing: str) -> None:
    if code >= 300:
        raise refused(code, f"{doing}: the broker", said, InvalidDestinationError)


def _differences(asked: Mapping[str, Any], has: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {_shown(has.get(name))}, not {_shown(value)}"
        for name, value in asked.items()
        if _shown(value) != _shown(has.get(name))
    ]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, int) else str(value)  # whatever width it came with
