"""Simulates a message that fails again and again: the broker's rules and the client's, and which of them win."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, repeat
from typing import Final, Literal, TypeAlias

from redelivery.model.destinations import Destination
from redelivery.operate.shown import number_of
from redelivery.policies.brokers.formats import URL
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Address, Delay, DestinationRules, listed_delays
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE
from redelivery.policies.files.durations import time_unit
from redelivery.policies.redelivery import RedeliveryPolicy

LISTED: Final = 200  # attempts that are listed

By: TypeAlias = Literal["first", "client", "broker"]
Wins: TypeAlias = Literal["broker", "client", "both", "nobody"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery to the application, which fails.

    ``at``: seconds after the first one, without collision avoidance; ``least``, ``most``: its bounds. ``by``: who
    redelivers: ``first`` for the first delivery, ``client`` or ``broker``.
    """

    number: int
    at: float
    least: float
    most: float
    by: By


@dataclass(frozen=True, slots=True)
class Simulation:
    """``attempts``: in order, 200 at most; ``total``: their number, None without an end.

    ``ends``: where the message is then. ``wins``: who ends it. ``most_attempts``: what broker and client make together
    where each time the other begins again; None without an end. ``warnings``: what is probably not meant.
    """

    rules: DestinationRules
    client: RedeliveryPolicy | None
    attempts: tuple[Attempt, ...]
    total: int | None
    ends: str
    wins: Wins
    most_attempts: int | None
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        total = "without an end" if self.total is None else number_of(self.total, "attempt")
        lines = [f"{self.rules.destination} ({self.rules.broker}): {total}, then {self.ends}"]
        if self.total is None:
            lines = [f"{self.rules.destination} ({self.rules.broker}): {total}"]
        for each in self.attempts:
            size, unit = time_unit(each.at)
            long = "" if size == 1 else f"  = {each.at / size:.3g} {unit}"
            band = f"  ({each.least:.3f} to {each.most:.3f})" if each.most - each.least > 0.001 * each.number else ""
            who = "first delivery" if each.by == "first" else f"redelivered by the {each.by}"
            lines.append(f"{each.number:>4}  {each.at:>12.3f} s{long}{band}  {who}")
        if self.total is None:
            lines.append("   … and so on")
        elif self.total > len(self.attempts):
            lines.append(f"   … and {self.total - len(self.attempts)} more")
        foot = (*(f"warning: {each}" for each in self.warnings), *(each.line for each in self.rules.not_read))
        return "\n".join([*lines, f"decides: {self.wins}", *foot])


def simulate(
    policies: BrokerPolicies, target: Destination | str, client: RedeliveryPolicy | BrokerPolicies | None = None
) -> Simulation:
    """The timeline of a message of this destination that always fails.

    ``policies``: the broker's, or a client's (a URL). ``client``: the policy of a client that redelivers by itself, or
    what was read of its URL or file. None: the client returns each failure to the broker; where the broker leaves it to
    clients to give up, a client by default. Raises InvalidDestinationError: the str is not a destination.
    """
    rules = policies.explain(target)
    asked = rules.destination.destination if isinstance(rules.destination, Address) else rules.destination
    policy = client.rules.policy_for(asked) if isinstance(client, BrokerPolicies) else client
    is_client = policies.rules.is_client
    rounds = 1 if is_client else rules.maximum
    if policy is None and (is_client or rules.counts == "give-ups"):
        policy = policies.rules.policy_for(asked) if is_client else RedeliveryPolicy()
    local = 1 if policy is None else _deliveries(policy)
    multiplies = policy is None or (rules.counts == "give-ups" and not is_client)
    total = _times(rounds, local) if multiplies else local
    # A file of a client is that of ActiveMQ's own, whose broker moves what it gives up (seen on Classic and Artemis).
    is_java = isinstance(client, BrokerPolicies) and client.rules.is_client and client.format != URL
    client_alone = policy is not None and not multiplies and not is_client and not is_java
    ends = f"{DEFAULT_DEAD_LETTER_QUEUE} (a copy that the client makes)" if client_alone else rules.fate
    return Simulation(
        rules=rules,
        client=policy,
        attempts=tuple(_attempts(rules, policy, total, multiplies)),
        total=total,
        ends=ends,
        wins=_wins(rules, policy, total, multiplies),
        most_attempts=_times(rounds, local),
        warnings=tuple(_warnings(rules, policy, rounds, local, multiplies, is_java)),
    )


