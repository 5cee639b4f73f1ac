"""What one STOMP client says and is answered: ActiveMQ Classic's rules, over the engine.

A refusal is an ERROR and the conversation goes on; what breaks the protocol ends it (`HangUpError`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Final

from redelivery.broker.core import Core
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.stomp_messages import read_send
from redelivery.broker.stomp_subscriptions import StompSubscription
from redelivery.model.errors import InvalidClientIDError, JMSError, MessageFormatError, ProtocolError, SecurityError
from redelivery.transports.stomp.frames import VERSIONS, Frame, encode, encode_head
from redelivery.transports.wire.clock import epoch_ms

MAX_HEADERS: Final = 1000  # ActiveMQ's limits
MAX_HEADER: Final = 10 << 10  # bytes of a line
SHORTEST_BEAT: Final = 10  # milliseconds: more often is a burden for nothing
_RECEIPT: Final = b"\nreceipt:"
_heart_beat = re.compile(r"(\d{1,9}),(\d{1,9})", re.ASCII)


class HangUpError(ProtocolError):
    """The client is told, then the connection ends."""


class Conversation:
    """One client; everything but the queueing of messages runs on the server's thread.

    ``say`` takes the frames that answer it, ``queue`` and ``wake`` what is dispatched to it.
    """

    def __init__(
        self,
        core: Core,
        session: str,
        *,
        say: Callable[[bytes], None],
        queue: Callable[[StompSubscription, Dispatch], None],
        wake: Callable[[], None],
    ) -> None:
        self.session = session
        self.version = "1.2"
        self.connected = False
        self.promised_ms = 0  # between the client's signs of life, 0 for none
        self.wanted_ms = 0  # between ours
        self.over = False
        self._core = core
        self._say = say
        self._queue = queue
        self._wake = wake
        self._subscriptions: dict[str, StompSubscription] = {}
        self._subscribed = 0
        self._transactions: dict[str, Transaction] = {}
        self._commands: dict[str, Callable[[Frame], bool]] = {
            "CONNECT": self._connect,
            "STOMP": self._connect,
            "SEND": self._send,
            "SUBSCRIBE": self._subscribe,
            "UNSUBSCRIBE": self._unsubscribe,
            "ACK": self._ack,
            "NACK": self._nack,
            "BEGIN": self._begin,
            "COMMIT": self._commit,
            "ABORT": self._abort,
            "DISCONNECT": self._disconnect,
        }

    def execute(self, frame: Frame) -> None:
        """Do what a frame says, and answer it.

        Raises:
            HangUpError: the frame breaks the protocol; the client has been told.
        """
        receipt = frame.raw(_RECEIPT)  # echoed as it stands: whatever it is, the client could write it
        try:
            _check_limits(frame)
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
        """Say ERROR; its body names JMS's exception."""
        message = "".join(each if each.isprintable() else " " for each in str(error))
        head = encode_head("ERROR", {"content-type": "text/plain", "message": message}, self.version)
        if receipt is not None:
            head += b"receipt-id:%b\n" % receipt
        cause = error.__cause__ if isinstance(error, HangUpError) and error.__cause__ is not None else error
        self._say(b"%b\n%b\0" % (head, f"{_java_name(cause)}: {message}".encode()))

    def end(self) -> None:
        """The client is gone: its transactions are rolled back, what it held goes back. Harmless twice."""
        if not self.connected:
            return
        self.connected = False

        def leave(engine: Engine, now: int) -> None:
            for transaction in self._transactions.values():
                engine.rollback(transaction, now)
            for subscription in self._subscriptions.values():
                engine.unsubscribe(subscription.subscription, now, all_seen=False)

        self._core.disconnect(self)
        self._core.call(leave)
        self._transactions.clear()
        self._subscriptions.clear()

    def broker_closed(self, reason: str) -> None:
        """The server has closed the connection before."""

    # The commands; each returns whether it has said its receipt.

    def _connect(self, frame: Frame) -> bool:
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
        self.connected = True
        self.version = version
        self.promised_ms, self.wanted_ms = (
            max(int(each), SHORTEST_BEAT) if int(each) else 0 for each in beats.groups()
        )
        answer = {
            "version": version,
            "server": f"redelivery/{version_of('redelivery')}",
            "heart-beat": f"{self.wanted_ms},{self.promised_ms}",
            "session": self.session,
        }
        self._say(encode("CONNECTED", answer))
        return False

    def _send(self, frame: Frame) -> bool:
        if not frame.headers.get("destination"):
            raise ProtocolError("SEND received without a Destination specified!")
        transaction = self._transaction(frame)
        stored = read_send(frame, self._core.new_id(), now=epoch_ms(), origin=self.session)
        if transaction is None:
            self._core.call(lambda engine, now: engine.send(stored, now))
        else:
            self._core.call(lambda engine, _now: engine.enlist_send(transaction, stored))
        return False

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
        subscription = StompSubscription(
            identifier, self._subscribed, headers, session=self.session, queue=self._queue, wake=self._wake
        )

        if subscription.browses and self.version == "1.0":
            raise ProtocolError("Queue Browser feature only valid for Stomp v1.1+ clients!")

        def start(engine: Engine, now: int) -> None:
            if subscription.browses:
                engine.browse(subscription.subscription)
            else:
                engine.subscribe(subscription.subscription)
            self._receipt(frame.raw(_RECEIPT))  # before its first message
            engine.start(subscription.subscription, now)

        self._core.call(start)
        self._subscriptions[identifier] = subscription
        return True

    def _unsubscribe(self, frame: Frame) -> bool:
        headers = frame.headers
        subscription = self._subscriptions.pop(headers.get("id") or headers.get("destination", ""), None)
        if subscription is None:
            raise ProtocolError("No subscription matched.")
        self._core.call(lambda engine, now: engine.unsubscribe(subscription.subscription, now, all_seen=False))
        return False

    def _ack(self, frame: Frame) -> bool:
        transaction = self._transaction(frame)
        found = self._named(frame)
        if found is None:
            return False
        subscription, dispatch = found
        dispatches = subscription.covered(dispatch)
        if transaction is None:
            self._core.call(lambda engine, now: engine.acknowledge(dispatches, now))
        else:
            self._core.call(lambda engine, now: engine.enlist(transaction, dispatches, now))
        return False

    def _nack(self, frame: Frame) -> bool:
        if self.version == "1.0":
            raise ProtocolError("NACK received but connection is in v1.0 mode.")
        transaction = self._transaction(frame)
        found = self._named(frame)
        if found is None:
            return False
        if transaction is not None:
            raise ProtocolError("Poison ack cannot be transacted")
        self._core.call(lambda engine, now: engine.poison(found[1], None, now))
        return False

    def _begin(self, frame: Frame) -> bool:
        name = _transaction_name(frame)
        if name in self._transactions:
            raise ProtocolError(f"The transaction was already started: {name}")
        self._transactions[name] = Transaction()
        return False

    def _commit(self, frame: Frame) -> bool:
        transaction = self._known(_transaction_name(frame))
        del self._transactions[_transaction_name(frame)]
        self._core.call(lambda engine, now: engine.commit(transaction, now))
        return False

    def _abort(self, frame: Frame) -> bool:
        transaction = self._known(_transaction_name(frame))
        del self._transactions[_transaction_name(frame)]
        self._core.call(lambda engine, now: engine.rollback(transaction, now))
        return False

    def _disconnect(self, frame: Frame) -> bool:
        self.end()
        self._receipt(frame.raw(_RECEIPT))
        self.over = True
        return True

    def _named(self, frame: Frame) -> tuple[StompSubscription, Dispatch] | None:
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
            if self._was_given(named):
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

    def _was_given(self, ack: str) -> bool:
        """Whether this connection gave the ack id to a subscription that has ended since."""
        number, _, _ = ack.removeprefix(f"{self.session}:").partition(":")
        if not number.isdigit() or not ack.startswith(f"{self.session}:"):
            return False
        live = {subscription.number for subscription in self._subscriptions.values()}
        return int(number) <= self._subscribed and int(number) not in live

    def _transaction(self, frame: Frame) -> Transaction | None:
        name = frame.headers.get("transaction")
        return None if name is None else self._known(name)

    def _known(self, name: str) -> Transaction:
        try:
            return self._transactions[name]
        except KeyError:
            raise ProtocolError(f"Invalid transaction id: {name}") from None

    def _receipt(self, receipt: bytes | None) -> None:
        if receipt is not None:
            self._say(b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt)


def _transaction_name(frame: Frame) -> str:
    name = frame.headers.get("transaction")
    if not name:
        raise ProtocolError("Must specify the transaction you are working with!")
    return name


def _check_limits(frame: Frame) -> None:
    head = frame.head
    if head.count(b"\n") > MAX_HEADERS + 1:
        raise HangUpError("The maximum number of headers was exceeded")
    if len(head) > MAX_HEADER and any(len(line) > MAX_HEADER for line in head.split(b"\n")):
        raise HangUpError("The maximum header length was exceeded")


def _java_name(error: BaseException) -> str:
    name = type(error).__name__.removesuffix("Error")
    if isinstance(error, (ProtocolError, MessageFormatError)):
        return "org.apache.activemq.transport.stomp.ProtocolException"
    return f"javax.jms.{name}Exception"
