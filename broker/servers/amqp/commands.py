"""Requests of an AMQP client, as values: like STOMP's frames, each can be printed, delayed, refused or lost.

Links and sessions have the numbers that `AmqpServerSession` gives them, deliveries those that their link gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from redelivery.broker.servers.amqp.codec.outcomes import AmqpOutcome
from redelivery.model.errors import JMSError
from redelivery.transports.amqp.links.dispositions import ACCEPTED


@dataclass(frozen=True, slots=True)
class Command:
    """One step of a client; they are executed in order."""

    @property
    def fault_name(self) -> str | None:
        """The command's name in `redelivery.broker.faults`; None where no fault can strike."""
        return None

    @property
    def gathers(self) -> bool:
        """True: it only adds to the outcomes that are applied together, before the next other step."""
        return False


@dataclass(frozen=True, slots=True)
class Open(Command):
    """``open``: the client connects."""

    fault_name = "CONNECT"


@dataclass(frozen=True, slots=True)
class Close(Command):
    """``close``: the client disconnects."""

    fault_name = "DISCONNECT"


@dataclass(frozen=True, slots=True)
class Abort(Command):
    """The client broke a limit: the connection is closed with the error."""

    error: JMSError


@dataclass(frozen=True, slots=True)
class BeginSession(Command):
    """``begin``."""

    session: int


@dataclass(frozen=True, slots=True)
class EndSession(Command):
    """``end``: with the session go its links."""

    session: int


@dataclass(frozen=True, slots=True)
class LinkCommand(Command):
    """A step on one link."""

    link: int


@dataclass(frozen=True, slots=True)
class Attach(LinkCommand):
    """``attach``; ``receives``: the client receives by the link."""

    receives: bool

    @property
    def fault_name(self) -> str | None:
        """See `Command.fault_name`."""
        return "SUBSCRIBE" if self.receives else None


@dataclass(frozen=True, slots=True)
class DetachLink(LinkCommand):
    """``detach``; ``closed``: for good."""

    receives: bool
    closed: bool

    @property
    def fault_name(self) -> str | None:
        """See `Command.fault_name`."""
        return "UNSUBSCRIBE" if self.receives else None


@dataclass(frozen=True, slots=True)
class Flow(LinkCommand):
    """``flow``: the client's credit has changed; proton knows it."""


@dataclass(frozen=True, slots=True)
class Settle(LinkCommand):
    """``disposition``: what the client makes of one delivery."""

    delivery: int
    outcome: AmqpOutcome

    @property
    def fault_name(self) -> str | None:
        """See `Command.fault_name`."""
        return "ACK" if self.outcome.kind == ACCEPTED else "NACK" if self.outcome.poisons else None

    @property
    def gathers(self) -> bool:
        """See `Command.gathers`."""
        return self.outcome.transaction is None and not self.outcome.poisons


@dataclass(frozen=True, slots=True)
class Transfer(LinkCommand):
    """``transfer`` of a whole message, perhaps in a transaction; ``settled``: the client wants no answer."""

    delivery: int
    transaction: bytes | None
    settled: bool
    data: bytearray = field(repr=False)

    fault_name = "SEND"


@dataclass(frozen=True, slots=True)
class RefusedTransfer(LinkCommand):
    """``transfer`` of what cannot be read; ``name`` is its `fault_name`."""

    delivery: int
    error: JMSError
    name: str | None

    @property
    def fault_name(self) -> str | None:
        """See `Command.fault_name`."""
        return self.name


@dataclass(frozen=True, slots=True)
class Declare(LinkCommand):
    """A transaction begins."""

    delivery: int

    fault_name = "BEGIN"


@dataclass(frozen=True, slots=True)
class Discharge(LinkCommand):
    """A transaction ends; ``fail`` rolls it back."""

    delivery: int
    transaction: bytes
    fail: bool

    @property
    def fault_name(self) -> str:
        """See `Command.fault_name`."""
        return "ABORT" if self.fail else "COMMIT"
