"""Other rules as Artemis' or HornetQ's address settings, and what those leave out of Artemis' own."""

from __future__ import annotations

from typing import Any, Final

from redelivery.policies.brokers.artemis import bound
from redelivery.policies.brokers.artemis.names import written
from redelivery.policies.brokers.artemis.reader import read_artemis, read_hornetq
from redelivery.policies.brokers.artemis.related import artemis_of, hornetq_of, with_queues
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.artemis.writer import write_artemis
from redelivery.policies.brokers.patterns import (
    TOPIC,
    Losses,
    Pattern,
    dead_letter_queue,
    keeps,
    no_times,
    patterns,
    survives,
)
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE, IndividualDeadLetterStrategy
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.destinations.overlaps import usable
from redelivery.policies.destinations.patterns import REST

_APART: Final = "ActiveMQ.DLA"  # the address of dead letters in queues of their own, beside a shared queue
_WITHOUT_DEFAULT: Final = frozenset({"dead_letter_address", "expiry_address"})
_ONLY_THERE: Final = ("expiry-delay", "no-expiry", "send-to-dla-on-no-route")  # beside what `patterns` has
_CREATED: Final = ("auto-create-expiry-resources", "expiry-queue-prefix", "expiry-queue-suffix")  # a client has them


def to_artemis(policies: BrokerPolicies, losses: Losses) -> ArtemisRules:
    """Make address settings for each pattern."""
    if isinstance(policies.rules, ArtemisRules) and not policies.rules.jms_names:
        return with_queues(policies.rules)
    if isinstance(policies.rules, ArtemisRules):
        return artemis_of(policies.rules, losses)
    return with_queues(ArtemisRules(entries=tuple(_entries(patterns(policies), losses, ""))))


def to_hornetq(policies: BrokerPolicies, losses: Losses, broker: str = "HornetQ") -> ArtemisRules:
    """Make the same with HornetQ's names of addresses, as ``broker`` has them too, and without collision avoidance."""
    if policies.rules.makes_queues and broker == "HornetQ":
        losses.add(f"{broker} makes no queue by itself: add those that have no entry of their own")
    if isinstance(policies.rules, ArtemisRules):
        return hornetq_of(policies.rules, losses, broker)
    return with_queues(ArtemisRules("hornetq", tuple(_entries(patterns(policies), losses, "jms."))))


def _entries(found: list[Pattern], losses: Losses, prefix: str) -> list[AddressEntry]:
    dialect, read = ("hornetq", read_hornetq) if prefix else ("artemis", read_artemis)
    entries: list[AddressEntry] = []
    removed: list[str] = []
    for each in sorted(found, key=lambda one: (one.key == REST, one.key.startswith(TOPIC))):
        scheme, separator, name = each.key.rpartition("://")
        match = ".".join("#" if word == REST else word for word in name.split("."))
        if separator and not prefix:
            losses.add(f"an address-setting is for queues and topics alike: {each.key} becomes {match}")
        schemes = [scheme] if separator else ["queue", "topic"]
        matches = [f"{prefix}{one}.{match}" for one in schemes] if prefix and each.key != REST else [match]
        values = {**_delays(each, losses, prefix), **_dead_letters(each, losses, prefix)}
        values |= _expiry(each, values, losses, prefix)
        if "expiry_address" not in values:
            removed.append(each.key)
        settings = AddressSettings(**values)
        for one in matches:
            if not survives(ArtemisRules(dialect, (AddressEntry(one, settings),)), write_artemis, read):
                losses.add(f"{each.key} is lost: its names cannot stand in an address-setting")
            elif any(other.match == one for other in entries):
                losses.add(f"{each.key}: {one} has the settings of the queues of that name")
            else:
                entries.append(AddressEntry(one, settings))
    for key in removed if entries and entries[-1].settings.expiry_address else ():  # that of all others
        losses.add(f"{key}: expired messages go where the less specific address-setting sends them")
    return _complete(entries)


def _complete(entries: list[AddressEntry]) -> list[AddressEntry]:
    """Return the entries with each default written where another entry would give another value to the merge."""
    names = {name for each in entries for name in each.fields_set} - _WITHOUT_DEFAULT
    shared = {target for each in entries for target in bound.targets(each.settings)}
    found = []
    for entry in entries:
        settings = entry.settings
        values = {name: getattr(settings, name) for name in names | settings.fields_set}
        if "max_redelivery_delay" in names:
            values["max_redelivery_delay"] = settings.longest_delay
        for what, address in (("dead_letter", "dead_letter_address"), ("expiry", "expiry_address")):
            if values.get(f"auto_create_{what}_resources") and values.get(address) in shared:
                values[address] = _APART  # the queue of others there would get a copy
        found.append(AddressEntry(entry.match, AddressSettings(**values)))
    return found


