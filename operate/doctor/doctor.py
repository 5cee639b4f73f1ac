"""Everything that the doctor checks, in order; what could not be checked is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Final

from redelivery.client.sync.connection import Connection
from redelivery.client.sync.factory import connect
from redelivery.model.destinations import Destination, Queue, destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.doctor.addresses import check_url
from redelivery.operate.doctor.configured import OTHERS, check_problems, check_rules
from redelivery.operate.doctor.findings import Finding, Report, in_order
from redelivery.operate.doctor.inspect import clock_skew, look_at_queues
from redelivery.operate.doctor.management import artemis_rules, managed_as
from redelivery.operate.doctor.observed import check_bound, check_clock, check_queues
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.connection_url import masked_url
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE

_PREFETCH: Final = 100  # of a consumer here, unless it says otherwise


def examine(
    url: str,
    config: BrokerPolicies | None = None,
    *,
    queues: Iterable[Destination | str] = (),
    client: BrokerPolicies | None = None,
    watch: float = 1.0,
    connect_timeout: float = 15.0,
) -> Report:
    """Look at a broker, and at its configuration.

    Args:
        url: the broker's, as for `redelivery.connect`.
        config: what was read of its configuration file.
        queues: that are looked at; beside those that the file names and the broker lists.
        client: what was read of the URL of a client that redelivers by itself.
        watch: seconds between the two looks at the queues' depths; 0 for one look.
        connect_timeout: seconds.

    Raises:
        ConfigError: the URL is malformed.
        InvalidDestinationError: one of the queues is not a destination.
    """
    wanted = tuple(destination(each) for each in queues)
    findings, unchecked = list(check_url(url)), list[str]()
    if config is not None:
        findings += check_problems(config)
    policy = None if client is None else client.redelivery_policies.default
    try:
        connection = connect(url, connect_timeout=connect_timeout)
    except ConfigError:
        raise
    except JMSError as error:
        findings.append(_unreachable(url, error))
        if config is not None:
            findings += check_rules(config, wanted, client=policy, prefetch=_PREFETCH)
        return Report("", in_order(findings), ("the broker itself, which was not reached",))
    with connection:
        rules = config or _own_rules(connection, wanted, unchecked)
        if rules is not None:
            charges = connection.metadata.capabilities.counts_prefetched
            findings += check_rules(rules, wanted, client=policy, prefetch=_PREFETCH, charges_prefetched=charges)
        findings += _inspected(connection, rules, wanted, watch, unchecked)
        meta = connection.metadata
        broker = f"{meta.provider_name} {meta.provider_version} over {meta.protocol}".replace("  ", " ")
    return Report(broker, in_order(findings), tuple(unchecked))


def _unreachable(url: str, error: JMSError) -> Finding:
    return Finding(
        "error",
        "connect",
        f"no connection to {masked_url(url) or 'the broker'}: {error}",
        "nothing can be sent or received",
        "start the broker, or correct the URL and its credentials",
    )


def _own_rules(connection: Connection, queues: tuple[Destination, ...], unchecked: list[str]) -> BrokerPolicies | None:
    """What the broker itself reports of its rules."""
    if managed_as(connection) != "artemis":
        unchecked.append("the broker's rules, which it does not report here: pass its configuration file")
        return None
    with _noting("the broker's rules", unchecked):
        names = [*(each.name for each in queues), OTHERS.name]
        return BrokerPolicies("the broker itself", "artemis", artemis_rules(connection, names))
    return None


def _inspected(
    connection: Connection,
    rules: BrokerPolicies | None,
    queues: tuple[Destination, ...],
    watch: float,
    unchecked: list[str],
) -> Iterator[Finding]:
    """At the clock, and at the queues, twice."""
    of_rules = () if rules is None else (rules.explain(each).dead_letter for each in (*queues, OTHERS))
    targets = [each for each in of_rules if each]
    dead = {DEFAULT_DEAD_LETTER_QUEUE, *(each.rpartition("::")[2] for each in targets)}
    names = dict.fromkeys([*(each.name for each in queues if isinstance(each, Queue)), *sorted(dead)])
    with _noting("the broker's clock", unchecked):
        yield from check_clock(clock_skew(connection))
    with _noting("the depths of queues", unchecked):  # last: Classic may close a STOMP connection that looks at a queue
        before = look_at_queues(connection, names)
        if watch > 0:
            sleep(watch)
        after = look_at_queues(connection, names) if watch > 0 else before
        if any(each.consumers is None for each in after.values()):
            unchecked.append("whether queues have consumers, which this broker does not report here")
        yield from check_queues(before, after, frozenset(dead))
        yield from check_bound(targets, after)


@contextmanager
def _noting(what: str, unchecked: list[str]) -> Iterator[None]:
    """A check that the broker refuses is not a failure of the doctor's."""
    try:
        yield
    except JMSError as error:
        unchecked.append(f"{what}: {error}")
