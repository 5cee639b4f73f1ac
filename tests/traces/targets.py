"""Where scenarios are played: one `Target` for each that docs/traces.csv names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from tests.traces.compare import Sight
from tests.traces.differences import missing
from tests.traces.places import INDIVIDUAL, ClassicPlace, EmbeddedPlace, OwnDeadLettersPlace, Place
from tests.traces.scenario import Scenario

from redelivery import SharedDeadLetterStrategy


@dataclass(frozen=True, slots=True)
class Target:
    """One column.

    ``name``: as in `tests.conformance.pairs`, or that and ``-copy``. ``recorded``: the broker of Qpid JMS's recordings
    to compare with. ``cannot``: what scenarios may need and it has not, with the reason.
    """

    name: str
    title: str
    sight: Sight = field(default_factory=Sight)
    recorded: str | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        return self.name.partition("-")[0]

    @property
    def broker(self) -> str | None:
        """The fixture of a real broker; None: an embedded one for each execution."""
        broker = self.name.removesuffix("-copy").partition("-")[2]
        return None if broker in ("", "embedded") else broker

    @property
    def copies(self) -> bool:
        """Played with copies once more, where the broker has a way of its own for dead letters."""
        return self.name.endswith("-copy")

    def plays(self, scenario: Scenario) -> bool:
        """Whether it can be played, and shows something here that the other columns do not."""
        return self.missing(scenario) is None and (not self.copies or scenario.has_dead_letters)

    def missing(self, scenario: Scenario) -> str | None:
        """Why it cannot be played here; None if it can."""
        everywhere = missing(scenario)
        if everywhere is not None:
            return everywhere
        if scenario.client == "qpid" and (self.recorded is None or self.recorded not in scenario.brokers):
            return "recorded with Qpid JMS over AMQP on other brokers"
        if scenario.client != "qpid" and "classic" not in scenario.brokers and self.broker not in scenario.brokers:
            return "recorded on Artemis over OpenWire"
        return next((self.cannot[need] for need in scenario.needs if need in self.cannot), None)

    @contextmanager
    def place(self, scenario: Scenario, url: str | None) -> Iterator[Place]:
        """A fresh place; ``url``: of the real broker, if it needs one."""
        with ExitStack() as stack:
            if self.broker is None:
                yield EmbeddedPlace(self.protocol, stack)
                return
            assert url is not None, f"{self.name} needs a running broker"
            if self.name == "stomp-activemq":
                yield ClassicPlace(url, None, stack)
            elif self.copies:
                individual = any("individual." in queue for trace in scenario.traces for queue in trace.end)
                yield ClassicPlace(
                    url, INDIVIDUAL if individual else SharedDeadLetterStrategy(process_non_persistent=False), stack
                )
            else:
                place = OwnDeadLettersPlace(url, _PREFIXES.get(self.name, ""), scenario, stack)
                if self.broker == "activemq" and scenario.id.startswith("expired-"):
                    stack.callback(place.take_expired)
                yield place


_STORE_MS: Final = 250  # a broker that writes each transaction to a disk
_FULL: Final = Sight(late_ms=_STORE_MS)
_FLAG: Final = Sight(counts=False, late_ms=_STORE_MS)
_BY_CHANCE: Final = "whether it says of what a lost connection held that it was delivered before, is up to chance"
_TAKES: Final = "the broker has no browsing: it would take what it shows"
_NOT_DURABLE: Final = "there are no durable subscriptions"
_PREFIXES: Final = {  # of queues
    "stomp-hornetq": "jms.queue.",
    **dict.fromkeys(("stomp-rabbitmq", "amqp-rabbitmq", "stomp-rabbitmq4"), "/queue/"),
    "amqp-rabbitmq4": "/queues/",
}
TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("vm", "embedded broker, vm"),
        Target("stomp-embedded", "embedded broker, STOMP", Sight(causes=False)),
        Target("amqp-embedded", "embedded broker, AMQP", recorded="classic"),
        Target("stomp-activemq", "ActiveMQ Classic, STOMP", replace(_FLAG, causes=False)),
        Target("stomp-activemq-copy", "ActiveMQ Classic, STOMP, SharedDeadLetterStrategy", _FLAG),
        Target("stomp-artemis", "Artemis, STOMP", _FLAG, cannot={"kill": _BY_CHANCE, "browsing": _TAKES}),
        Target(
            "stomp-hornetq",
            "HornetQ, STOMP",
            replace(_FLAG, persistence=False),
            cannot={"kill": _BY_CHANCE, "browsing": _TAKES, "durable": _NOT_DURABLE},
        ),
        Target("stomp-rabbitmq", "RabbitMQ, STOMP", _FLAG, cannot={"browsing": _TAKES, "durable": _NOT_DURABLE}),
        Target(
            "amqp-activemq",
            "ActiveMQ Classic, AMQP",
            _FULL,
            recorded="classic",
            cannot={"composite": "what a composite queue leaves cannot be read over AMQP"},
        ),
        Target(
            "amqp-artemis",
            "Artemis, AMQP",
            _FULL,
            recorded="artemis",
            cannot={
                "kill": "whether Artemis counts what a lost connection held over AMQP depends on how its socket ended"
            },
        ),
        Target("amqp-qpid", "Qpid Broker-J, AMQP", _FULL, recorded="brokerj"),
        Target(
            "amqp-rabbitmq",
            "RabbitMQ, AMQP",
            _FLAG,
            cannot={"transactions": "RabbitMQ's plug-in for AMQP 1.0 refuses a coordinator"},
        ),
        Target("stomp-rabbitmq4", "RabbitMQ 4, STOMP", _FLAG, cannot={"browsing": _TAKES, "durable": _NOT_DURABLE}),
        Target("amqp-rabbitmq4", "RabbitMQ 4, AMQP", _FLAG, cannot={"transactions": "RabbitMQ refuses a coordinator"}),
    )
}