def attempts_of(policy: RedeliveryPolicy) -> tuple[Attempt, ...]:
    """List the attempts of a client that redelivers by this policy, 200 at most, and of which no broker has a part."""
    return tuple(_summed(("client", each) for each in _delays(policy, _deliveries(policy) or LISTED)))


def _deliveries(policy: RedeliveryPolicy) -> int | None:
    """Count them; where a strategy looks at the time, with handlers that take none. None: no limit, or beyond 200."""
    most = None if policy.maximum_redeliveries < 0 else policy.maximum_redeliveries + 1
    if policy.given_stop is None:
        return most
    at = 0.0
    for number in range(1, LISTED + 1):
        if policy.ends(number, at):
            return number
        at += policy.delay(number, elapsed=at)
    return most


def _delays(policy: RedeliveryPolicy, deliveries: int | None) -> tuple[Delay, ...]:
    """List the delays of so many deliveries, 200 at most; a strategy, which may draw randomly, is asked once each."""
    number = None if deliveries is None else min(deliveries, LISTED)
    if policy.given_wait is None:
        return listed_delays(policy.delay, number)
    drawn = lru_cache(None)(policy.delay)
    return listed_delays(lambda n, _rng: drawn(n), number)


def _times(rounds: int | None, local: int | None) -> int | None:
    return None if rounds is None or local is None else rounds * local


def _attempts(
    rules: DestinationRules, policy: RedeliveryPolicy | None, total: int | None, multiplies: bool
) -> Iterator[Attempt]:
    """Each attempt with the sum of the delays before it."""
    waits: Iterator[tuple[By, Delay]]
    local = _deliveries(policy) if policy is not None else 1
    by_client = _delays(policy, local) if policy is not None else ()
    if multiplies:
        by_broker = chain(rules.delays, repeat(rules.delays[-1])) if rules.delays else iter(())
        waits = _rounds(by_client, by_broker, endless=local is None)
    else:
        waits = _endless(by_client) if local is None else (("client", each) for each in by_client)
    yield from islice(_summed(waits), LISTED if total is None else max(1, min(total, LISTED)))


def _summed(waits: Iterable[tuple[By, Delay]]) -> Iterator[Attempt]:
    at = least = most = 0.0
    yield Attempt(1, at, least, most, "first")
    for number, (by, wait) in enumerate(waits, 2):
        at, least, most = at + wait.seconds, least + wait.least, most + wait.most
        yield Attempt(number, at, least, most, by)


def _rounds(by_client: tuple[Delay, ...], by_broker: Iterator[Delay], *, endless: bool) -> Iterator[tuple[By, Delay]]:
    if endless:
        yield from _endless(by_client)
    while True:
        for each in by_client:
            yield "client", each
        wait = next(by_broker, None)
        if wait is None:
            return
        yield "broker", wait


def _endless(by_client: tuple[Delay, ...]) -> Iterator[tuple[By, Delay]]:
    for each in chain(by_client, repeat(by_client[-1])):
        yield "client", each


def _wins(rules: DestinationRules, policy: RedeliveryPolicy | None, total: int | None, multiplies: bool) -> Wins:
    if total is None:
        return "nobody"
    if policy is None:
        return "broker"
    return "both" if multiplies and rules.maximum != 1 else "client"


def _warnings(
    rules: DestinationRules,
    policy: RedeliveryPolicy | None,
    rounds: int | None,
    local: int | None,
    multiplies: bool,
    is_java: bool,
) -> Iterator[str]:
    if policy is not None and local != 1 and rounds != 1:
        product = _times(rounds, local)
        shown = f"{rounds} x {local} = {product}" if product is not None else "endlessly many"
        when = (
            "each time that the client gives up, the broker sends the message again"
            if multiplies
            else "each time that the client's connection ends before the message does, the broker delivers it anew"
        )
        yield f"up to {shown} attempts: {when}, and the client's policy begins again"
    if (
        rules.dead_letter is None
        and not rules.kept
        and rounds is not None
        and (policy is None or multiplies or is_java)
    ):
        yield f"the message is lost: {rules.fate}"
    if policy is not None and local is None:
        yield "the client redelivers without a limit: no message ever becomes a dead letter"
    elif policy is None and rounds is None:
        yield "the broker redelivers without a limit: no message ever becomes a dead letter"
