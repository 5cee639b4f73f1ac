"""Checks what RabbitMQ's rules lead to for one queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from redelivery.operate.doctor.findings import LOST, Finding, removed, without_limit
from redelivery.operate.shown import number_of
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import DestinationRules
from redelivery.policies.redelivery import RedeliveryPolicy

_BOUNDS: Final = frozenset({"max-length", "max-length-bytes", "message-ttl", "expires"})
_NO_EXCHANGE: Final = "no dead-letter-exchange is set"
_GONE: Final = ("a dead letter is removed", "the oldest one is gone", "with the dead letters in it")
_WITHOUT_EFFECT: Final = ("has no effect on a", "needs overflow reject-publish", "RabbitMQ refuses")


def waiting_for_dead_letters(policies: BrokerPolicies) -> frozenset[str]:
    """The queues that hold the dead letters of others, and so need no dead-letter exchange of their own."""
    found = {name: policies.explain(name) for name in policies.rules.names() if _is_name(name)}
    targets = {each for name, explained in found.items() for each in explained.dead_letter_queues if each != name}
    return frozenset(name for name in targets if name in found and found[name].removed_because == _NO_EXCHANGE)


def _is_name(name: str) -> bool:
    return bool(name) and not set(name) & set("*>?#")


def check_fate(title: str, rules: DestinationRules) -> Iterator[Finding]:
    """Check the end of a message that fails, and of the dead letter after that."""
    if rules.kept and rules.several == () and "a stream" in rules.removed_because:
        return  # nothing of it is ever lost; `reported` says who reads it as a queue
    if rules.maximum is None:
        yield without_limit(title, "set a delivery-limit and a dead-letter-exchange")
    elif rules.kept:
        yield Finding(
            "error",
            "unbound",
            f"{title}: dead letters leave the queue for nowhere ({rules.removed_because})",
            "nobody sees them, and they fill the broker",
            "make the exchange, and bind a queue to it",
        )
    elif rules.dead_letter is None:
        yield _removed(title, rules)
    supposed = any("does not name this queue" in each for each in rules.notes)
    bounded = {each.name.removeprefix("x-") for each in rules.settings} & _BOUNDS
    if rules.counts == "give-ups" and not supposed and not bounded:
        yield Finding(
            "warning",
            "no-limit",
            f"{title}: a classic queue without any limit, of deliveries, length or age",
            "a message that clients return is tried for ever, and what nobody takes fills the broker",
            "use a quorum queue with a delivery-limit, or clients that give up; set max-length or message-ttl",
        )
    yield from _of_notes(title, rules)


def _removed(title: str, rules: DestinationRules) -> Finding:
    unset = rules.removed_because == _NO_EXCHANGE
    bind, make = "set a dead-letter-exchange, and bind a queue to it", "make what is missing: exchange, binding, queue"
    found = removed(title, rules, "when a client rejects it", bind if unset else make)
    return replace(found, level="warning") if rules.counts == "give-ups" and unset else found


def _of_notes(title: str, rules: DestinationRules) -> Iterator[Finding]:
    for note in rules.notes:
        if "it is lost then" in note or "it is lost:" in note:
            yield Finding("error", "removed", f"{title}: {note}", LOST, "let the dead letters stay where they are")
        elif "without an end" in note:
            yield Finding(
                "warning",
                "no-limit",
                f"{title}: {note}",
                "one message that can never be processed is tried for ever",
                "let clients count, and send to a queue for dead letters what they give up",
            )
        elif any(each in note for each in _GONE):
            yield Finding(
                "warning",
                "removed",
                f"{title}: {note}",
                "dead letters are lost before anybody has looked at them",
                "give the queue of the dead letters no limit, or read it in time",
            )
        elif "is removed: no" in note or "is removed: exchange" in note:
            yield Finding("warning", "unbound", f"{title}: {note}", LOST, "bind a queue to the exchange for that key")
        elif any(each in note for each in _WITHOUT_EFFECT):
            yield Finding(
                "warning",
                "no-effect",
                f"{title}: {note}",
                "the rules are not those that seem to be set",
                "write a policy for each type of queue, with what that type has",
            )


def check_client(title: str, rules: DestinationRules, client: RedeliveryPolicy) -> Iterator[Finding]:
    """Check whether the broker's limit is below what a client's policy allows."""
    if rules.counts != "failures" or rules.maximum is None:
        return
    wanted = client.maximum_redeliveries
    if 0 <= wanted < rules.maximum:
        return
    allows = "any number of deliveries" if wanted < 0 else number_of(wanted + 1, "delivery", "deliveries")
    fate = f"sends it to {rules.dead_letter}" if rules.dead_letter else "removes it"
    yield Finding(
        "warning" if rules.dead_letter or rules.kept else "error",
        "client-limit",
        f"{title}: the client's policy allows {allows}, and the broker {fate} after {rules.maximum}",
        "what comes back to the broker, as by a lost connection, is given up before the client gives it up",
        "raise the delivery-limit above the client's number, or lower that",
    )
