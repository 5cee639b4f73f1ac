"""Asks for the number of messages on the queues: beside the stream, which never waits for it and never fails for it."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from typing import Any, Final

import redelivery
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, JMSError, RequestTimeoutError
from redelivery.model.messages import Message
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import LOST, connect
from redelivery.spark.options.values import brokers
from redelivery.transports.dialects.amqp import DepthQuestion
from redelivery.transports.dialects.detect import depth_question

log = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 30.0  # seconds between two questions, and between two attempts to connect
_STOP_SECONDS: Final = 2.0
_ENOUGH: Final = 5  # answers without a number, or none, that are no accident: a queue may be made a moment later


class QueueDepth:
    """A connection of its own, and a thread that asks from the moment this is made until it is closed.

    The sum of all queues is reported. Where one is a topic or a pattern, and where the broker cannot report it, nothing
    is asked. ``every``: seconds between an answer and the next question. ``patience``: that an answer may take.
    """

    def __init__(self, options: SourceOptions, *, every: float = 1.0, patience: float = 5.0) -> None:
        self._options = options
        self._every = every
        self._patience = patience
        self._pause = every
        self._number: int | None = None
        self._reports = False  # a number has arrived
        self._wrong = 0
        self._unanswered = 0
        self._connection: redelivery.Connection | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="redelivery-depth", daemon=True)
        places = options.destinations
        amqp = any(each.scheme.startswith("amqp") for each in brokers(options.url))  # over STOMP no broker is asked
        if amqp and all(each.scheme == "queue" and not each.is_pattern for each in places):
            self._thread.start()

    def report(self) -> dict[str, int]:
        """`queueDepth`, as it was about a second ago; nothing where it is not known."""
        number = self._number
        return {} if number is None else {"queueDepth": number}

    def close(self) -> None:
        """End the connection. Twice is harmless; a broker that does not answer is not waited for."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            connection.close()  # which ends the waiting for an answer
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        policy = ReconnectPolicy(
            maximum_delay=_LONGEST_PAUSE, timeout=min(_STOP_SECONDS, self._patience), warn_after_attempts=0
        )
        try:
            with connect(self._options, stopped=self._closed, reconnect=policy, patience=self._patience) as connection:
                connection.exception_listener = _log_quietly
                self._connection = connection
                while not self._closed.is_set() and self._ask(connection):
                    self._closed.wait(self._pause)
        except JMSError as error:
            if not self._closed.is_set():
                log.warning("no queueDepth: the broker does not report it for %s: %s", self._options.source, error)
        finally:
            self._number = None

    def _ask(self, connection: redelivery.Connection) -> bool:
        """Once; False: this broker cannot be asked. Raises JMSError: asking again would not bring a number."""
        question = depth_question(connection.dialect)
        if question is None:
            return False
        if not connection.metadata.protocol.startswith("AMQP"):  # the other broker of a list
            self._number = None
            return True
        total = 0
        try:
            for each in self._options.destinations:
                answer, number = self._answered(connection, question, each.name)
                if number is None:
                    self._number = None
                    self._note(each, answer)
                    return True
                total += number
        except JMSError as error:
            self._number = None
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            connection.check_open("queueDepth")  # lost for good
            if not self._curable(error):
                raise
            _log_quietly(error)
            return True
        self._number, self._reports, self._pause = total, True, self._every
        return True

    def _answered(
        self, connection: redelivery.Connection, question: DepthQuestion, name: str
    ) -> tuple[Message, int | None]:
        if question.path_separator:
            name = name.rpartition(question.path_separator)[2]
        properties = {key: value.replace("{queue}", name) for key, value in question.properties}
        answer = connection.request(question.address, question.body, self._patience, properties=properties)
        return answer, read_depth(question, answer)

    def _curable(self, error: JMSError) -> bool:
        """Check whether another question may bring a number."""
        if self._reports:
            return True  # a refusal now is that of a broker that is just starting again
        if isinstance(error, RequestTimeoutError):
            self._unanswered += 1  # perhaps nobody reads there
            return self._unanswered < _ENOUGH
        return isinstance(error, (*LOST, InDoubtError))

    def _note(self, place: Destination, answer: Message) -> None:
        self._wrong += 1
        if self._wrong == _ENOUGH:
            log.warning(
                "no queueDepth of %s for now: the broker answered %s %.200s",
                place,
                dict(answer.properties),
                answer.body,
            )


def read_depth(question: DepthQuestion, answer: Message) -> int | None:
    """The number in an answer; None where there is none."""
    key, value = question.success
    if answer.properties.get(key) != value:
        return None
    found: Any = answer.body
    if question.field is not None:
        found = found.get(question.field) if isinstance(found, dict) else None
    elif isinstance(found, str):
        text, found = found, None
        with suppress(ValueError):
            found = json.loads(text)
        found = found[0] if isinstance(found, list) and len(found) == 1 else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _log_quietly(error: JMSError) -> None:
    log.debug("the connection that asks for queueDepth: %s", error)
