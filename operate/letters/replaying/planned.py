"""The letters that a replay means: where each goes, by which policy it failed, and how."""

from __future__ import annotations

from dataclasses import dataclass

from redelivery.model.content.dead_letters import DeadLetterInfo
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.operate.letters.fingerprints import traits_of
from redelivery.operate.letters.folding import literal
from redelivery.operate.letters.routes import Leaving
from redelivery.policies.activemq.causes import policy_of
from redelivery.policies.redelivery import RedeliveryPolicy


@dataclass(frozen=True, slots=True)
class PlannedReplay:
    """One letter.

    ``policy``: that its cause names. ``fingerprints``: of its passport, and of its cause by itself; none where nobody
    watches whether it comes back.
    """

    target: Destination
    policy: RedeliveryPolicy | None
    fingerprints: frozenset[str]


class PlannedReplays(list[PlannedReplay]):
    """The letters in their order; `note` is called with each by `plan`. ``watched``: their failures must be known
    again.
    """

    def __init__(self, *, watched: bool = False) -> None:
        super().__init__()
        self._watched = watched

    def note(self, letter: Message, leaving: Leaving | None) -> None:
        """Note a letter that is to leave."""
        if leaving is not None:
            said = letter.dead_letter
            policy = None if said is None or said.cause is None else policy_of(said.cause)
            fingerprints = fingerprints_of(said) if self._watched else frozenset[str]()
            self.append(PlannedReplay(leaving.destination, policy, fingerprints))


def fingerprints_of(said: DeadLetterInfo | None) -> frozenset[str]:
    """The fingerprints by which a letter that says this is known again."""
    found = traits_of(said)
    return frozenset(filter(None, (found.frame, literal(found.failure))))
