"""How many messages are on the queue: asked beside the stream, which never waits for it and never fails for it."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final
from uuid import uuid4

import redelivery
from redelivery.model.errors import InDoubtError, JMSError, RequestTimeoutError
from redelivery.model.messages import Message
from redelivery.policies.connection_url import parse_connection_url
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import LOST, factory
from redelivery.transports.dialects.detect import depth_question
from redelivery.transports.dialects.dialect import DepthQuestion
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 30.0  # seconds between two connections
_STOP_SECONDS: Final = 2.0
_ENOUGH: Final = 5  # answers without a number, or none, that are no accident: a queue may be made a moment later


class QueueDepth:
    """A connection of its own, and a thread that asks from the moment this is made until it is closed.

    Args:
        options: whose queue. Of a topic, a pattern, and where the broker cannot report it, nothing is asked.
        every: seconds between an answer and the next question.
        patience: seconds that an answer may take; then the connection is made anew.
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
        self._answers: SimpleQueue[Message | None] = SimpleQueue()  # None: it is closed
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="redelivery-depth", daemon=True)
        place = options.destination
        amqp = parse_connection_url(options.url).scheme.startswith("amqp")  # over STOMP no broker is asked
        if amqp and place.scheme == "queue" and not place.is_pattern:
            self._thread.start()

    def report(self) -> dict[str, int]:
        """`queueDepth`, as it was about a second ago; nothing where it is not known."""
        number = self._number
        return {} if number is None else {"queueDepth": number}

    def close(self) -> None:
        """End the connection. Twice is harmless; a broker that does not answer is not waited for."""
        self._closed.set()
        self._answers.put(None)
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with factory(self._options, patience=self._patience).create_connection() as connection:
                    connection.exception_listener = _log_quietly
                    question = depth_question(connection.dialect)
                    if question is None:
                        return
                    self._keep_asking(connection, question)
            except JMSError as error:
                if not self._curable(error):
                    log.warning(
                        "no queueDepth: the broker does not report it for %s: %s", self._options.destination, error
                    )
                    return
                _log_quietly(error)
            finally:
                self._number = None
            self._closed.wait(self._pause)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _curable(self, error: JMSError) -> bool:
        """Whether another connection may bring a number."""
        if self._reports:
            return True  # a refusal now is that of a broker that is just starting again
        if isinstance(error, RequestTimeoutError):
            self._unanswered += 1  # perhaps nobody reads there, and each question stays in a queue
            return self._unanswered < _ENOUGH
        return isinstance(error, (*LOST, InDoubtError))

    def _keep_asking(self, connection: redelivery.Connection, question: DepthQuestion) -> None:
        with connection.session() as listening, connection.session() as asking:  # a listener has its session alone
            inbox = listening.temporary_queue()
            listening.consumer(inbox).listen(self._answers.put)
            producer = asking.producer(question.address)
            name = self._options.destination.name
            if question.path_separator:
                name = name.rpartition(question.path_separator)[2]
            properties = {key: value.replace("{queue}", name) for key, value in question.properties}
            while not self._closed.is_set():
                wanted = uuid4().hex
                producer.send(question.body, properties=properties, correlation_id=wanted, reply_to=inbox)
                answer = self._answer(wanted)
                if answer is None:
                    return
                self._number = read_depth(question, answer)
                if self._number is None:
                    self._note(answer)
                else:
                    self._reports, self._pause = True, self._every
                self._closed.wait(self._every)

    def _answer(self, wanted: str) -> Message | None:
        until = monotonic() + self._patience
        while True:
            try:
                message = self._answers.get(timeout=max(0.0, until - monotonic()))
            except Empty:
                raise RequestTimeoutError(f"the broker did not answer within {self._patience:g} s") from None
            if message is None or message.correlation_id == wanted:
                return message

    def _note(self, answer: Message) -> None:
        self._wrong += 1
        if self._wrong == _ENOUGH:
            log.warning(
                "no queueDepth of %s for now: the broker answered %s %.200s",
                self._options.destination,
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
