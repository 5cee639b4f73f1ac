"""The questions that the engine asks of a broker's rules. Times are milliseconds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.rules.lost import LostMessages
from redelivery.broker.engine.rules.slow import SlowRule
from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Destination, Topic
from redelivery.policies.brokers.classic.arrivals import Eviction, PendingLimit


class Manner(Enum):
    """The way in which a delivery came back that was not acknowledged."""

    FAILED = "its client says that it failed"  # AMQP: modified, delivery-failed
    RELEASED = "its client did not use it"  # AMQP: released
    MODIFIED = "its client returns it without saying that it failed"  # AMQP: modified, without delivery-failed
    UNDELIVERABLE = "its client says that it cannot be delivered there"  # AMQP: modified, undeliverable-here
    REJECTED = "its client has rejected it"  # AMQP: rejected; a poison acknowledgement
    NACKED = "its client has sent NACK for it"  # STOMP
    EXPIRED = "its consumer found that its time is over"
    CLOSED = "its consumer was closed"
    DISCONNECTED = "its STOMP connection has ended"  # by DISCONNECT, or lost
    LOST = "its connection was lost"


class Origin(Enum):
    """The place where a dead letter that came over AMQP says by AMQP where it comes from."""

    PROPERTIES = "in its application properties"
    ANNOTATIONS = "in its message annotations"  # Artemis: x-opt-ORIG-ADDRESS for what is a property _AMQ_ORIG_ADDRESS
    NOWHERE = "it is the message as it came"


@dataclass(frozen=True, slots=True)
class ReturnDecision:
    """The broker's decision about a delivery that came back.

    ``counted``: the delivery counts. ``delay``: how long it waits; 0: it may be delivered at once. ``failed``: it is
    not delivered again. ``consumed``: it is gone, as if it had been acknowledged. ``elsewhere``: it is not delivered to
    that consumer again.
    """

    counted: bool
    delay: int = 0
    failed: bool = False
    consumed: bool = False
    elsewhere: bool = False


COUNTED: Final = ReturnDecision(counted=True)
UNCOUNTED: Final = ReturnDecision(counted=False)
FAILED: Final = ReturnDecision(counted=True, failed=True)
CONSUMED: Final = ReturnDecision(counted=False, consumed=True)


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that has failed for good or has expired; ``exists`` says whether there is a queue of a name.

    ``subscriber``: the client id and the name of the durable subscription that it was in, if it was in one.
    """

    entry: Entry
    cause: str | None
    now: int
    expired: bool
    exists: Callable[[str], bool]
    subscriber: tuple[str | None, str] | None = None

    @property
    def message(self) -> StoredMessage:
        """The message that failed."""
        return self.entry.message


class EngineRules(ABC):
    """One broker's. What is not abstract here is what most brokers do.

    ``counts_first``: a store counts a delivery before it is made (``persist-delivery-count-before-delivery``).
    ``enlists_acks``: an ACK over STOMP is part of its transaction. ``origin``: see `Origin`. ``lost``: warns of what
    nobody gets any more. ``letters_of_volatile``: what fails in a subscription that is not durable becomes a dead
    letter too; ``expired_of_volatile``: so does what expires there. ``browses_last_count``: a browser sees the count of
    the last delivery, else that of the next one.
    """

    counts_first = False
    enlists_acks = True
    origin = Origin.NOWHERE
    letters_of_volatile = False
    expired_of_volatile = False
    browses_last_count = False

    def __init__(self) -> None:
        self.lost = LostMessages()

    @abstractmethod
    def arriving(self, message: StoredMessage, now: int, *, is_letter: bool) -> StoredMessage:
        """A message as it is kept: its time to live may change; ``is_letter``: the broker itself sends it."""

    def keeps_unrouted(self, topic: Destination) -> bool:  # noqa: ARG002  # here and below: a broker's own rules ask it
        """True: what is sent to a topic where no subscription wants it is a dead letter at once."""
        return False

    def queue_of(self, name: str, queues: Collection[str]) -> str:  # noqa: ARG002
        """The queue that a consumer of that name consumes; ``queues``: the names of those that there are."""
        return name

    def makes(self, name: str) -> bool:  # noqa: ARG002
        """True: the file makes a queue of that name, or at that address."""
        return False

    def places(self, message: StoredMessage, exists: Callable[[str], bool]) -> Sequence[str]:  # noqa: ARG002
        """The queues that a message is put into, by name, beside the subscriptions to its topic."""
        return () if isinstance(message.destination, Topic) else (message.destination.name,)

    def add_queue(self, name: str) -> None:  # noqa: B027  # most brokers do nothing
        """A client says in its own broker's words that this is a queue, which that broker makes then."""

    def slow_subscribers_of(self, topic: Destination) -> tuple[PendingLimit, Eviction] | None:  # noqa: ARG002
        """The number of messages that may wait for one that is not durable, and what goes then; None: any number."""
        return None

    def slow_rule(self, destination: Destination) -> SlowRule | None:  # noqa: ARG002
        """The rule by which slow consumers of it end; None: none does."""
        return None

    @abstractmethod
    def returned(self, entry: Entry, manner: Manner, *, seen: bool) -> ReturnDecision:
        """Decide about a delivery that came back; ``seen``: its client has had it."""

    @abstractmethod
    def letters(self, failure: Failure) -> Sequence[StoredMessage]:
        """The messages that are sent in place of one that has failed for good; none: it is removed."""
