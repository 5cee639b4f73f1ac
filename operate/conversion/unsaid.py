"""What a configuration says and a conversion leaves out: a function for each format that is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from redelivery.model.destinations import Queue, Topic, destination
from redelivery.operate.conversion.losses import Losses
from redelivery.policies.brokers.artemis import ArtemisRules
from redelivery.policies.brokers.artemis_names import ELEMENTS, spelled
from redelivery.policies.brokers.broker_j import BrokerJRules
from redelivery.policies.brokers.classic import ClassicRules, DeadLetterRules, DiscardingPlugin, PolicyEntry
from redelivery.policies.brokers.classic_names import AUDIT, DISCARDING, ENTRY, INDIVIDUAL, STRATEGY, Names
from redelivery.policies.brokers.classic_names import spelled as spelled_in_classic
from redelivery.policies.brokers.client_url import ClientRules
from redelivery.policies.brokers.qpid import QpidRules
from redelivery.policies.brokers.rabbitmq import RabbitRules
from redelivery.policies.brokers.rules import Rules, usable
from redelivery.policies.dead_letters import SharedDeadLetterStrategy

_ARTEMIS: Final = frozenset({"artemis", "hornetq"})
_ONLY_THERE: Final = (  # beside what `patterns` has
    "expiry_delay",
    "no_expiry",
    "send_to_dla_on_no_route",
)
_CREATED: Final = ("auto_create_expiry_resources", "expiry_queue_prefix", "expiry_queue_suffix")  # a client has them


def say_unsaid(rules: Rules, to: str, losses: Losses) -> None:
    """Add what the rules say and their conversion to another format does not."""
    match rules:
        case ArtemisRules():
            of_artemis(rules, to, losses)
        case ClassicRules():
            of_classic(rules, to, losses)
        case QpidRules():
            of_qpid(rules, losses)
        case BrokerJRules():
            of_broker_j(rules, to, losses)
        case RabbitRules():
            of_rabbitmq(rules, losses)
        case ClientRules():
            of_client_url(rules, to, losses)


def of_artemis(rules: ArtemisRules, to: str, losses: Losses) -> None:
    """Artemis and HornetQ: what concerns the journal, default times to live, and messages without a queue."""
    if to in _ARTEMIS:  # `related` says it
        return
    if rules.persist_delivery_count_before_delivery:
        losses.add("persist-delivery-count-before-delivery = true is lost")
    if rules.max_redelivery_records is not None:
        losses.add(f"max-redelivery-records = {rules.max_redelivery_records} is lost")
    names = _ONLY_THERE if to == "python" else (*_ONLY_THERE, *_CREATED)
    for entry in rules.counting:
        where = f"address-setting {entry.match!r}"
        for name in (each for each in names if each in entry.fields_set):
            losses.add(f"{where}: {ELEMENTS[name]} = {spelled(name, getattr(entry.settings, name))} is lost")
        if to == "broker_j" and "min_expiry_delay" in entry.fields_set:
            losses.add(f"{where}: min-expiry-delay is for messages that have a time to live")
        if entry.settings.redelivery_delay_multiplier < 1:
            losses.add(f"{where}: a redelivery-delay-multiplier below 1 is lost")
        key = ".".join(rules.wildcards.words(entry.match))
        if "\0" in key or not usable({key: 1}):
            losses.add(f"{where} is lost: no queue or topic has such a name")
    for queue in (each for each in rules.queues if each.filter is not None):
        losses.add(f"queue {queue.name!r}: its filter is lost")


def of_classic(rules: ClassicRules, to: str, losses: Losses) -> None:
    """ActiveMQ Classic: what only its strategies and plug-ins can do. A client's strategies can some of it."""
    brokers = to not in ("python", "uri")
    entries = [*rules.entries, *([rules.default_entry] if rules.default_entry else [])]
    for entry in entries:
        where, of = f"policyEntry {entry.pattern}", entry.dead_letters or DeadLetterRules()
        _changed(where, ENTRY, entry, PolicyEntry(">"), losses)
        _changed(where, AUDIT, of, DeadLetterRules(), losses)
        if brokers:
            _changed(where, {"expiration": STRATEGY["expiration"]}, of.strategy, SharedDeadLetterStrategy(), losses)
            topics = {name: each for name, each in INDIVIDUAL.items() if name.startswith("useQueue")}
            for name, (field, _) in topics.items():
                if getattr(of.strategy, field, True) is False:
                    losses.add(f"{where}: {name} = false is lost: the dead letters are in queues")
            strategy = of.strategy
            if isinstance(strategy, SharedDeadLetterStrategy):
                target = destination(strategy.dead_letter_queue)
                if isinstance(target, Topic):
                    losses.add(f"{where}: the dead letters are in a queue, not in {target}")
    if brokers and any(not _takes_all(each.dead_letters) for each in (*entries, PolicyEntry(">"))):
        losses.add("processNonPersistent = false is lost: non-persistent messages become dead letters too")
    discarding = rules.discarding
    if discarding is not None and not (discarding.drop_all and to == "python"):
        names = {name: each for name, each in DISCARDING.items() if name != "dropAll"}
        if to == "python":
            names = {name: each for name, each in names.items() if name.startswith("dropTemporary")}
        _changed("discardingDLQBrokerPlugin", names, discarding, DiscardingPlugin(), losses)


