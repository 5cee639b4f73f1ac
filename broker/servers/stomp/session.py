"""Serves one STOMP client: ActiveMQ Classic's rules, over the engine.

A refusal is an ERROR and the session goes on; what breaks the protocol ends it (`HangUpError`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from redelivery.broker.core import Core
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.servers.stomp.addresses import Addresses
from redelivery.broker.servers.stomp.messages import read_send
from redelivery.broker.servers.stomp.refusals import HangUpError, check_limits, error_frame
from redelivery.broker.servers.stomp.subscriptions import ClientOutput, ServedSubscription, origin, removed
from redelivery.model.errors import (
    InvalidClientIDError,
    InvalidDestinationError,
    JMSError,
    ProtocolError,
    SecurityError,
)
from redelivery.model.version import VERSION
from redelivery.transports.stomp.codec.frames import VERSIONS, Frame, encode
from redelivery.transports.wire.clock import epoch_ms

SHORTEST_BEAT: Final = 10  # milliseconds: more often is a burden for nothing
_RECEIPT: Final = b"\nreceipt:"
_heart_beat = re.compile(r"(\d{1,9}),(\d{1,9})", re.ASCII)


class StompServerSession:
    """One client; everything but the queueing of messages runs on the listener's thread.

    ``name`` is the origin of its messages, ``output`` where its client's answers and messages go.
    """

    def __init__(self, core: Core, name: str, output: ClientOutput) -> None:
        self.name = name
        self.version = "1.2"
        self.connected = False
        self.promised_ms = 0  # between the client's signs of life, 0 for none
        self.wanted_ms = 0  # between ours
        self.ended = False
        self._core = core
        self._client_id: str | None = None
        self._output = output
        self._addresses = Addresses(core, name)
        self._subscriptions: dict[str, ServedSubscription] = {}
        self._subscribed = 0
        self._transactions: dict[str, Transaction] = {}
        self._commands: dict[str, Callable[[Frame], bool | None]] = {
            "CONNECT": self._connect,
            "STOMP": self._connect,
            "SEND": self._send,
            "SUBSCRIBE": self._subscribe,
            "UNSUBSCRIBE": self._unsubscribe,
            "ACK": self._ack,
            "NACK": self._nack,
            "BEGIN": self._begin,
            "COMMIT": self._end_transaction,
            "ABORT": self._end_transaction,
            "DISCONNECT": self._disconnect,
        }

    def execute(self, frame: Frame) -> None:
        """Do what a frame says, and answer it.

        Raises:
            HangUpError: the frame breaks the protocol; the client has its ERROR.
        """
        receipt = frame.raw(_RECEIPT)  # echoed as it stands: whatever it is, the client could write it
        try:
            check_limits(frame)
            try:
                _ = frame.headers
            except ProtocolError as error:
                raise HangUpError(str(error)) from error
            command = frame.command
            if not self.connected and command not in ("CONNECT", "STOMP"):
                raise HangUpError(f"Not connected: {command} came before CONNECT")
            if command not in self._commands:
                raise HangUpError(f"Unknown STOMP action: {command}")
            if not self._commands[command](frame):
                self._receipt(receipt)
        except JMSError as error:
            self.refuse(error, receipt)
            if isinstance(error, HangUpError):
                raise

    def refuse(self, error: JMSError, receipt: bytes | None) -> None:
        """Answer ERROR."""
        self._output.answer(error_frame(error, receipt, self.version))

    def end(self) -> None:
        """The client is gone: its transactions are rolled back, what it held is released. Idempotent."""
        if not self.connected:
            return
        self.connected = False

        def leave(engine: Engine, now: int) -> None:
            for transaction in self._transactions.values():
                engine.rollback(transaction, now)
            for each in self._subscriptions.values():
                engine.unsubscribe(each.subscription, now, all_seen=False, manner=Manner.DISCONNECTED)
            for temporary in self._addresses.end():
                engine.drop_temporary(temporary)

        self._core.disconnect(self)
        self._core.call(leave)
        self._transactions.clear()
        self._subscriptions.clear()

    def end_subscription(self, subscription: ServedSubscription) -> None:
        """The broker ends it, and says nothing: what was sent counts."""
        if self._subscriptions.get(subscription.identifier) is subscription:
            del self._subscriptions[subscription.identifier]
        ended = subscription.subscription
        self._core.call(lambda engine, now: engine.unsubscribe(ended, now, all_seen=False, manner=Manner.LOST))

    def broker_closed(self, reason: str) -> None:
        """The listener has closed the connection before."""

    # The commands; True: it has answered with its receipt.

    def _connect(self, frame: Frame) -> None:
        if self.connected:
            raise HangUpError("Already connected.")
        headers = frame.headers
        accepted = [each.strip() for each in headers.get("accept-version", "1.0").split(",")]
        version = next((each for each in VERSIONS if each in accepted), None)
        if version is None:
            raise HangUpError(
                f"Invalid Protocol version[{', '.join(accepted)}], supported versions are: [{', '.join(VERSIONS)}]"
            )
        beats = _heart_beat.fullmatch(headers.get("heart-beat", "0,0").replace(" ", ""))
        if beats is None:
            raise HangUpError("Invalid heart-beat header: two numbers of milliseconds are needed")
        login = headers.get("login")
        if not self._core.config.admits(login, headers.get("passcode")):
            refused = SecurityError(f"User name [{login}] or password is invalid.")
            raise HangUpError(str(refused)) from refused
        try:
            self._core.connect(self, headers.get("client-id"))
        except InvalidClientIDError as error:
            raise HangUpError(str(error)) from error
        self._client_id = headers.get("client-id")
        self.connected = True
        self.version = version
        self.promised_ms, self.wanted_ms = (
            max(int(each), SHORTEST_BEAT) if int(each) else 0 for each in beats.groups()
        )
        answer = {
            "version": version,
            "server": f"{self._core.dialect.server_prefix}{VERSION}",
            "heart-beat": f"{self.wanted_ms},{self.promised_ms}",
            "session": self.name,
        }
        self._output.answer(encode("CONNECTED", answer))

    def _send(self, frame: Frame) -> None:
        if not frame.headers.get("destination"):
            raise ProtocolError("SEND received without a Destination specified!")
        transaction = self._transaction(frame)
        sender = origin(self.name, self._client_id)
        stored = read_send(frame, self._core.new_id(), self._addresses, now=epoch_ms(), origin=sender)
        if transaction is None:
            self._core.call(lambda engine, now: engine.send(stored, now))
        else:
            self._core.call(lambda engine, _now: engine.enlist_send(transaction, stored))

    def _subscribe(self, frame: Frame) -> bool:
        headers = frame.headers
        identifier = headers.get("id") or (headers.get("destination") if self.version == "1.0" else None)
        if not identifier:
            raise ProtocolError("SUBSCRIBE received without a subscription id!")
        if not headers.get("destination"):
            raise ProtocolError("SUBSCRIBE received without a Destination specified!")
        if identifier in self._subscriptions:
            raise ProtocolError(f"There already is a subscription for: {identifier}")
        self._subscribed += 1
        subscription = ServedSubscription(
            identifier, self._subscribed, headers, self.name, self._client_id, self._addresses, self._output
        )
        if subscription.browses and self.version == "1.0":
            raise ProtocolError("Queue Browser feature only valid for Stomp v1.1+ clients!")

        def start(engine: Engine, now: int) -> None:
            if subscription.browses:
                engine.browse(subscription.subscription, selector=subscription.selector)
            else:
                engine.subscribe(subscription.subscription, selector=subscription.selector)
            self._receipt(frame.raw(_RECEIPT))  # before its first message
            engine.start(subscription.subscription, now)

        self._core.call(start)
        self._subscriptions[identifier] = subscription
        return True

    def _unsubscribe(self, frame: Frame) -> None:
        headers = frame.headers
        if removed(headers) is not None:
            self._remove(removed(headers))
            return
        name = self._addresses.removed(headers)
        subscription = self._subscriptions.pop(headers.get("id") or headers.get("destination", ""), None)
        if subscription is not None:
            self._core.call(lambda engine, now: engine.unsubscribe(subscription.subscription, now, all_seen=False))
        elif name is None:
            raise ProtocolError("No subscription matched.")
        with suppress(InvalidDestinationError):  # there is none: no error, as there
            self._remove(name)

    def _remove(self, name: str | None) -> None:
        """Remove a durable subscription."""
        if name is not None:
            self._core.call(lambda engine, _now: engine.remove_subscription(name, self._client_id))

    def _ack(self, frame: Frame) -> None:
        transaction = self._transaction(frame)
        found = self._named(frame)
        if found is None:
            return
        subscription, dispatch = found
        dispatches = subscription.covered(dispatch)
        if transaction is None or not self._core.rules.enlists_acks:
            self._core.call(lambda engine, now: engine.acknowledge(dispatches, now))
        else:
            self._core.call(lambda engine, now: engine.enlist(transaction, dispatches, now))

    def _nack(self, frame: Frame) -> None:
        if self.version == "1.0":
            raise ProtocolError("NACK received but connection is in v1.0 mode.")
        transaction = self._transaction(frame)
        found = self._named(frame)
        if found is None:
            return
        if transaction is not None:
            raise ProtocolError("Poison ack cannot be transacted")
        self._core.call(lambda engine, now: engine.poison(found[1], None, now, Manner.NACKED))

    def _begin(self, frame: Frame) -> None:
        name = _transaction_name(frame)
        if name in self._transactions:
            raise ProtocolError(f"The transaction was already started: {name}")
        self._transactions[name] = Transaction()

    def _end_transaction(self, frame: Frame) -> None:
        name = _transaction_name(frame)
        transaction = self._known(name)
        del self._transactions[name]
        end = Engine.commit if frame.command == "COMMIT" else Engine.rollback
        self._core.call(lambda engine, now: end(engine, transaction, now))

    def _disconnect(self, frame: Frame) -> bool:
        self.end()
        self._receipt(frame.raw(_RECEIPT))
        self.ended = True
        return True

    def _named(self, frame: Frame) -> tuple[ServedSubscription, Dispatch] | None:
        """The delivery that an ACK or NACK names; None where its subscription has ended: Classic ignores that."""
        headers = frame.headers
        if self.version == "1.2":
            named = headers.get("id")
            if not named:
                raise ProtocolError(f"{frame.command} received without a ack id for acknowledge!")
            for subscription in self._subscriptions.values():
                dispatch = subscription.named(named)
                if dispatch is not None:
                    return subscription, dispatch
            if self._was_dispatched(named):
                return None
        else:
            named = headers.get("message-id")
            if not named:
                raise ProtocolError(f"{frame.command} received without a message-id to acknowledge!")
            one = headers.get("subscription")
            for subscription in self._subscriptions.values():
                if one in (None, subscription.identifier):
                    dispatch = subscription.sent(named)
                    if dispatch is not None:
                        return subscription, dispatch
        raise ProtocolError(f"Unexpected {frame.command} received for message-id [{named}]")

    def _was_dispatched(self, ack: str) -> bool:
        """Check whether the ack id was of a subscription of this session that has ended since."""
        number, _, _ = ack.removeprefix(f"{self.name}:").partition(":")
        if not number.isdigit() or not ack.startswith(f"{self.name}:"):
            return False
        live = {subscription.number for subscription in self._subscriptions.values()}
        return int(number) <= self._subscribed and int(number) not in live

    def _transaction(self, frame: Frame) -> Transaction | None:
        name = frame.headers.get("transaction")
        return None if name is None else self._known(name)

    def _known(self, name: str) -> Transaction:
        if name not in self._transactions:
            raise ProtocolError(f"Invalid transaction id: {name}")
        return self._transactions[name]

    def _receipt(self, receipt: bytes | None) -> None:
        if receipt is not None:
            self._output.answer(b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt)


def _transaction_name(frame: Frame) -> str:
    name = frame.headers.get("transaction")
    if not name:
        raise ProtocolError("Must specify the transaction you are working with!")
    return name
