"""The ledger's record of a consumer and of a delivery."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

from redelivery.client.ledger.stages import CLOSED, CLOSING, OPEN, ConsumerStage, next_stage
from redelivery.model.errors import JMSError
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.delivery import Delivery, Link


class State(IntEnum):
    """The state of a delivery (`Delivery.state`)."""

    READY = 0  # with its consumer, not shown yet or waiting for a blocking redelivery
    HELD = 1  # with the application, not acknowledged
    DELAYED = 2  # waits for a non-blocking redelivery
    CONDEMNED = 3  # ready, but over its limit: to be dead-lettered instead of shown
    GONE = 4  # settled, or back at the broker
    TAKEN = 5  # the caller acknowledges it at once (AUTO, DUPS_OK)
    RETURNED = 6  # back at the broker although the application holds it: the broker has ended its consumer
    ACCEPTED = 7  # acknowledged (AUTO, DUPS_OK), or about to be, when an interrupt kept it from the application
    STALE = 8  # back at the broker although the application holds it: the connection that brought it was lost


# Looking a member up in its class costs a fifth of a microsecond, on the path of every message.
READY, HELD, DELAYED, CONDEMNED, GONE, TAKEN, RETURNED, ACCEPTED, STALE = State


class ConsumerState:
    """One consumer in the ledger: its ready deliveries, in order, and until when it stands still.

    ``policy`` answers for one delivery, because a wildcard consumer uses the policy of each message's real queue.
    ``check_limit`` is ActiveMQ's pre-dispatch check. ``name`` stands in cause texts. ``stage`` changes by `step` alone.
    """

    __slots__ = (
        *("attached", "check_limit", "error", "held", "heir", "link", "listening", "name", "not_before", "policy"),
        *("ready", "stage"),
    )

    def __init__(
        self,
        link: Link[ConsumerState],
        policy: Callable[[Received], RedeliveryPolicy],
        *,
        name: str,
        check_limit: bool = False,
    ) -> None:
        self.link = link
        self.policy = policy
        self.name = name
        self.check_limit = check_limit
        self.ready: deque[Received] = deque()
        self.held = 0  # deliveries of this consumer that the application holds
        self.not_before = 0.0  # blocked until then; 0.0: not blocked
        self.listening = False  # a message listener is set
        self.attached = True  # at the broker; False before the first receive with a prefetch of 0
        self.stage: ConsumerStage = OPEN
        self.error: JMSError | None = None  # why the broker has ended it
        self.heir: ConsumerState | None = None  # of one that stands for a lost connection's link: whose that was
        link.consumer = self

    def step(self, event: str) -> None:
        """``close``, ``reopen``, ``settle`` or ``end``: see `stages`."""
        self.stage = next_stage(self.stage, event)

    def renew(self) -> None:
        """Begin a new link after a loss: what still comes by the old one is nobody's, the new one is to be attached."""
        _past(self)
        self.link = Link(self.link.spec)
        self.link.consumer = self
        self.attached = False

    def revive(self) -> None:
        """The broker has ended it, and it begins anew by another link; what it delivered stays the old one's."""
        old = self.link
        self.step("reopen")
        self.renew()
        past = old.consumer
        past.error, self.error = self.error, None
        past.held, self.held = self.held, 0

    @property
    def closing(self) -> bool:
        """True: its close waits until it holds nothing any more."""
        return self.stage is CLOSING


Received: TypeAlias = Delivery[ConsumerState]  # by a link of the session's, which has a consumer of it


def inherited(delivery: Received) -> ConsumerState:
    """The delivery's consumer; where the connection was lost meanwhile, the delivery counts as come by the new link."""
    consumer = delivery.link.consumer
    if consumer.heir is not None:
        consumer = consumer.heir
        delivery.link = consumer.link
    return consumer


def _past(heir: ConsumerState) -> None:
    """Give its link, which is of a lost connection, to one that is closed and keeps nothing."""
    past = ConsumerState(heir.link, heir.policy, name=heir.name)
    past.ready = deque(maxlen=0)
    past.stage, past.heir = CLOSED, heir
