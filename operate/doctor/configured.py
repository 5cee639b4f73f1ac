"""Checks what a broker's rules, and a client's beside them, lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from redelivery.model.destinations import Destination, Queue
from redelivery.operate.doctor.findings import Finding, removed, without_limit
from redelivery.operate.doctor.rabbitmq.configured import check_client, check_fate, waiting_for_dead_letters
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq.values import DEFAULT_DELIVERY_LIMIT
from redelivery.policies.brokers.rules import DestinationRules
from redelivery.policies.destinations.examples import example_of
from redelivery.policies.destinations.overlaps import is_pattern
from redelivery.policies.redelivery import RedeliveryPolicy

OTHERS: Final = Queue("any.other.queue")
_MOST_ALIKE: Final = 5


def check_problems(policies: BrokerPolicies) -> Iterator[Finding]:
    """The findings about what the file says on redelivery or dead letters and could not be understood."""
    for problem in policies.problems:
        yield Finding(
            "error",
            "not-understood",
            str(problem),
            "the broker may refuse to start with it, or treat messages otherwise than its file seems to say",
            "correct it, or remove it; what is said of the file here is said without it",
        )


def check_rules(
    policies: BrokerPolicies,
    queues: tuple[Destination, ...],
    *,
    client: RedeliveryPolicy | None = None,
    prefetch: int = 1,
    charges_prefetched: bool = False,
    of_others: bool = True,
) -> Iterator[Finding]:
    """The findings of the queues that are asked for, of those that the file names, and ``of_others``, if that is
    wanted.

    More than five that are alike are one finding. ``client``: the policy of a client that redelivers by itself; None:
    it leaves that to the broker. ``prefetch``: messages that a consumer has before the application sees them;
    ``charges_prefetched``: the broker counts a delivery of these when a connection is lost.
    """
    examples = {title: each for title in policies.rules.names() if (each := example_of(title)) and each != OTHERS}
    named = {title if is_pattern(title) else str(each): each for title, each in examples.items()}
    asked = {str(each): each for each in queues}
    if policies.rules.dialect == "rabbitmq":
        waiting = waiting_for_dead_letters(policies)
        named = {title: each for title, each in named.items() if each.name not in waiting}
    all_named = not of_others or {">", "queue://>"} & named.keys()
    others = {} if all_named else {"any other queue": OTHERS}
    charged = prefetch if charges_prefetched else 1
    found: dict[Finding, list[str]] = {}
    for title, queue in {**asked, **named, **others}.items():
        for finding in _check(title, queue, policies, client, charged):
            found.setdefault(replace(finding, what=finding.what.removeprefix(title)), []).append(title)
    for finding, alike in found.items():
        if len(alike) > _MOST_ALIKE:
            yield replace(finding, what=f"{', '.join(alike[:3])} and {len(alike) - 3} more{finding.what}")
        else:
            yield from (replace(finding, what=title + finding.what) for title in alike)


def check_version(dialect: str, version: str) -> Iterator[Finding]:
    """The findings by the version alone, where a broker says nothing about its rules."""
    if dialect == "rabbitmq" and version.startswith("3."):
        yield _undecided(
            f"RabbitMQ {version}",
            f"a quorum queue without a delivery-limit has none ({DEFAULT_DELIVERY_LIMIT} from RabbitMQ 4.0 on)",
        )


def _check(
    title: str,
    queue: Destination,
    policies: BrokerPolicies,
    client: RedeliveryPolicy | None,
    charged: int,
) -> Iterator[Finding]:
    rules = policies.explain(queue)
    of_rabbit = policies.rules.dialect == "rabbitmq"
    yield from check_fate(title, rules) if of_rabbit else _check_fate(title, rules)
    yield from _of_notes(title, rules)
    if of_rabbit and client is not None:
        yield from check_client(title, rules, client)
    if charged > 1 and rules.maximum is not None and rules.counts != "give-ups":
        yield _charged(title, rules, charged)
    if client is not None:
        warning = next((each for each in simulate(policies, queue, client).warnings if " x " in each), None)
        if warning:
            yield Finding(
                "warning",
                "multiplied",
                f"{title}: broker and client both redeliver, {warning.partition(':')[0]}",
                "a message that cannot be processed is tried far more often, and far longer, than either rule says",
                "let one of them do it: maximumRedeliveries=0 in the client, or no limit in the broker",
            )


def _check_fate(title: str, rules: DestinationRules) -> Iterator[Finding]:
    if rules.maximum is None:
        yield without_limit(title, "set a maximum and a dead-letter address")
    elif rules.dead_letter is None:
        do = "set a dead-letter address or queue, and make that queue"
        yield removed(title, rules, "as soon as a client gives it up", do)


def _of_notes(title: str, rules: DestinationRules) -> Iterator[Finding]:
    for note in rules.notes:
        if "no delivery-limit is set" in note:
            yield _undecided(title, note)
        if "no queue stands behind" in note and rules.dead_letter is not None:
            yield Finding(
                "warning",
                "unbound",
                f"{title}: {note}",
                "a dead letter without a queue is removed",
                "make a queue on the dead-letter address, or let the broker create them",
            )


def _undecided(title: str, note: str) -> Finding:
    return Finding(
        "warning",
        "delivery-limit",
        f"{title}: {note}",
        "after how many failures a message is given up depends on the broker's version, and changes with an upgrade",
        "set a delivery-limit, and a dead-letter exchange beside it",
    )


def _charged(title: str, rules: DestinationRules, prefetch: int) -> Finding:
    return Finding(
        "error" if rules.dead_letter is None else "warning",
        "prefetch",
        f"{title}: a lost connection charges a delivery (of {rules.maximum}) to up to {prefetch} prefetched messages",
        f"after {rules.maximum} crashes of a consumer, messages that no application has seen are {_gone(rules)}",
        "use a small prefetch, or a higher maximum",
    )


def _gone(rules: DestinationRules) -> str:
    return "dead letters" if rules.dead_letter else "removed"
