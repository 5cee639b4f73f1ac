"""Explains a destination by the two files that a team has: its broker's, and its client's."""

from __future__ import annotations

from dataclasses import dataclass

from redelivery.model.destinations import Destination
from redelivery.operate.shown import number_of
from redelivery.operate.simulate import Simulation, simulate
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import DestinationRules


@dataclass(frozen=True, slots=True)
class Explained:
    """``broker``, ``client``: what each says of the destination; ``together``: what they make of a message that fails.

    ``client`` and ``together`` are None where no client was given.
    """

    broker: DestinationRules
    client: DestinationRules | None = None
    together: Simulation | None = None

    def __str__(self) -> str:
        if self.together is None:
            return str(self.broker)
        total = "attempts without an end" if self.together.total is None else number_of(self.together.total, "attempt")
        end = "" if self.together.total is None else f", then {self.together.ends}"
        lines = [f"together: {total}{end}", f"decides: {self.together.wins}"]
        lines += [f"warning: {each}" for each in self.together.warnings]
        return "\n".join([str(self.broker), str(self.client), "\n  ".join(lines)])


def explain(policies: BrokerPolicies, target: Destination | str, client: BrokerPolicies | None = None) -> Explained:
    """Say what a broker's file says of a destination, what its client's says, and which of them decides.

    ``policies``, ``client``: what `redelivery.policies.read` has read of them. ``target``: a str without a scheme is a
    queue.

    Raises:
        InvalidDestinationError: the target is a str that is not a destination.
    """
    rules = policies.explain(target)
    if client is None:
        return Explained(rules)
    return Explained(rules, client.explain(rules.destination), simulate(policies, rules.destination, client))
