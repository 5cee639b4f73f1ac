"""Queues that are there are taken as they are, where the name that makes one refuses those of other arguments.

RabbitMQ has two names for a queue over STOMP: one makes it, and ends the connection where it is there with other
arguments; the other one makes none, and confirms what is sent to a queue that is not there, which is lost. So only such
a refusal proves that the second one can be used. It is asked for on a connection of its own, by a SEND in a transaction
that is undone: that makes the queue, or is refused, and sends nothing.

Where a queue is not to be made, the same is asked with arguments that no queue can have: whether it is refused for what
is there, or for the arguments, says whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    ConnectError,
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    RequestTimeoutError,
    SecurityError,
)
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.dialects.refusals import STOMP_WORDS
from redelivery.transports.finding import Meaning
from redelivery.transports.seam import Flow
from redelivery.transports.stomp.beside import Login, ask
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import encode
from redelivery.transports.stomp.codec.names import to_wire
from redelivery.transports.wire.clock import monotonic

_NAME: Final = "redelivery-look"  # of the transaction and the receipt
_LOOKS: Final = 3  # at a queue: of a thousand refusals RabbitMQ 4.3 says two with other words ("Processing error")


class QueueFinder:
    """Finds what destinations are, for one connection.

    Args:
        log_in: opens a further connection.
        dialect: the broker's.
        timeout: seconds that its answer may take.
        meaning: of destinations.

    Attributes:
        others: queues that have other arguments, by name, with the refusal that said so.
    """

    def __init__(
        self, log_in: Callable[[], Flow[Login]], dialect: StompDialect, timeout: float, meaning: Meaning | None = None
    ) -> None:
        self._meaning = meaning or Meaning()
        self.others: dict[str, str] = {}
        self._log_in = log_in
        self._dialect = dialect
        self._timeout = timeout
        self._known: set[str] = set()

    def must_find(self, destination: Destination | None) -> bool:
        """Check whether it is a queue of which nothing is known yet, or, of one not to be made, that it is there."""
        queue = None if destination is None else self._meaning.of(destination)
        return type(queue) is Queue and queue.name not in (self._known if queue.declare else self.others)

    def forget(self, destination: Destination) -> None:
        """See `Finder.forget`."""
        destination = self._meaning.of(destination)
        self._known.discard(destination.name)
        self.others.pop(destination.name, None)

    def find(self, destination: Destination) -> Flow[None]:
        """Make the queue, unless there is one. What is refused for another reason is refused to who uses it, too.

        Raises:
            InvalidDestinationError: it is not there, and not to be made.
            SecurityError: it is not to be made, and one who may not make it cannot look whether it is there.
            ConnectionLostError, RequestTimeoutError: the broker does not answer.
        """
        destination = self._meaning.of(destination)
        for _ in range(_LOOKS):
            refusal = yield from self._ask_once(destination)
            if refusal is not None and not _declares(destination):
                self._check_there(destination, refusal)
            if refusal is not None and self._dialect.other_queue_refusal in refusal.lower():
                self.others[destination.name] = refusal
            if refusal is None or destination.name in self.others:
                self._known.add(destination.name)
                return
        if refusal is not None and not _declares(destination):
            raise JMSError(f"{destination}: {refusal}")  # it may be there

    def _ask_once(self, destination: Destination) -> Flow[str | None]:
        """The refusal; None: it is there, as we would make it."""
        try:
            login = yield from self._log_in()
        except ConnectError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise RequestTimeoutError(f"looking for {destination}: {error}") from error
            raise ConnectionLostError(f"looking for {destination}: {error}") from error
        try:
            return (yield from self._ask(login, destination))
        except TimeoutError:
            raise RequestTimeoutError(
                f"looking for {destination}: the broker did not answer within {self._timeout:g} s"
            ) from None
        finally:
            login[0].close()

    def _check_there(self, destination: Destination, refusal: str) -> None:
        """Raise where the refusal says that it is not there, or that it cannot be said."""
        if self._dialect.absent_refusal in refusal.lower():
            raise InvalidDestinationError(
                f"{destination}: there is no such queue, and it is not to be made (declare=False)"
            )
        if any(word in refusal.lower() for word, kind in STOMP_WORDS if kind is SecurityError):
            raise SecurityError(
                f"{destination}: over STOMP, who may not make a queue cannot look whether it is there, and what is "
                f"sent to one that is not there would be lost: use amqp://, or let this user make it: {refusal}"
            )

    def _ask(self, login: Login, destination: Destination) -> Flow[str | None]:
        question = self._question(destination, login[1].version)
        try:
            answer = yield from ask(login, question, _NAME, monotonic() + self._timeout)
        except ConnectionLostError as error:
            raise ConnectionLostError(f"looking for {destination}: {error}") from error
        return str(broker_error(answer)) if answer.command == "ERROR" else None

    def _question(self, destination: Destination, version: str) -> bytes:
        """The last SEND is answered when all before it is done, and goes nowhere.

        (A SUBSCRIBE is answered, or refused in other words, where the queue was.)
        """
        dialect, transaction = self._dialect, ("transaction", _NAME)
        name = to_wire(Queue(destination.name), dialect)
        send = [transaction, ("destination", name), ("persistent", "true")]
        if not _declares(destination):
            send += dialect.impossible
        last = [("receipt", _NAME), ("destination", dialect.unsubscribe_keeps or "")]
        frames = (("BEGIN", [transaction]), ("SEND", send), ("ABORT", [transaction]), ("SEND", last))
        return b"".join(encode(command, headers, version=version) for command, headers in frames)


def _declares(destination: Destination) -> bool:
    return not isinstance(destination, Queue) or destination.declare
