"""A STOMP client's subscription: how its messages are written, and which of them an ACK names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from redelivery.broker.engine.stored import END_OF_QUEUE
from redelivery.broker.engine.subscriptions import ByteSubscription, Dispatch, Ending, Subscription
from redelivery.broker.servers.stomp.addresses import Addresses
from redelivery.broker.servers.stomp.messages import TRANSFORMATION, Written, write_message
from redelivery.broker.servers.stomp.spelling import Spelling
from redelivery.model.destinations import Destination, SubscriptionName, Topic
from redelivery.model.errors import ProtocolError, UnsupportedError
from redelivery.model.selectors.selector import Selector
from redelivery.transports.dialects.embedded import HEADERS, PENDING_LIMIT
from redelivery.transports.stomp.codec.frames import encode

AUTO, CLIENT, INDIVIDUAL = "auto", "client", "client-individual"
# ActiveMQ's defaults; `auto` acknowledges what was written, so there the window is what may be unwritten
QUEUE_PREFETCH: Final = 1000
TOPIC_PREFETCH: Final = 32767
BROWSER_PREFETCH: Final = 500
_PREFETCH, _NO_LOCAL, _EXCLUSIVE, _NAME = HEADERS
_UNSUPPORTED: Final = {
    "durable-subscriber-name": f"it: a durable subscription is named by {_NAME}",
    "durable-subscription-name": f"it: a durable subscription is named by {_NAME}",
}


class ClientOutput(Protocol):
    """The queue of what a client is to read, in order."""

    def answer(self, frame: bytes) -> None:
        """Add a frame that answers it."""

    def dispatch(self, subscription: ServedSubscription, dispatch: Dispatch) -> None:
        """Add a message; only that, for the broker's lock is held."""

    def end_slow(self, subscription: ServedSubscription, ending: Ending) -> None:
        """End it, or the connection. From any thread."""

    def wake(self) -> None:
        """Have it written. From any thread."""


class ServedSubscription:
    """One SUBSCRIBE.

    Raises UnsupportedError, InvalidDestinationError, InvalidSelectorError or ProtocolError for what it cannot do.
    """

    def __init__(
        self,
        identifier: str,
        number: int,
        headers: Mapping[str, str],
        session: str,
        client_id: str | None,
        addresses: Addresses,
        output: ClientOutput,
    ) -> None:
        self._spelling = spelling = addresses.spelling_of(headers["destination"])
        for name, what in _UNSUPPORTED.items():
            if spelling is None and headers.get(name, "") not in ("", "false"):
                raise UnsupportedError(f"header {name}: the embedded broker has no {what}")
        destination = addresses.read_consumed(headers)
        self.identifier = identifier
        self.number = number
        self.ack = headers.get("ack", AUTO) if headers.get("ack") in (CLIENT, INDIVIDUAL) else AUTO
        self._transformation = headers.get(TRANSFORMATION)
        self._prefix = f"{session}:{number}:"
        self._output = output
        self._addresses = addresses
        self.browses = headers.get("browser") == "true"
        default = BROWSER_PREFETCH if self.browses else QUEUE_PREFETCH
        if isinstance(destination, Topic):
            default = TOPIC_PREFETCH
        by_bytes = spelling is not None and not self.browses
        usual = by_bytes or (self.browses and self.ack == AUTO)
        window = default if usual else _window(headers.get(_PREFETCH), default)
        no_local = "true" in (headers.get("no-local"), headers.get(_NO_LOCAL))
        condition = headers.get("selector", "")
        self.selector = Selector(condition, lenient=True) if condition.strip() else None  # properties are strings here
        kind = ByteSubscription if by_bytes else Subscription
        self.subscription = kind(
            destination,
            self,
            prefetch=window,
            no_local=no_local,
            origin=origin(session, client_id),
            named=_named(headers, destination, spelling),
            client_id=client_id,
            exclusive=headers.get(_EXCLUSIVE) == "true" and not isinstance(destination, Topic),
        )
        if isinstance(self.subscription, ByteSubscription) and spelling is not None:
            self.subscription.window = spelling.window(headers, acknowledged=self.ack != AUTO)
            self.subscription.returns = self.ack != AUTO
        if "receipt" in headers:
            self.subscription.rated_prefetch = 0  # as ActiveMQ rates it, which opens the window after the receipt
        self.subscription.pending_limit = _window(headers.get(PENDING_LIMIT), 0)

    def append(self, dispatch: Dispatch, /) -> None:
        """Add it behind what the client is to read already."""
        self._output.dispatch(self, dispatch)

    def wake(self) -> None:
        """Have it written."""
        self._output.wake()

    def end_slow(self, ending: Ending) -> None:
        """See `redelivery.broker.engine.subscriptions.DispatchOutbox`."""
        self._output.end_slow(self, ending)

    def frame(self, dispatch: Dispatch, version: str) -> Written:
        """The MESSAGE of a dispatch, in parts; from now on it counts as seen.

        The end of a browsed queue is written as one.
        """
        dispatch.seen = True
        message = dispatch.message
        if message is END_OF_QUEUE:
            return (encode("MESSAGE", self._end(), version=version),)
        headers = {"subscription": self.identifier}
        if version == "1.2" and self.ack != AUTO:
            headers["ack"] = f"{self._prefix}{dispatch.number}"
        if dispatch.count > 1:
            headers["redelivered"] = "true"
        elif self._spelling is not None:
            headers["redelivered"] = "false"
        return write_message(
            message,
            headers,
            self._addresses,
            version=version,
            transformation=self._transformation,
            spelling=self._spelling,
        )

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
        """The dispatches that an ACK of this one acknowledges: with ``ack:client`` all up to it."""
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
            "destination": self._addresses.write(self.subscription.destination, self._spelling),
            "message-id": END_OF_QUEUE.message_id,
        }

    def _held(self, dispatch: Dispatch | None) -> Dispatch | None:
        if dispatch is None or dispatch.enlisted or self.ack == AUTO or not dispatch.seen:
            return None
        return dispatch


def origin(session: str, client_id: str | None) -> str:
    """The name by which no_local knows a client: its client id, also of its other connections (JMS 3.1 §8.3.3)."""
    return session if client_id is None else f"client-id:{client_id}"


def removed(headers: Mapping[str, str]) -> str | None:
    """The name of the durable subscription that an UNSUBSCRIBE removes; None: it ends a consumer."""
    return headers.get(_NAME) or None


def _named(headers: Mapping[str, str], destination: Destination, spelling: Spelling | None) -> SubscriptionName | None:
    """The named subscription that a SUBSCRIBE is for; beside Classic's header there are ``shared`` and ``durable``."""
    name = headers.get(_NAME) or (None if spelling is None else spelling.subscription_of(headers))
    if not name or (spelling is not None and not isinstance(destination, Topic)):
        return None
    if not isinstance(destination, Topic):
        raise ProtocolError("Invalid Subscription: cannot durably subscribe to a Queue destination!")
    shared, durable = headers.get("shared") == "true", headers.get("durable") != "false"
    if not (shared or durable):
        raise ProtocolError(f"{_NAME}:{name} with durable:false is for a shared subscription: add shared:true")
    return SubscriptionName(name, durable=durable, shared=shared)


def _window(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ProtocolError(f"{_PREFETCH}:{text[:20]} is not a number of messages")
    return int(text)
