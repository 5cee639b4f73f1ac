"""Topics as a source: by a durable subscription, which outlives the query; and what contradicts that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError
from redelivery.transports.dialects.detect import queues_of_topics


class Subscribing(Protocol):
    """The options that say what is consumed, and by how many."""

    @property
    def destinations(self) -> Sequence[Destination]:
        """Queues and topics."""

    @property
    def subscription(self) -> str | None:
        """The name of a topic's subscription."""

    @property
    def shared(self) -> bool:
        """True: it may have several consumers."""

    @property
    def client_id(self) -> str | None:
        """The client id that it belongs to."""

    @property
    def selector(self) -> str | None:
        """The selector of all consumers."""

    @property
    def receiver(self) -> Literal["driver", "executor"]:
        """The process that receives."""

    @property
    def lanes(self) -> int:
        """The number of processes that receive."""


def check_topics(options: Subscribing, *, client_id: bool) -> None:
    """Refuse a topic without a subscription, and the other way round. ``client_id``: the option was given.

    Raises:
        ConfigError: the text says what to write, or which queue the broker fills from the topic.
    """
    topics = [each for each in options.destinations if each.scheme == "topic"]
    queues = ", ".join(f"{provider}: {form}" for provider, form in queues_of_topics().items())
    if options.subscription is None:
        if topics:
            raise ConfigError(
                f"{topics[0]}: a topic keeps nothing for a query that does not run: add subscription, the name of a "
                f"durable subscription; or consume from a queue that the broker fills from the topic ({queues})"
            )
        for given, name in ((options.shared, "shared"), (client_id, "clientId")):
            if given:
                raise ConfigError(f"{name} has no effect without subscription: leave it out, or add subscription")
        return
    if not topics:
        raise ConfigError(
            f"subscription={options.subscription!r} is for a topic, and {options.destinations[0]} is a queue: write "
            "'topic://…', or leave subscription out"
        )
    if len(topics) > 1:
        raise ConfigError(
            f"subscription={options.subscription!r} belongs to one topic, and there are {len(topics)}: use a pattern "
            "such as 'topic://news.*', or a query for each"
        )
    if not options.shared and (options.receiver == "executor" or options.lanes > 1):
        several = "receiver=executor" if options.receiver == "executor" else f"lanes={options.lanes}"
        raise ConfigError(
            f"{several} needs shared=true: the durable subscription {options.subscription!r} serves one consumer at a "
            "time; or use receiver=driver with one lane, or a queue that the broker fills from the topic "
            f"({queues})"
        )


def identity(options: Subscribing) -> dict[str, Any]:
    """The facts that `walLocation` remembers of what is read, see `redelivery.spark.log.identity`."""
    found: dict[str, Any] = {"destinations": [str(each) for each in options.destinations]}
    if options.subscription is not None:
        found["subscription"] = {
            "subscription": options.subscription,
            "topic": next(str(each) for each in options.destinations if each.scheme == "topic"),
            "shared": options.shared,
            "clientId": options.client_id,
            "selector": options.selector,
        }
    return found
