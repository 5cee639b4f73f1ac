"""Notifications that the peer's frames brought: they leave when the connection's lock is free again."""

from __future__ import annotations

from collections.abc import Callable

from redelivery.model.errors import JMSError
from redelivery.transports.seam import Link, Pending, SessionEvents
from redelivery.transports.wire.answers import finish


class Notifications:
    """Collected under the lock by the thread that reads, which notifies without it, for callbacks may call us again."""

    __slots__ = ("answers", "awake", "links", "problems")

    def __init__(self) -> None:
        self.answers: list[tuple[Pending, JMSError | None, object]] = []
        self.awake: list[SessionEvents] = []  # deliveries are in their inbox
        self.links: list[tuple[SessionEvents, Link, JMSError]] = []  # that the peer has ended
        self.problems: list[JMSError] = []  # that no call waits for

    def __bool__(self) -> bool:
        return bool(self.awake or self.answers or self.links or self.problems)

    def answer(self, pending: Pending, error: JMSError | None = None, value: object = None) -> None:
        """The answer to a request."""
        self.answers.append((pending, error, value))

    def notify(self, on_error: Callable[[JMSError], None]) -> None:
        """Everybody, once; deliveries first, since an answer comes after what came before it."""
        for events in self.awake:
            events.waiter.wake()
        for pending, error, value in self.answers:
            finish(pending, error, value)
        for events, link, problem in self.links:
            events.on_link_closed(link, problem)
        for problem in self.problems:
            on_error(problem)
