"""Artemis' queues, by the operations of its management: their names and arguments are those of its JMX beans.

A queue's arguments are the names of its QueueConfiguration, as in broker.xml (``max-consumers``). Where its dead
letters go is no argument of a queue there, but a setting of its address, of which it is said how it shall be beside
all that holds already.
"""

from __future__ import annotations

import json
from typing import Any, Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import ConfigError, InvalidDestinationError, JMSError, ProtocolError, SecurityError
from redelivery.policies.destinations.bound import BoundTo
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.managing.requests import Requests
from redelivery.transports.dialects.amqp import OperationsNode
from redelivery.transports.flows import NO_ANSWER, Flow, Waiter
from redelivery.transports.management.bound import bound_queues, is_made, listing, queues_of
from redelivery.transports.management.declaring import NO_LIMIT, Declaration, Queues

_OWN: Final = ("id", "name", "address")  # of a queue's configuration: what its destination says
_ROUTING: Final = "routing-type"
_TO_QUEUES: Final = "ANYCAST"
_SEPARATOR: Final = "::"  # between an address and a queue of it
_LETTERS: Final = "deadLetterAddress"
_ATTEMPTS: Final = "maxDeliveryAttempts"
_COLUMNS: Final = {"filter-string": "filter"}  # of a list of queues, where it is not the name in camel case


class OperationQueues(Queues):
    """See `Queues`."""

    def __init__(self, protocol: AmqpProtocol, node: OperationsNode, capability: str | None, waiter: Waiter) -> None:
        self._node = node
        self._requests = Requests(protocol, node.address, capability, waiter)

    def check(self, wanted: Declaration) -> None:
        """See `Queues.check`."""
        for name in _OWN:
            if name in wanted.arguments:
                raise ConfigError(f"{wanted.queue}: {name} is no argument of a queue: the destination says it")
        if wanted.type is not None:
            wanted.check_free(_ROUTING)

    def exists(self, queue: Queue) -> Flow[bool]:
        """See `Queues.exists`."""
        return (yield from self._row(queue)) is not None

    def make(self, wanted: Declaration) -> Flow[bool]:
        """See `Queues.make`."""
        address, name = _names(wanted.queue)
        asked = _configuration(wanted)
        row = yield from self._row(wanted.queue)
        if row is not None:
            yield from self._compare(wanted, asked, row, f"Queue {name} already exists on address {row.get('address')}")
            return False
        before = yield from self._set(wanted, address)
        try:
            made = yield from self._create(wanted, asked)
            yield from self._believe(wanted, asked, made)
        except NO_ANSWER:
            raise
        except JMSError as error:
            if before is not None:
                yield from self._do("addAddressSettings", address, json.dumps(before))
            if not isinstance(error, _ExistsError):
                raise
        else:
            return True
        row = yield from self._row(wanted.queue)  # another one has made it meanwhile
        yield from self._compare(wanted, asked, row or {}, "it exists")
        return False

    def remove(self, queue: Queue) -> Flow[int | None]:
        """See `Queues.remove`."""
        row = yield from self._row(queue)
        if row is None:
            raise InvalidDestinationError(f"deleting {queue}: there is no such queue")
        yield from self._do("destroyQueue", row["name"], True, True, doing=f"deleting {queue}")
        return int(row.get("messageCount") or 0)

    def close(self) -> None:
        """See `Queues.close`."""
        self._requests.close()

    def behind(self, name: str) -> Flow[tuple[tuple[BoundTo, ...], bool]]:
        """The queues that a queue's name means (`queues_of`), and whether its address has any queue.

        Raises:
            SecurityError, JMSError: the broker does not say it, or not to this user.
        """
        address, _, queue = name.rpartition(_SEPARATOR)
        rows = []
        for operation, field, value in (
            ("listQueues", "address", address or name),
            ("listQueues", "name", queue),
            ("listAddresses", "name", address or name),
        ):
            said = yield from self._do(operation, *listing(field, value), doing=f"looking for {name}")
            rows.append(_object(said).get("data") or ())
        on, named, addresses = rows
        return queues_of(name, bound_queues(on), bound_queues(named), made=is_made(addresses)), bool(on)

    def _create(self, wanted: Declaration, asked: dict[str, Any]) -> Flow[dict[str, Any]]:
        said = yield from self._do("createQueue", json.dumps(asked), doing=f"declaring {wanted.queue}")
        return _object(said)

    def _believe(self, wanted: Declaration, asked: dict[str, Any], made: dict[str, Any]) -> Flow[None]:
        """Compare what the broker made, which passes over what it does not know: then remove the queue again."""
        passed = [name for name in wanted.arguments if not _same(asked[name], made.get(name))]
        wrong = [f"{name} is {_shown(made[name])}" if name in made else f"it knows no {name}" for name in passed]
        if wrong:
            yield from self._do("destroyQueue", made.get("name"), True, True)
            raise ConfigError(
                f"declaring {wanted.queue}: the broker makes something else of it: {', '.join(wrong)}; names and "
                "values are those of a queue in broker.xml"
            )

    def _set(self, wanted: Declaration, address: str) -> Flow[dict[str, Any] | None]:
        """Say where its dead letters go; the settings before that, None where nothing was changed."""
        new = _settings(wanted)
        before = (yield from self._settings_of(address)) if new else {}
        if new.items() <= before.items():
            return None
        doing = f"declaring {wanted.queue}: where its dead letters go"
        yield from self._do("addAddressSettings", address, json.dumps({**before, **new}), doing=doing)
        return before

    def _settings_of(self, address: str) -> Flow[dict[str, Any]]:
        return _object((yield from self._do("getAddressSettingsAsJSON", address)))

    def _compare(self, wanted: Declaration, asked: dict[str, Any], row: dict[str, Any], said: str) -> Flow[None]:
        address, _ = _names(wanted.queue)
        has = {name: row[column] for name in asked if (column := _column(name)) in row}
        new = _settings(wanted)
        settings = (yield from self._settings_of(address)) if new else {}
        asked, has = {**asked, **new}, {**has, **{name: settings.get(name) for name in new}}
        other = [
            f"{name} is {_shown(value)}, not {_shown(asked[name])}"
            for name, value in has.items()
            if not _same(asked[name], value)
        ]
        if other:
            raise InvalidDestinationError(f"declaring {wanted.queue}: the broker says: {said}, and {', '.join(other)}")

    def _row(self, queue: Queue) -> Flow[dict[str, Any] | None]:
        _, name = _names(queue)
        wanted = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
        said = yield from self._do("listQueues", wanted, 1, 2, doing=f"looking for {queue}")
        rows = _object(said).get("data") or ()
        return next((dict(each) for each in rows if each.get("name") == name), None)

    def _do(self, operation: str, *arguments: object, doing: str = "") -> Flow[str]:
        node = self._node
        properties = {**dict(node.properties), node.operation: operation}
        answer = yield from self._requests.ask(properties, json.dumps(arguments))
        said = answer.body if isinstance(answer.body, str) else "nothing"
        results = json.loads(said) if said.startswith("[") else [said]
        if (answer.properties or {}).get(node.succeeded) is not True:
            raise self._refusal(doing or operation, " ".join(map(str, results)))
        return str(results[0]) if results else "{}"

    def _refusal(self, doing: str, said: str) -> JMSError:
        node = self._node
        kind: type[JMSError] = InvalidDestinationError
        if said.startswith(node.exists):
            kind = _ExistsError
        elif node.forbidden in said:
            kind = SecurityError
        return kind(f"{doing}: the broker says: {said[:500]}")


