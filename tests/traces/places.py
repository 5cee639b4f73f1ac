"""Where one execution of a scenario happens: names and connections of its own, and how one sees what it left."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode, urlsplit

from tests.traces import stomp_reader
from tests.traces.relay import Relay, cut_vm
from tests.traces.scenario import DEAD_LETTERS, End, Scenario

from redelivery import DiscardingDeadLetterStrategy, IndividualDeadLetterStrategy, Message, SharedDeadLetterStrategy
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.policies.dead_letters import DeadLetterStrategy

INDIVIDUAL: Final = IndividualDeadLetterStrategy(queue_prefix="DLQ.", process_non_persistent=False)
_runs = itertools.count(1)


class Place(ABC):
    """One execution; all names are fresh."""

    dead_letter_strategy: DeadLetterStrategy | None = None

    def __init__(self) -> None:
        self.ref = f"t{os.getpid()}n{next(_runs)}"

    @property
    def _own(self) -> str:
        """A selector of its messages, in a queue that others have theirs in, too."""
        return f"ref = '{self.ref}'"

    def physical(self, name: str) -> str:
        """The name at the broker; the parts of it that the broker's set-up knows stay in front."""
        for kept in ("DLQ.individual.", "individual."):
            if name.startswith(kept):
                return f"{kept}{self.ref}.{name.removeprefix(kept)}"
        return ",".join(f"{self.ref}.{each}" for each in name.split(","))

    def logical(self, text: str) -> str:
        """A str with the physical names in it replaced by the logical ones."""
        return text.replace(f"{self.ref}.", "")

    def selector(self, text: str) -> str | None:
        """The selector to use; None where it is needless, since nobody else's messages are there."""
        return None if "{ref}" in text else text

    @abstractmethod
    def url(self, params: Mapping[str, str], *, killable: bool = False) -> str:
        """A URL to connect to; only a killable connection can be cut."""

    @abstractmethod
    def kill(self, connection: Any) -> None:
        """Cut a connection without a goodbye."""

    @abstractmethod
    def left(self, queues: tuple[str, ...]) -> End:
        """The messages left in these logical queues, which are taken away."""

    def _named(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.logical(each) if isinstance(each, str) else each for name, each in message.items()}


