"""Artemis' management, by the Jolokia of its web console: its queues, and a look into them, which costs nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from itertools import count
from typing import Any, Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import InvalidDestinationError, ProtocolError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.values import Value
from redelivery.operate.management.as_artemis import CUT, REMEDY, as_artemis, is_cut, plain, properties_of
from redelivery.operate.management.interface import MOST, Cost, ManagedQueue
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.jolokia import JolokiaClient, quoted

_PATH: Final = "/console/jolokia"
_BROKERS: Final = "org.apache.activemq.artemis:broker=*"
_PAGE: Final = 1000  # queues of one answer
_LIMIT: Final = "managementMessageAttributeSizeLimit"
_USUAL_LIMIT: Final = 256
_COUNTED: Final = "managementBrowsePageSize"
_USUALLY_COUNTED: Final = 200
_SECONDS_EACH: Final = 0.005  # that a look may take for each message
_SEPARATOR: Final = "::"
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_KEYWORDS: Final = frozenset(("and", "between", "escape", "false", "in", "is", "like", "not", "null", "or", "true"))
_ARGUMENTS: Final = (  # of a queue, and what they are where nobody set them
    ("filter", ""),
    ("exclusive", "false"),
    ("lastValue", "false"),
    ("maxConsumers", "-1"),
    ("purgeOnNoConsumers", "false"),
    ("ringSize", "-1"),
    ("consumersBeforeDispatch", "0"),
    ("delayBeforeDispatch", "-1"),
    ("enabled", "true"),
)


class ArtemisManagement:
    """See `redelivery.operate.management.interface.Management`. ``address``: of its web console."""

    def __init__(self, address: ManagementAddress) -> None:
        self.jolokia = JolokiaClient(address, _PATH)

    @property
    def name(self) -> str:
        """See `Management`."""
        said = self.jolokia.read(self._broker, ["Version"], doing="asking the broker's management who it is")
        return f"ActiveMQ Artemis {said.get('Version', '')}".strip()

    def call(self, operation: str, *arguments: Any, doing: str | None = None) -> Any:
        """The result of an operation of the broker, such as ``getAddressSettingsAsJSON(java.lang.String)``.

        Raises:
            JMSError: as those of `JolokiaClient`.
        """
        return self.jolokia.call(self._broker, operation, *arguments, doing=doing or operation.partition("(")[0])

    def queues(self) -> Iterator[ManagedQueue]:
        """See `Management`."""
        return (managed(each) for each in self._listed() if is_listed(each))

    def queue(self, name: str) -> ManagedQueue | None:
        """See `Management`; ``settings`` are those of its address."""
        row = self._row(name)
        return None if row is None else managed(row, self._settings(row["address"]))

    def cost(self, queue: ManagedQueue) -> Cost:  # noqa: ARG002  # a look is free, whichever it is
        """See `Management`."""
        return Cost()

    def browse(self, queue: str, limit: int | None = None) -> Iterator[Message]:
        """See `Management`; a body that is not shown whole raises MessageFormatError when it is asked for.

        Raises:
            UnsupportedError: properties are shown cut, and cannot be made whole; when those before were returned.
        """
        row = self._row(queue)
        if row is None:
            raise InvalidDestinationError(f"queue://{queue}: there is no such queue")
        number = MOST if limit is None else min(limit, MOST)
        settings = self._settings(row["address"])
        bound = int(settings.get(_LIMIT, _USUAL_LIMIT))
        doing = f"looking at queue://{queue}"
        seconds = number * _SECONDS_EACH
        bean = self._bean(row)
        found = self.jolokia.call(bean, "browse(int,int)", 1, number, doing=doing, more_time=seconds)
        if not isinstance(found, list):
            raise ProtocolError(f"{doing}: the broker's management shows no messages")
        whole = _WholeProperties(self.jolokia, bean, bound, queue)
        for index, each in enumerate(found):
            counted = index < int(settings.get(_COUNTED, _USUALLY_COUNTED))
            yield as_artemis(each, whole.properties(each, counted=counted), Queue(queue), bound)

    @cached_property
    def _broker(self) -> str:
        found = self.jolokia.search(_BROKERS, doing="asking for the broker's management")
        if len(found) != 1:
            raise ProtocolError(
                f"at {self.jolokia.address.masked} there is {'no broker' if not found else 'more than one broker'} of "
                "ActiveMQ Artemis that this login may see"
            )
        return found[0]

    def _listed(self, *wanted: str) -> Iterator[dict[str, str]]:
        ask = partial(self.call, "listQueues(java.lang.String,int,int)", doing="listing the queues")
        return listed(ask, *wanted)

    def _row(self, name: str) -> dict[str, str] | None:
        address, separator, queue = name.partition(_SEPARATOR)
        wanted = queue if separator else name
        rows = [each for each in self._listed("name", "EQUALS", wanted) if each["name"] == wanted]
        return next((each for each in rows if not separator or each["address"] == address), None)

    def _settings(self, address: str) -> dict[str, Any]:
        doing = f"the settings of {address}"
        found = json.loads(self.call("getAddressSettingsAsJSON(java.lang.String)", address, doing=doing))
        return found if isinstance(found, dict) else {}

    def _bean(self, row: Mapping[str, str]) -> str:
        parts = (
            "component=addresses",
            f"address={quoted(row['address'])}",
            "subcomponent=queues",
            f"routing-type={quoted(row['routingType'].lower())}",
            f"queue={quoted(row['name'])}",
        )
        return ",".join((self._broker, *parts))


class _WholeProperties:
    """Makes properties whole that are shown cut: the broker counts messages by the values of one, and cuts none.

    It counts the first ones of a queue only, 200 unless its address settings say otherwise.
    """

    def __init__(self, jolokia: JolokiaClient, bean: str, bound: int, queue: str) -> None:
        self._jolokia = jolokia
        self._bean = bean
        self._bound = bound
        self._queue = queue
        self._counted: dict[tuple[str, str], Counter[str]] = {}

    def properties(self, shown: Mapping[str, Any], *, counted: bool) -> dict[str, Value]:
        """The message's properties; ``counted``: it is one of those. Raises UnsupportedError: one cannot be whole."""
        found = properties_of(shown)
        whole = {}
        for name, value in found.items():
            if is_cut(value, self._bound):
                whole[name] = self._value(name, value, shown, found) if counted else None
                if whole[name] is None:
                    raise UnsupportedError(
                        f"queue://{self._queue}: of the property {plain(name)} of message {shown['messageID']} the "
                        f"broker's management shows the first {self._bound} characters only: {REMEDY}"
                    )
        return {**found, **whole}

    def _value(self, name: str, cut: Value, shown: Mapping[str, Any], all: Mapping[str, Value]) -> str | None:
        matched = CUT.fullmatch(str(cut))
        assert matched is not None
        start, length = matched[1], len(matched[1]) + int(matched[2])
        at = f"AMQTimestamp = {shown['timestamp']}"
        for chosen in ("", at, f"{at} AND {self._filter(shown, all)}"):
            values = [
                each for each in self._values(chosen, plain(name)) if len(each) == length and each.startswith(start)
            ]
            if len(values) == 1:
                return values[0]
        return None

    def _values(self, chosen: str, name: str) -> Counter[str]:
        if (chosen, name) not in self._counted:
            said = self._jolokia.call(
                self._bean,
                "countMessages(java.lang.String,java.lang.String)",
                chosen,
                name,
                doing=f"looking at queue://{self._queue}",
            )
            self._counted[chosen, name] = Counter(json.loads(said))
        return self._counted[chosen, name]

    def _filter(self, shown: Mapping[str, Any], all: Mapping[str, Value]) -> str:
        """A selector of this message, as narrow as what is shown of it allows."""
        terms = [f"AMQPriority = {shown['priority']}"]
        if shown.get("userID"):
            terms.append(f"AMQUserID = {_literal(str(shown['userID']))}")
        for name, value in all.items():
            usable = _NAME.fullmatch(plain(name)) and plain(name).lower() not in _KEYWORDS
            if usable and isinstance(value, str) and not is_cut(value, self._bound) and not name.startswith("_AMQ"):
                terms.append(f"{plain(name)} = {_literal(value)}")
        return " AND ".join(terms)