class _ExistsError(InvalidDestinationError):
    """The queue was made meanwhile."""


def _names(queue: Queue) -> tuple[str, str]:
    """The names of the queue's address, and its own."""
    address, separator, name = queue.name.partition(_SEPARATOR)
    return address, name if separator else address


def _configuration(wanted: Declaration) -> dict[str, Any]:
    address, name = _names(wanted.queue)
    kind = wanted.arguments.get(_ROUTING, wanted.type)
    routing = _TO_QUEUES if kind is None else str(kind).upper()  # as it is written there
    return {"durable": True, **wanted.arguments, "name": name, "address": address, _ROUTING: routing}


def _settings(wanted: Declaration) -> dict[str, Any]:
    new: dict[str, Any] = {}
    if wanted.dead_letters is not None:
        new[_LETTERS] = _names(wanted.dead_letters)[0]
    if wanted.maximum_redeliveries is not None:
        most = wanted.maximum_redeliveries
        new[_ATTEMPTS] = NO_LIMIT if most == NO_LIMIT else most + 1
    return new


def _column(name: str) -> str:
    first, *more = name.split("-")
    return _COLUMNS.get(name, first + "".join(map(str.capitalize, more)))


def _same(asked: Any, has: Any) -> bool:
    return has is not None and _shown(asked) == _shown(has)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _object(said: str) -> dict[str, Any]:
    try:
        found = json.loads(said)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ProtocolError(f"the broker's management answers {said[:200]!r}, which is no object of JSON")
    return found
