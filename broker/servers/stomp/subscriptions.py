"""A STOMP client's subscription: how its messages are written, and which of them an ACK names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from redelivery.broker.engine.stored import END_OF_QUEUE
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.servers.stomp.messages import TRANSFORMATION, read_destination, write_destination, write_message
from redelivery.model.destinations import Topic
from redelivery.model.errors import ProtocolError, UnsupportedError
from redelivery.transports.stomp.codec.frames import encode

AUTO, CLIENT, INDIVIDUAL = "auto", "client", "client-individual"
# ActiveMQ's defaults; `auto` acknowledges what was written, so there the window is what may be unwritten
QUEUE_PREFETCH: Final = 1000
TOPIC_PREFETCH: Final = 32767
BROWSER_PREFETCH: Final = 500
_UNSUPPORTED: Final = {
    "activemq.subscriptionName": "durable subscriptions",
    "durable-subscription-name": "durable subscriptions",
    "selector": "selectors",
}


class ClientOutput(Protocol):
    """What a client is to read, in order."""

    def answer(self, frame: bytes) -> None:
        """Add a frame that answers it."""

    def dispatch(self, subscription: StompSubscription, dispatch: Dispatch) -> None:
        """Add a message; only that, for the broker's lock is held."""

    def wake(self) -> None:
        """Have it written. From any thread."""


class StompSubscription:
    """One SUBSCRIBE. Raises UnsupportedError, InvalidDestinationError or ProtocolError for what it cannot do."""

    def __init__(
        self,
        identifier: str,
        number: int,
        headers: Mapping[str, str],
        session: str,
        output: ClientOutput,
    ) -> None:
        for name, what in _UNSUPPORTED.items():
            if headers.get(name, "") not in ("", "false"):
                raise UnsupportedError(f"header {name}: the embedded broker has no {what}")
        destination = read_destination(headers["destination"])
        self.identifier = identifier
        self.number = number
        self.ack = headers.get("ack", AUTO) if headers.get("ack") in (CLIENT, INDIVIDUAL) else AUTO
        self._transformation = headers.get(TRANSFORMATION)
        self._prefix = f"{session}:{number}:"
        self._output = output
        self.browses = headers.get("browser") == "true"
        default = BROWSER_PREFETCH if self.browses else QUEUE_PREFETCH
        if isinstance(destination, Topic):
            default = TOPIC_PREFETCH
        window = default if self.ack == AUTO else _window(headers.get("activemq.prefetchSize"), default)
        no_local = "true" in (headers.get("no-local"), headers.get("activemq.noLocal"))
        self.subscription = Subscription(destination, self, prefetch=window, no_local=no_local, origin=session)

    def append(self, dispatch: Dispatch, /) -> None:
        """Add it behind what the client is to read already."""
        self._output.dispatch(self, dispatch)

    def wake(self) -> None:
        """Have it written."""
        self._output.wake()

    def frame(self, dispatch: Dispatch, version: str) -> bytes:
        """The MESSAGE of a dispatch; from now on it counts as seen. The end of a browsed queue is written as one."""
        dispatch.seen = True
        message = dispatch.message
        if message is END_OF_QUEUE:
            return encode("MESSAGE", self._end(), version=version)
        headers = {"subscription": self.identifier}
        if version == "1.2" and self.ack != AUTO:
            headers["ack"] = f"{self._prefix}{dispatch.number}"
        if dispatch.count > 1:
            headers["redelivered"] = "true"
        return write_message(message, headers, version=version, transformation=self._transformation)

    def named(self, ack: str) -> Dispatch | None:
        """The dispatch of a 1.2 ack id; None where it is not held (any more)."""
        number = ack.removeprefix(self._prefix)
        if number == ack or not number.isdigit():
            return None
        return self._held(self.subscription.in_flight.get(int(number)))

    def sent(self, message_id: str) -> Dispatch | None:
        """The dispatch of a message id, for STOMP 1.1 and 1.0."""
        for dispatch in self.subscription.in_flight.values():
            if dispatch.message.message_id == message_id:
                return self._held(dispatch)
        return None

    def covered(self, dispatch: Dispatch) -> list[Dispatch]:
        """What an ACK of it acknowledges: with ``ack:client`` all up to it."""
        if self.ack == INDIVIDUAL:
            return [dispatch]
        return [
            each
            for number, each in self.subscription.in_flight.items()
            if number <= dispatch.number and not each.enlisted
        ]

    def _end(self) -> Mapping[str, str]:
        return {
            "subscription": self.identifier,
            "browser": "end",
            "destination": write_destination(self.subscription.destination),
            "message-id": END_OF_QUEUE.message_id,
        }

    def _held(self, dispatch: Dispatch | None) -> Dispatch | None:
        if dispatch is None or dispatch.enlisted or self.ack == AUTO or not dispatch.seen:
            return None
        return dispatch


def _window(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ProtocolError(f"activemq.prefetchSize:{text[:20]} is not a number of messages")
    return int(text)
