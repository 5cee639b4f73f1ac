"""Other rules as those of Qpid's old Java broker, and what others leave out of its own."""

from __future__ import annotations

from redelivery.policies.brokers.patterns import (
    Losses,
    dead_letter_queue,
    no_delays,
    no_times,
    patterns_of_queues,
    say_hosts,
)
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.qpid.rules import QpidHost, QpidLevel, QpidRules
from redelivery.policies.brokers.qpid.writer import can_be_named
from redelivery.policies.destinations.patterns import REST


def to_qpid(policies: BrokerPolicies, losses: Losses) -> QpidRules:
    """Make a maximum for each queue, in one virtual host."""
    server, queues = QpidLevel("broker"), []
    for each in patterns_of_queues(policies, losses):
        no_delays(each, losses)
        no_times(each, losses)
        if each.lifetime.expired:
            losses.add(f"{each.key}: expired messages are removed")
        maximum, target = max(each.policy.maximum_redeliveries + 1, 0), dead_letter_queue(each, losses)
        if target is not None and target != f"{each.name}_DLQ":
            losses.add(f"{each.key}: dead letters go to a queue of their own with the suffix _DLQ, not to {target}")
        if each.key == REST:
            server = QpidLevel("broker", target is not None, maximum)
        elif not each.is_one:
            losses.add(f"{each.key}: there are no patterns, so it has the broker's values")
        elif not can_be_named(each.name):
            losses.add(f"{each.key}: config.xml needs a name that an element can have, so it has the broker's values")
        else:
            queues.append(QpidLevel(each.name, target is not None, maximum))
    return QpidRules(server, (QpidHost(QpidLevel("default"), tuple(queues)),) if queues else (), None)


def say_unsaid(rules: QpidRules, _to: str, losses: Losses) -> None:
    """Say what is lost of virtual hosts."""
    say_hosts(rules.queues_by_host(), losses)
