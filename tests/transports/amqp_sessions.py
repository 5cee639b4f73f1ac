"""Sessions that talk to a scripted peer over AMQP 1.0, without a ledger, and scripts that many tests begin with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tests.transports import scripted
from tests.transports.amqp_frames import Frame, transactional
from tests.transports.amqp_peer import PeerEnd, Script
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.amqp.adapter import AmqpTransport
from redelivery.transports.seam import Link, Pending, TransportOptions
from redelivery.transports.wire.clock import monotonic


class Session(scripted.Session):
    """A session's side of the seam, without a ledger; what it was notified of ended links is kept."""

    def __init__(self, client: Client, mode: AckMode) -> None:
        self.ended: deque[tuple[Link, JMSError]] = deque()
        super().__init__(client, mode)

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        self.ended.append((link, error))
        self.waiter.wake()

    def post(self, message: Message, *, transacted: bool = False) -> Pending:
        """Send without waiting."""
        pending = Pending(self.waiter if not transacted else None)
        self.channel.send(message, transacted=transacted, pending=pending, batched=transacted)
        return pending

    def until(self, ready: Callable[[], object]) -> None:
        """Wait, bounded, and read meanwhile."""
        deadline = monotonic() + TIMEOUT
        while not ready():
            assert monotonic() < deadline, "it did not come"
            self.transport.wait(self.waiter, 0.05)


class Client(scripted.Client):
    """A transport that is open, and of what it notified its connection."""

    transport: AmqpTransport  # type: ignore[assignment]  # of this protocol

    def __init__(self, port: int, *, opened: bool = True, **options: Any) -> None:
        super().__init__(port, opened=False)
        defaults = {"scheme": "amqp", "host": "127.0.0.1", "port": port, "heartbeat": 0.0, "close_timeout": 2.0}
        self.transport = AmqpTransport(TransportOptions(**{**defaults, **options}), self)
        self.transport._places.refused = True  # no script answers a management
        if opened:
            self.open()

    def session(self, mode: AckMode = AckMode.AUTO) -> Session:
        return Session(self, mode)


def with_messages(number: int, then: Script, product: str = "ActiveMQ", **fields: Any) -> Script:
    """Log in, be attached to, send that many messages, go on. ``fields``: of the peer's open."""

    def script(end: PeerEnd) -> None:
        end.log_in(product, **fields)
        link = end.attached()
        for each in range(1, number + 1):
            end.message(link, each)
        then(end)
        end.goodbye()

    return script


def transacted(client: Client, messages: int = 0) -> tuple[Session, list[Any]]:
    """A transacted session, and what it has received."""
    session = client.session(AckMode.TRANSACTED)
    if messages:
        session.attach()
    return session, session.receive_many(messages)


def knows_the_transaction(session: Session) -> None:
    """Wait until the answer to the declare is there."""
    session.until(lambda: session.channel._transactions._declared.done)  # type: ignore[attr-defined]  # no other way


def entered(end: PeerEnd, transaction: bytes) -> Frame:
    """Take a message that is sent in a transaction, and answer it."""
    frame = end.take("transfer")
    assert frame.outcome == f"transactional {transaction.decode()} none"
    return end.settle(frame, transactional(transaction))


def declare_first(session: Session) -> None:
    """A transaction is declared, and nothing is in it: that which follows a commit. `declared_first` answers it."""
    session.post(text("committed"), transacted=True)
    session.do(session.channel.commit([]))
    knows_the_transaction(session)


def declared_first(end: PeerEnd, transaction: bytes) -> Frame:
    """Answer `declare_first`, with this id; the coordinator's link."""
    link = end.coordinated(b"first")
    entered(end, b"first")
    end.discharge(b"first")
    end.declare(transaction)
    return link
