"""Listeners for tests: one that notes what it is given, and one that fails once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.client.shell import eventually

from redelivery import Message


class Recorder:
    """A listener that notes what it is given, and does what it was made for."""

    def __init__(self, act: Callable[[Message], object] = str) -> None:
        self.act = act
        self.seen: list[tuple[Any, int]] = []
        self.running = 0
        self.most_at_once = 0

    def __call__(self, message: Message) -> None:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        self.seen.append((message.body, message.delivery_count))
        try:
            self.act(message)
        finally:
            self.running -= 1

    @property
    def bodies(self) -> list[Any]:
        return [body for body, _ in self.seen]

    def wait_for(self, count: int) -> None:
        eventually(lambda: len(self.seen) >= count and not self.running)


def fail_once_on(body: str) -> Callable[[Message], None]:
    failed: list[Message] = []

    def act(message: Message) -> None:
        if message.body == body and not failed:
            failed.append(message)
            raise ValueError("bad order")

    return act
