"""Other rules as those of WildFly's Artemis."""

from __future__ import annotations

from redelivery.policies.brokers.artemis.bound import BoundQueue, in_order
from redelivery.policies.brokers.artemis.conversion import to_hornetq
from redelivery.policies.brokers.artemis.rules import JMS_QUEUE
from redelivery.policies.brokers.patterns import Losses
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.wildfly.rules import WildFlyRules


def to_wildfly(policies: BrokerPolicies, losses: Losses) -> WildFlyRules:
    """Make the same of WildFly: with HornetQ's names of addresses, and with the queues of dead letters."""
    found = to_hornetq(policies, losses, "WildFly")
    named = {
        getattr(each.settings, name) for each in found.entries for name in ("dead_letter_address", "expiry_address")
    }
    made = {each.address for each in found.queues}
    missing = sorted(each for each in named - made if each is not None and each.startswith(JMS_QUEUE))
    queues = [*found.queues, *(BoundQueue(each, each, "anycast") for each in missing)]
    return WildFlyRules(
        entries=found.entries,
        queues=in_order(queues),
        persist_delivery_count_before_delivery=found.persist_delivery_count_before_delivery,
    )
