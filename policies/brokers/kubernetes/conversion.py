"""Other rules as those of a broker that the operator makes."""

from __future__ import annotations

from dataclasses import replace

from redelivery.policies.brokers.artemis.conversion import to_artemis
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.kubernetes import image
from redelivery.policies.brokers.patterns import Losses
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.destinations.address_settings import AddressSettings


def to_kubernetes(policies: BrokerPolicies, losses: Losses) -> ArtemisRules:
    """Make Artemis' rules, with the queues that the image makes in any case."""
    made = to_artemis(policies, losses)
    queues = {(each.address, each.routing, each.name): each for each in (*image.QUEUES, *made.queues)}
    nothing = AddressEntry(made.wildcards.any_words, AddressSettings())  # without an entry the image's would count
    entries = made.entries or (nothing,)
    return replace(made, entries=entries, queues=tuple(queues[key] for key in sorted(queues)))