def _takes_all(rules: DeadLetterRules | None) -> bool:
    return (rules or DeadLetterRules()).strategy.process_non_persistent


def of_qpid(rules: QpidRules, losses: Losses) -> None:
    """Qpid's old broker: virtual hosts."""
    hosts = sorted(rules.hosts, key=lambda each: each.level.name != rules.default_host)
    _hosts(((each.level.name, [queue.name for queue in each.queues]) for each in hosts), losses)


def of_broker_j(rules: BrokerJRules, to: str, losses: Losses) -> None:
    """Broker-J: virtual hosts, and queues that it makes by a regular expression."""
    hosts = sorted(rules.hosts, key=lambda each: each.name != rules.default_host)
    _hosts(((each.name, [queue.name for queue in each.queues]) for each in hosts), losses)
    for number, host in enumerate(hosts):
        for rule in host.auto_creation:
            if number or to != "rabbitmq":
                losses.add(f"virtual host {host.name!r}: nodeAutoCreationPolicy {rule.pattern!r} is lost")
            elif rule.level.minimum_message_ttl is not None or rule.level.expiry_policy is not None:
                losses.add(f"nodeAutoCreationPolicy {rule.pattern!r}: what becomes of the expired is RabbitMQ's rule")


def of_rabbitmq(rules: RabbitRules, losses: Losses) -> None:
    """RabbitMQ: virtual hosts, and policies by regular expressions, for queues that the file does not list."""
    named = [*(each.virtual_host for each in rules.queues), *(each.virtual_host for each in rules.policies)]
    hosts = sorted(set(named), key=lambda each: each != rules.default_host)
    _hosts(((host, [each.name for each in rules.queues if each.virtual_host == host]) for host in hosts), losses)
    for policy in rules.policies:
        kind = "operator policy" if policy.operator else "policy"
        if not rules.for_all(policy):
            losses.add(f"{kind} {policy.name!r} ({policy.pattern}): only the queues that the file lists keep it")
    levels = [(f"policy {each.name!r}", each.level) for each in rules.policies]
    for where, level in [*levels, *((f"queue {each.name!r}", each.level) for each in rules.queues)]:
        if level.dead_letter_strategy is not None:
            losses.add(f"{where}: dead-letter-strategy = {level.dead_letter_strategy} is lost")
        if level.delayed_retry_min is not None or level.delayed_retry_type is not None:
            losses.add(f"{where}: the delays (delayed-retry) are lost")
    for queue in rules.queues:
        found = rules.rules_for(Queue(queue.name))
        if found.dead_letter is not None and not found.dead_letter_queues:
            target = found.dead_letter
            losses.add(f"queue {queue.name!r}: dead letters are removed, as the file does not say where {target} leads")
        elif len(found.dead_letter_queues) > 1:
            losses.add(f"queue {queue.name!r}: its dead letters go to one queue, not to {found.dead_letter}")


def of_client_url(rules: ClientRules, to: str, losses: Losses) -> None:
    """A client's URL: what is about its consumers."""
    if to == "python":
        return
    if rules.prefetch is not None:
        losses.add("the prefetch of consumers is lost")
    if rules.non_blocking is not None:
        losses.add(f"jms.nonBlockingRedelivery = {str(rules.non_blocking).lower()} is lost")


def _changed(where: str, names: Names, value: Any, usual: Any, losses: Losses) -> None:
    for name, (field, _) in names.items():
        if getattr(value, field) != getattr(usual, field):
            losses.add(f"{where}: {name} = {spelled_in_classic(getattr(value, field))} is lost")


def _hosts(hosts: Iterable[tuple[str, Iterable[str]]], losses: Losses) -> None:
    """The queues of all virtual hosts become those of one; of two with one name the first one's values count."""
    seen: dict[str, str] = {}
    for number, (host, queues) in enumerate(hosts):
        if number:
            losses.add(
                f"virtual host {host!r}: its queues are among the others, and its values for all other queues are lost"
            )
        for queue in queues:
            if seen.setdefault(queue, host) != host:
                losses.add(f"virtual host {host!r}: {queue} has the values of that of {seen[queue]!r}")
