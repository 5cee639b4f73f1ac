"""The things that the sessions of one connection have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from redelivery.client.dead_letters import DeadLetters
from redelivery.client.ledger.history import History
from redelivery.client.lifecycle import ConnectionStage, Lifecycle
from redelivery.client.observing.log_lines import Lines
from redelivery.client.options import ConnectionOptions
from redelivery.client.session.subscriptions import Subscriptions
from redelivery.client.session.temporaries import Temporaries
from redelivery.model.destinations import Destination

_RIGHT_AFTER: Final = 1.0  # seconds
_SUSPICIOUS: Final = 5  # losses in a row
_FADES: Final = 0.99  # what is left of the longest time to store, with each that is shorter


class Suspects:
    """Destinations right after whose subscription the connection is lost, again and again; thread-safe.

    Some message there may be what the broker closes it for: nothing else would say so.
    """

    def __init__(self) -> None:
        self._subscribed: dict[Destination, float] = {}  # on the connection that there is: when
        self._losses: dict[Destination, int] = {}  # in a row
        self.remark = ""  # of errors, where there are some

    def subscribing(self, destination: Destination, now: float) -> None:
        """A consumer of it is attached at ``now`` (monotonic seconds)."""
        self._subscribed[destination] = now

    def lost(self, now: float, why: str) -> bool:
        """The connection is lost; ``why``: what is known of such losses. True: the remark is to be said."""
        subscribed, self._subscribed = self._subscribed, {}
        found = [each for each, at in subscribed.items() if now - at <= _RIGHT_AFTER]
        self._losses = {each: self._losses.get(each, 0) + 1 for each in found}
        worst = [each for each, times in self._losses.items() if times >= _SUSPICIOUS]
        self.remark = ""
        if not worst:
            return False
        times = max(self._losses[each] for each in worst)
        names = ", ".join(str(each) for each in worst)
        self.remark = f"it was lost {times} times in a row right after subscribing to {names}{why and f': {why}'}"
        return times % _SUSPICIOUS == 0


class Storing:
    """The longest time, in ``seconds``, that the broker has taken of late to store what was sent to it; thread-safe.

    From a send, or a commit, to its answer. With each shorter one it fades, so that one pause does not count for ever.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def took(self, seconds: float) -> None:
        """Take in the time of one that was answered."""
        self.seconds = max(seconds, _FADES * self.seconds)


@dataclass(frozen=True, slots=True)
class Shared:
    """Made with the connection, and never replaced."""

    options: ConnectionOptions
    life: Lifecycle[ConnectionStage]
    dead_letters: DeadLetters
    temporaries: Temporaries
    subscriptions: Subscriptions
    lines: Lines
    history: History
    suspects: Suspects
    storing: Storing
