"""Queues of addresses for a user to whom the broker's management says nothing: found by what the broker refuses.

None of these frames makes a queue that the application has not named whole. Each has a connection of its own, since a
refusal ends it. What they cannot tell is refused: a queue of an address' own name gets a part of the messages of those
that the address has, and a message to an address without a queue is confirmed and gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from redelivery.model.errors import (
    ConnectError,
    ConnectionLostError,
    JMSError,
    RequestTimeoutError,
    SecurityError,
)
from redelivery.transports.dialects.dialect import AddressQuestion, Headers, StompDialect
from redelivery.transports.finding import QUALIFIED
from redelivery.transports.seam import Flow
from redelivery.transports.stomp.beside import Login, ask
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import encode
from redelivery.transports.stomp.codec.names import QueueRoute
from redelivery.transports.wire.clock import monotonic

_NAME: Final = "redelivery-look"  # of the receipt, the transaction and the subscription


class QueueLooks:
    """QueueLooks for the queue of a name, for one connection.

    Args:
        log_in: opens a further connection.
        dialect: the broker's.
        timeout: seconds that each answer may take.
    """

    def __init__(self, log_in: Callable[[], Flow[Login]], dialect: StompDialect, timeout: float) -> None:
        assert dialect.addresses is not None, "its table says how"
        self._log_in = log_in
        self._dialect = dialect
        self._question: AddressQuestion = dialect.addresses
        self._timeout = timeout

    def way_to(self, name: str) -> Flow[QueueRoute | None]:
        """The way to a queue's name as `route_to` returns it.

        Raises:
            SecurityError: no queue of that name can be seen, and to make it might make one more.
            JMSError: it is not there, and neither this user nor the broker makes it.
            ConnectionLostError, RequestTimeoutError: the broker does not answer.
        """
        address, whole, _ = name.rpartition(QUALIFIED)
        address = address or name
        may = yield from self._ask(name, self._consumer(f"{address}{QUALIFIED}"))
        if may is None or self._question.attach_failed in str(may):  # this address gets no queues by their names
            return QueueRoute(name, (), name, selects=None)
        if self._question.unnamed not in str(may):  # nor does it by this user
            return (yield from self._there(name if whole else f"{name}{QUALIFIED}{name}"))
        if whole:
            yield from self._ask(name, self._undone_send(name))  # makes it of the kind of a queue, if it is not there
            return QueueRoute(name, (), name)
        # As a durable subscription, for which the address of a topic wants a client id; else the name is a queue's.
        subscription = (*self._dialect.consume_topic, (self._dialect.subscription_header, _NAME))
        if (yield from self._ask(name, self._consumer(name, subscription))) is None:
            return None
        raise SecurityError(f"queue://{name}: over STOMP this user sees no queue of that name, and {self._advice}")

    def _there(self, name: str) -> Flow[QueueRoute]:
        """The way to a queue that is not made: an error if it is not there."""
        refusal = yield from self._ask(name, self._consumer(name))
        if refusal is None or self._question.attach_failed in str(refusal):  # it is, but not to be consumed
            return QueueRoute(name, (), name, selects=None)
        raise type(refusal)(f"queue://{name}: {refusal}; {self._advice}") from refusal

    @property
    def _advice(self) -> str:
        return (
            f"which others its address has is said to those only who may send to {self._question.node}; one that is "
            "made beside them would get a part of the messages: give this user the permission `manage` there, or the "
            f"client the broker's file (policies=); name the queue with its address (address{QUALIFIED}queue), or use "
            "amqp://"
        )

    def _consumer(self, name: str, headers: Headers = ()) -> tuple[tuple[str, Headers], ...]:
        its = *self._question.takes_nothing, ("receipt", _NAME), *headers
        return (("SUBSCRIBE", (("destination", name), ("id", _NAME), *its)),)

    def _undone_send(self, name: str) -> tuple[tuple[str, Headers], ...]:
        transaction = ("transaction", _NAME)
        send = (("destination", name), transaction, ("persistent", "true"), *self._dialect.send_to_queue)
        return ("BEGIN", (transaction,)), ("SEND", send), ("ABORT", (transaction, ("receipt", _NAME)))

    def _ask(self, name: str, frames: tuple[tuple[str, Headers], ...]) -> Flow[JMSError | None]:
        """The refusal."""
        try:
            login = yield from self._log_in()
        except ConnectError as error:
            raise ConnectionLostError(f"looking for {name}: {error}") from error
        data = b"".join(encode(command, headers, version=login[1].version) for command, headers in frames)
        try:
            answer = yield from ask(login, data, _NAME, monotonic() + self._timeout)
        except TimeoutError:
            raise RequestTimeoutError(
                f"looking for {name}: the broker did not answer within {self._timeout:g} s"
            ) from None
        except ConnectionLostError as error:
            raise ConnectionLostError(f"looking for {name}: {error}") from error
        finally:
            login[0].close()
        return broker_error(answer) if answer.command == "ERROR" else None
