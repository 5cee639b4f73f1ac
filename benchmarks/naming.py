"""How raw clients must name a queue at each broker, where ours and the JMS clients know it by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class StompNames:
    """The prefix of a destination, and the headers that say "a queue".

    ``existing``: the prefix of a queue that is there, where the other one would declare it in its own way again.
    ``host``: of CONNECT; None: the client's own idea.
    """

    prefix: str = "/queue/"
    existing: str | None = None
    host: str | None = None
    send: Mapping[str, str] = field(default_factory=dict)
    subscribe: Mapping[str, str] = field(default_factory=dict)

    def there(self, queue: str) -> str:
        """The destination of a queue that exists."""
        return (self.prefix if self.existing is None else self.existing) + queue


@dataclass(frozen=True, slots=True)
class AmqpNames:
    """The prefix of an address, and the capability of a terminus that says "a queue". ``existing``: as above.

    ``durable``: whether a queue comes to be by being addressed, and then as durable as the terminus is.
    """

    prefix: str = ""
    existing: str | None = None
    capability: str | None = None
    durable: bool = False

    def there(self, queue: str) -> str:
        """The address of a queue that exists."""
        return (self.prefix if self.existing is None else self.existing) + queue


STOMP: Final[Mapping[str, StompNames]] = {
    "fake": StompNames(),
    "activemq": StompNames(),
    "artemis": StompNames("", send={"destination-type": "ANYCAST"}, subscribe={"subscription-type": "ANYCAST"}),
    "rabbitmq": StompNames(existing="/amq/queue/", host="/"),
    "hornetq": StompNames("jms.queue."),
}
AMQP: Final[Mapping[str, AmqpNames]] = {
    "fake": AmqpNames(),
    "activemq": AmqpNames(capability="queue"),
    "artemis": AmqpNames(capability="queue"),
    "qpid": AmqpNames(),
    "rabbitmq": AmqpNames("/queue/", "/amq/queue/", durable=True),
}
