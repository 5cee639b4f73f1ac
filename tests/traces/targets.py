"""Where a scenario is played, and how one sees there what it left: one `Target` for each column of docs/traces.md."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.traces.compare import Sight
from tests.traces.differences import missing
from tests.traces.relay import Relay, cut_vm
from tests.traces.scenario import DEAD_LETTERS, End, Scenario
from tests.traces.stomp_reader import StompReader, as_recorded

from redelivery import (
    IndividualDeadLetterStrategy,
    Message,
    SharedDeadLetterStrategy,
)
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.policies.dead_letters import DeadLetterStrategy

INDIVIDUAL = IndividualDeadLetterStrategy(queue_prefix="DLQ.")
_runs = itertools.count(1)


class Place(ABC):
    """Names and connections of one execution of one scenario; all names are fresh."""

    dead_letter_strategy: DeadLetterStrategy | None = None

    def __init__(self) -> None:
        self.ref = f"t{os.getpid()}n{next(_runs)}"

    def physical(self, name: str) -> str:
        """The name at the broker; the parts of it that the broker's set-up knows stay in front."""
        for kept in ("DLQ.individual.", "individual."):
            if name.startswith(kept):
                return f"{kept}{self.ref}.{name.removeprefix(kept)}"
        return name if name == DEAD_LETTERS else ",".join(f"{self.ref}.{each}" for each in name.split(","))

    def logical(self, text: str) -> str:
        """A text with the physical names in it replaced by the logical ones."""
        return text.replace(f"{self.ref}.", "")

    def selector(self, text: str) -> str | None:
        """The selector to use; None where it is needless, since nobody else's messages are there."""
        return text.replace("{ref}", self.ref)

    @abstractmethod
    def url(self, params: Mapping[str, str], *, killable: bool = False) -> str:
        """A URL to connect to; only a killable connection can be cut."""

    @abstractmethod
    def kill(self, connection: Any) -> None:
        """Cut a connection without a goodbye."""

    @abstractmethod
    def left(self, queues: tuple[str, ...]) -> End:
        """The messages left in these logical queues, which are taken away."""


class ClassicPlace(Place):
    """On a running ActiveMQ Classic, over STOMP."""

    def __init__(self, stomp_url: str, strategy: DeadLetterStrategy | None, stack: ExitStack) -> None:
        super().__init__()
        self.dead_letter_strategy = strategy
        parts = urlsplit(stomp_url)
        assert parts.hostname is not None, f"{stomp_url} names no host"
        assert parts.port is not None, f"{stomp_url} names no port"
        self._address = parts.hostname, parts.port
        self._relays: dict[int, Relay] = {}
        self._stack = stack

    def url(self, params: Mapping[str, str], *, killable: bool = False) -> str:
        host, port = self._address
        if killable:
            relay = Relay(host, port)
            self._stack.callback(relay.cut)
            host, port = "127.0.0.1", relay.port
            self._relays[port] = relay
        return f"stomp://{host}:{port}?{urlencode(params)}"

    def kill(self, connection: Any) -> None:
        port = urlsplit(connection.url).port
        assert port is not None, "a connection over STOMP has a port"
        self._relays[port].cut()

    def left(self, queues: tuple[str, ...]) -> End:
        with StompReader(*self._address) as reader:
            return {name: [self._named(each) for each in self._read(reader, name)] for name in queues}

    def _read(self, reader: StompReader, name: str) -> list[dict[str, Any]]:
        physical = self.physical(name)
        if name != DEAD_LETTERS:
            return [as_recorded(frame) for frame in reader.take(physical, len(reader.browse(physical)))]
        mine = [frame for frame in reader.browse(physical) if frame.headers.get("ref") == self.ref]
        reader.take(physical, len(mine), f"ref = '{self.ref}'")
        return [as_recorded(frame) for frame in mine]

    def _named(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.logical(each) if isinstance(each, str) else each for name, each in message.items()}


class VmPlace(Place):
    """In an embedded broker of its own, which dead-letters as the recordings' ActiveMQ did."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        config = BrokerConfig(dead_letter_strategies={"individual.>": INDIVIDUAL})
        self._broker = stack.enter_context(EmbeddedBroker(self.ref, config=config))

    def selector(self, text: str) -> str | None:
        return None if "{ref}" in text else text

    def url(self, params: Mapping[str, str], *, killable: bool = False) -> str:
        del killable  # all are
        return f"{self._broker.vm_url}?{urlencode(params)}"

    def kill(self, connection: Any) -> None:
        cut_vm(self._broker, connection)

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


@dataclass(frozen=True, slots=True)
class Target:
    """One column: a broker, a way to it, and a dead-letter strategy."""

    name: str
    title: str
    sight: Sight
    strategy: DeadLetterStrategy | None = None

    def plays(self, scenario: Scenario) -> bool:
        """Whether it can be played, and shows something here that the other columns do not."""
        return missing(scenario) is None and (self.strategy is None or scenario.has_dead_letters)

    @contextmanager
    def place(self, scenario: Scenario, stomp_url: str | None) -> Iterator[Place]:
        """A fresh place; over STOMP at the broker of that URL, otherwise in an embedded broker of its own."""
        with ExitStack() as stack:
            if self.name == "vm":
                yield VmPlace(stack)
            else:
                assert stomp_url is not None, f"{self.name} needs a running ActiveMQ Classic"
                individual = any("individual." in queue for trace in scenario.traces for queue in trace.end)
                yield ClassicPlace(stomp_url, self.strategy and (INDIVIDUAL if individual else self.strategy), stack)


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("stomp", "ActiveMQ Classic, STOMP", Sight(counts=False, causes=False)),
        Target(
            "stomp-copy",
            "ActiveMQ Classic, STOMP, SharedDeadLetterStrategy",
            Sight(counts=False),
            SharedDeadLetterStrategy(),
        ),
        Target("vm", "embedded broker, vm", Sight()),
    )
}
