"""Somebody who answers, on an embedded broker, what Artemis would be asked at `activemq.management`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

import redelivery
from redelivery import InvalidDestinationError, Message
from redelivery.broker import EmbeddedBroker
from redelivery.transports.wire.clock import monotonic

PATIENCE = 20.0
Answer = Callable[[Message], Sequence[Message]]


def says(text: object, *, succeeded: object = True, correlation_id: str | None = None) -> Answer:
    """An answer of one message."""

    def answer(request: Message) -> Sequence[Message]:
        asked = request.correlation_id
        return (
            Message(text, properties={"_AMQ_OperationSucceeded": succeeded}, correlation_id=correlation_id or asked),
        )

    return answer


def says_nothing(_request: Message) -> Sequence[Message]:
    """No answer."""
    return ()


def says_all(*answers: Answer) -> Answer:
    """One after the other."""
    return lambda request: [message for each in answers for message in each(request)]


class Manager:
    """Answers the first request with the first of ``answers``, and so on; the last is used again."""

    def __init__(self, broker: EmbeddedBroker, *answers: Answer) -> None:
        self._broker = broker
        self._answers = list(answers)
        self._changed = threading.Condition()
        self._opened = ExitStack()
        self.requests: list[Message] = []
        self.times: list[float] = []

    def __enter__(self) -> Self:
        connection = self._opened.enter_context(redelivery.connect(self._broker.vm_url))
        session = connection.session()
        producer = session.producer()

        def serve(request: Message) -> None:
            with self._changed:
                self.requests.append(request)
                self.times.append(monotonic())
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                self._changed.notify_all()
            with suppress(InvalidDestinationError):  # who asked has left
                for message in answer(request):
                    producer.send(message, request.reply_to)

        session.consumer("activemq.management").listen(serve)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def wait_for(self, requests: int) -> None:
        """Until so many have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= requests, PATIENCE), "nobody asks"


def until(holds: Callable[[], bool]) -> None:
    """For what only a look can tell."""
    end, pause = monotonic() + PATIENCE, threading.Event()
    while not holds():
        assert monotonic() < end, "it has not come to that"
        pause.wait(0.01)


def askers() -> list[threading.Thread]:
    """The threads that ask for a depth."""
    return [each for each in threading.enumerate() if each.name == "redelivery-depth"]
