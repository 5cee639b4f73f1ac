"""Queues that an application asks for: what it may ask, and the order of steps that leaves nothing half-made.

A broker's own part is a `Queues`: how its management looks one up, makes it and removes it. The order here is the same
for all: whatever is there is never changed, and a dead-letter queue is there before the queue whose messages go to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import ConfigError, InvalidDestinationError, JMSError, UnsupportedError
from redelivery.transports.flows import NO_ANSWER, Flow

NO_LIMIT: Final = -1  # of redeliveries, as ActiveMQ's policy writes it


@dataclass(frozen=True, slots=True)
class Declaration:
    """A queue as it shall be.

    ``type`` and ``arguments`` are the broker's own words; None: its default. ``dead_letters``: where the broker puts
    what it gives up, after so many ``maximum_redeliveries`` (-1: no limit; None: the broker's own limit).
    """

    queue: Queue
    type: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    dead_letters: Queue | None = None
    maximum_redeliveries: int | None = None

    def check_free(self, *names: str) -> None:
        """Raise ConfigError where an argument of these names says what a keyword says, too."""
        for name in names:
            if name in self.arguments:
                raise ConfigError(
                    f"{self.queue}: {name} in arguments= is what type=, dead_letters= and maximum_redeliveries= stand "
                    "for: say it by one of them only"
                )


class Queues(ABC):
    """The queues of one broker, for one request of one session."""

    @abstractmethod
    def check(self, wanted: Declaration) -> None:
        """Raise ConfigError, InvalidDestinationError for what means nothing to this broker; nothing is asked."""

    @abstractmethod
    def exists(self, queue: Queue) -> Flow[bool]:
        """Check whether the queue is there.

        Raises:
            SecurityError, JMSError: the broker does not say.
            RequestTimeoutError, ConnectionLostError: it does not answer.
        """

    @abstractmethod
    def make(self, wanted: Declaration) -> Flow[bool]:
        """Make it; False: it is there already, as it shall be. The dead-letter queue is there.

        Raises:
            InvalidDestinationError: it is there otherwise, or cannot be; nothing was changed.
            SecurityError, JMSError, RequestTimeoutError, ConnectionLostError: as `exists`.
        """

    @abstractmethod
    def remove(self, queue: Queue) -> Flow[int | None]:
        """Remove it with what it holds, also while it is consumed; the number of messages, where the broker says it.

        Raises:
            InvalidDestinationError: it is not there.
            IllegalStateError: the broker needs it for something else.
            SecurityError, JMSError, RequestTimeoutError, ConnectionLostError: as `exists`.
        """

    def describe(self, queue: Queue) -> Flow[Mapping[str, Any] | None]:
        """The broker's facts about the queue, in its own names; None: it is not there.

        Raises:
            UnsupportedError: this broker says nothing of it over this protocol.
            SecurityError, JMSError, RequestTimeoutError, ConnectionLostError: as `exists`.
        """
        yield from ()
        raise UnsupportedError(f"{queue}: this broker does not describe its queues over this protocol")

    def for_dead_letters(self, wanted: Declaration) -> Declaration:
        """The queue for the dead letters of another one, where there is none."""
        assert wanted.dead_letters is not None, "asked only then"
        return Declaration(wanted.dead_letters)

    def close(self) -> None:  # noqa: B027  # of those that hold something
        """Nothing more is asked."""


def declare(queues: Queues, wanted: Declaration) -> Flow[bool]:
    """Make what is wanted, with its dead-letter queue; False: the queue is there already, as it shall be.

    Raises:
        ConfigError: an argument means nothing to this broker, or says what a keyword says.
        InvalidDestinationError: it is there otherwise, or the broker refuses it; the text has its words.
        SecurityError, JMSError: the broker does not do it. What was made all the same is in the text.
        RequestTimeoutError, ConnectionLostError: it does not answer; likewise.
    """
    queues.check(wanted)
    letters = wanted.dead_letters
    if letters is None:
        return (yield from queues.make(wanted))
    there = yield from queues.exists(wanted.queue)
    if there:  # refused before anything is made for it
        yield from queues.make(wanted)
    made = False
    if not (yield from queues.exists(letters)):
        made = yield from queues.make(queues.for_dead_letters(wanted))
    if there:
        return False
    try:
        return (yield from queues.make(wanted))
    except NO_ANSWER as error:
        raise _and(error, letters if made else None) from error
    except JMSError as error:
        if not made:
            raise
        raise _and(error, None if (yield from _undone(queues, wanted, letters)) else letters) from error.__cause__


def _undone(queues: Queues, wanted: Declaration, letters: Queue) -> Flow[bool]:
    """Remove the dead-letter queue that was just made, unless another one may be using it; True: it is removed."""
    try:
        if (yield from queues.exists(wanted.queue)):
            return False
        yield from queues.remove(letters)
    except InvalidDestinationError:
        return True
    except JMSError:
        return False
    return True


def _and(error: JMSError, made: Queue | None) -> JMSError:
    return error if made is None else type(error)(f"{error}; {made} was made for its dead letters, and stays")