def managed(row: Mapping[str, str], settings: Mapping[str, Any] | None = None) -> ManagedQueue:
    """The broker's facts about a queue."""
    delivering = max(0, int(row["deliveringCount"]))  # its counts are below 0 at times
    waiting = int(row["messageCount"]) - delivering
    return ManagedQueue(
        name=row["name"],
        kind=row["routingType"].lower(),
        durable=row["durable"] == "true",
        auto_delete=row["autoDelete"] == "true",
        arguments={name: row[name] for name, usual in _ARGUMENTS if row.get(name, usual) != usual},
        settings=settings or {},
        ready=max(0, waiting),
        unacknowledged=delivering,
        consumers=int(row["consumerCount"]),
        address=row["address"],
        held_back=_count(row, "scheduledCount"),
        enqueued=_count(row, "messagesAdded"),
        dequeued=_count(row, "messagesAcked", "messagesKilled", "messagesExpired"),
    )


def _count(row: Mapping[str, str], *names: str) -> int | None:
    """The sum of these counts; None where the row has not all of them."""
    return sum(int(row[name]) for name in names) if all(row.get(name) for name in names) else None


def listed(
    ask: Callable[[str, int, int], str], field: str = "", operation: str = "", value: str = ""
) -> Iterator[dict[str, str]]:
    """The rows of all queues of which the field is so, page by page; ``ask``: the operation ``listQueues``."""
    wanted = json.dumps({"field": field, "operation": operation, "value": value})
    for page in count(1):
        rows = json.loads(ask(wanted, page, _PAGE))["data"]
        yield from rows
        if len(rows) < _PAGE:
            return


def is_listed(row: Mapping[str, str]) -> bool:
    """False: it is temporary, or the broker's own."""
    return "true" not in (row.get("temporary"), row.get("internalQueue"))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