def _delays(pattern: Pattern, losses: Losses, prefix: str) -> dict[str, Any]:
    key, policy = pattern.key, pattern.policy
    if policy.initial_redelivery_delay != policy.redelivery_delay and not policy.use_exponential_back_off:
        losses.add(f"{key}: the first delay ({policy.initial_redelivery_delay:g} s) is that of all redeliveries")
    values: dict[str, Any] = {
        "redelivery_delay": policy.initial_redelivery_delay,
        "max_delivery_attempts": policy.maximum_redeliveries + 1 if policy.maximum_redeliveries >= 0 else -1,
    }
    if policy.use_exponential_back_off:
        values["redelivery_delay_multiplier"] = policy.back_off_multiplier
        cap = policy.maximum_redelivery_delay
        values["max_redelivery_delay"] = 10**9 if cap is None else cap
    if policy.use_collision_avoidance and prefix:
        losses.add(f"{key}: HornetQ has no collision avoidance")
    elif policy.use_collision_avoidance:
        values["redelivery_collision_avoidance_factor"] = policy.collision_avoidance_percent / 100
        if not policy.move_first_delay:
            losses.add(f"{key}: collision avoidance moves the first delay too, and does not add up")
    return values


def _dead_letters(pattern: Pattern, losses: Losses, prefix: str) -> dict[str, Any]:
    """The settings of dead letters; queues of their own are those that Artemis creates."""
    key, strategy = pattern.key, pattern.strategy
    if isinstance(strategy, IndividualDeadLetterStrategy) and not prefix:
        of_topics = key.startswith(TOPIC)
        return {
            "dead_letter_address": DEFAULT_DEAD_LETTER_QUEUE,
            "auto_create_dead_letter_resources": True,
            "dead_letter_queue_prefix": strategy.topic_prefix if of_topics else strategy.queue_prefix,
            "dead_letter_queue_suffix": strategy.topic_suffix if of_topics else strategy.queue_suffix,
        }
    target = dead_letter_queue(pattern, losses)
    if target is None and key != REST and not keeps(pattern):
        losses.add(f"{key}: dead letters are not removed where a less specific address-setting has an address for them")
    return {} if target is None else {"dead_letter_address": f"{prefix}queue.{target}" if prefix else target}


def _expiry(pattern: Pattern, values: dict[str, Any], losses: Losses, prefix: str) -> dict[str, Any]:
    """Expired messages go where dead letters go, or are removed; HornetQ does not change times to live."""
    lifetime, found = pattern.lifetime, dict[str, Any]()
    if lifetime.expired and "dead_letter_address" in values:
        found["expiry_address"] = values["dead_letter_address"]
        if values.get("auto_create_dead_letter_resources"):
            found["auto_create_expiry_resources"] = True
            found["expiry_queue_prefix"] = values["dead_letter_queue_prefix"]
            found["expiry_queue_suffix"] = values["dead_letter_queue_suffix"]
    if prefix:
        no_times(pattern, losses)
        return found
    if lifetime.least is not None:
        found["min_expiry_delay"] = lifetime.least
        if lifetime.most is None:
            losses.add(
                f"{pattern.key}: messages without a time to live get the shortest one ({lifetime.least:g} s) too"
            )
    if lifetime.most is not None:
        found["max_expiry_delay"] = lifetime.most
    return found


def say_unsaid(rules: ArtemisRules, to: str, losses: Losses) -> None:
    """Say what concerns the journal, default times to live, and messages without a queue."""
    if to in ("artemis", "artemis_properties", "hornetq", "kubernetes", "helm", "wildfly"):  # `related` says it
        return
    if rules.persist_delivery_count_before_delivery:
        losses.add("persist-delivery-count-before-delivery = true is lost")
    if rules.max_redelivery_records is not None:
        losses.add(f"max-redelivery-records = {rules.max_redelivery_records} is lost")
    names = _ONLY_THERE if to == "python" else (*_ONLY_THERE, *_CREATED)
    for entry in rules.counting:
        where, given = f"address-setting {entry.match!r}", written(entry.settings)
        for name in (each for each in names if each in given):
            losses.add(f"{where}: {name} = {given[name]} is lost")
        if to == "broker_j" and "min-expiry-delay" in given:
            losses.add(f"{where}: min-expiry-delay is for messages that have a time to live")
        if entry.settings.redelivery_delay_multiplier < 1:
            losses.add(f"{where}: a redelivery-delay-multiplier below 1 is lost")
        key = rules.key_of(entry.match)
        if "\0" in key or not usable({key: 1}):
            losses.add(f"{where} is lost: no queue or topic has such a name")
    for queue, _, _ in rules.selectors():
        losses.add(f"queue {queue!r}: its filter is lost")
