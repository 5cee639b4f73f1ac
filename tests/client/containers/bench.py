"""A container's bench: a broker, a connection, and what the handler was given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.client.shell import eventually
from tests.conformance.blocking import Shell

from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

FAST = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01, maximum_redeliveries=2)


DEAD = "dead"


class Bench:
    """A broker, a connection to it, and its containers."""

    def __init__(self, served: tuple[EmbeddedBroker, str], shell: Shell, opened: ExitStack) -> None:
        self.broker, self.url = served
        self.shell, self.opened = shell, opened
        self.connection = self.connect()

    def connect(self, **options: Any) -> Any:
        options.setdefault("redelivery_policy", FAST)
        options.setdefault("dead_letter_strategy", SharedDeadLetterStrategy(dead_letter_queue=DEAD))
        return self.shell.connect(self.url, **options)

    def start(self, handler: Callable[..., Any], **options: Any) -> Any:
        container = self.connection.listener_container("orders", handler, **options)
        self.opened.enter_context(container)
        return container

    def send(self, *bodies: Any, **options: Any) -> None:
        for body in bodies:
            self.broker.send("orders", body, **options)

    def left(self, queue: str = "orders") -> list[Any]:
        return [message.body for message in self.broker.messages(queue)]

    def done(self) -> None:
        eventually(lambda: self.broker.queue_depth("orders") == 0)