class _Networked(Place):
    """Over TCP, where a relay stands in for a connection that is to be cut."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        super().__init__()
        self._url = url
        self._relays: dict[int, Relay] = {}
        self._stack = stack

    def url(self, params: Mapping[str, str], *, killable: bool = False) -> str:
        parts = urlsplit(self._url)
        assert parts.hostname is not None, f"{self._url} names no host"
        assert parts.port is not None, f"{self._url} names no port"
        netloc = parts.netloc
        if killable:
            relay = Relay(parts.hostname, parts.port)
            self._stack.callback(relay.cut)
            self._relays[relay.port] = relay
            netloc = netloc.replace(f"{parts.hostname}:{parts.port}", f"127.0.0.1:{relay.port}")
        return f"{parts.scheme}://{netloc}?{urlencode(params)}"

    def kill(self, connection: Any) -> None:
        port = urlsplit(connection.url).port
        assert port is not None, "a connection over TCP has a port"
        self._relays[port].cut()


class ClassicPlace(_Networked):
    """On a real ActiveMQ Classic over STOMP, which shares one dead-letter queue among all and can browse it."""

    def __init__(self, url: str, strategy: DeadLetterStrategy | None, stack: ExitStack) -> None:
        super().__init__(url, stack)
        self.dead_letter_strategy = strategy

    def physical(self, name: str) -> str:
        return name if name == DEAD_LETTERS else super().physical(name)

    def selector(self, text: str) -> str | None:
        return text.replace("{ref}", self.ref)

    def left(self, queues: tuple[str, ...]) -> End:
        with stomp_reader.StompReader(self._url) as reader:
            return {name: [self._named(each) for each in self._read(reader, name)] for name in queues}

    def _read(self, reader: stomp_reader.StompReader, name: str) -> list[dict[str, Any]]:
        physical = self.physical(name)
        if name != DEAD_LETTERS:
            return [stomp_reader.as_recorded(frame) for frame in reader.take(physical, len(reader.browse(physical)))]
        mine = reader.browse(physical, self._own)
        reader.take(physical, len(mine), self._own)
        return [stomp_reader.as_recorded(frame) for frame in mine]


_Drain: TypeAlias = Callable[[str, Sequence[str], str], list[list[dict[str, Any]]]]


def _drain_of(url: str) -> _Drain:
    if url.startswith("stomp"):
        return stomp_reader.drain
    from tests.traces import amqp_reader  # needs proton, which may be missing here

    return amqp_reader.drain


class OwnDeadLettersPlace(_Networked):
    """On any other real broker: dead letters are copies, in a queue of the execution's own."""

    def __init__(self, url: str, queue_prefix: str, scenario: Scenario, stack: ExitStack) -> None:
        super().__init__(url, stack)
        self._prefix = queue_prefix
        self._letters = "DLQ" if any("DLQ" in trace.end for trace in scenario.traces) else DEAD_LETTERS
        self.dead_letter_strategy = self._strategy(scenario)
        self._drain = _drain_of(url)

    def _strategy(self, scenario: Scenario) -> DeadLetterStrategy:
        if any("individual." in queue for trace in scenario.traces for queue in trace.end):
            return INDIVIDUAL
        if scenario.qpid_outcome == "ACCEPTED":
            return DiscardingDeadLetterStrategy()
        return SharedDeadLetterStrategy(dead_letter_queue=self.physical(self._letters), process_non_persistent=False)

    def take_expired(self) -> None:
        """What Classic has put on the shared queue; it would cut off a STOMP consumer (docs/brokers/activemq.md).

        What others have there they look for themselves.
        """
        from tests.traces import amqp_reader

        amqp_reader.empty(self._url, DEAD_LETTERS, self._own)

    def left(self, queues: tuple[str, ...]) -> End:
        found = self._drain(self._url, [self.physical(name) for name in queues], self._prefix)
        return {name: [self._named(each) for each in messages] for name, messages in zip(queues, found, strict=True)}


class EmbeddedPlace(_Networked):
    """In an embedded broker of its own, which dead-letters as the recordings' ActiveMQ did."""

    def __init__(self, protocol: str, stack: ExitStack) -> None:
        config = BrokerConfig(dead_letter_strategies={"individual.>": INDIVIDUAL})
        name = f"traces-{os.getpid()}-{next(_runs)}"
        ports: dict[str, Any] = {} if protocol == "vm" else {f"{protocol}_port": 0}
        self._broker = stack.enter_context(EmbeddedBroker(name, config=config, **ports))
        super().__init__(getattr(self._broker, f"{protocol}_url"), stack)

    def physical(self, name: str) -> str:
        return name if name == DEAD_LETTERS else super().physical(name)

    def url(self, params: Mapping[str, str], *, killable: bool = False) -> str:
        if self._url.startswith("vm"):
            return f"{self._url}?{urlencode(params)}"
        return super().url(params, killable=killable)

    def kill(self, connection: Any) -> None:
        if self._url.startswith("vm"):
            cut_vm(self._broker, connection)
        else:
            super().kill(connection)

    def left(self, queues: tuple[str, ...]) -> End:
        return {name: [self._recorded(each) for each in self._broker.messages(self.physical(name))] for name in queues}

    def _recorded(self, message: Message) -> dict[str, Any]:
        seen: dict[str, Any] = {
            "body": message.body,
            "redelivered": message.redelivered,
            "count": message.delivery_count,
            "persistent": message.persistent,
            "destination": self.logical(str(message.destination)),
        }
        if message.priority != 4:
            seen["priority"] = message.priority
        for name, value in message.properties.items():
            if name not in ("ref", "JMSXDeliveryCount"):
                seen[name] = self.logical(value) if isinstance(value, str) else value
        return seen
