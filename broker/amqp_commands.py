"""What an AMQP client asks for, step by step; as STOMP's frames, each can be delayed, refused or lost by a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from redelivery.model.errors import JMSError


@dataclass(frozen=True, slots=True)
class Command:
    """One step.

    Attributes:
        name: as in `redelivery.broker.faults`; None where no fault can strike.
        act: does it; a JMSError is the refusal.
        refuse: tells the client that it was not done.
        gathers: it only adds to the outcomes that are done together, before the next other step.
    """

    name: str | None
    act: Callable[[], None]
    refuse: Callable[[JMSError], None]
    gathers: bool = False
