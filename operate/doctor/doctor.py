"""Everything that the doctor checks, in order; what could not be checked is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import sleep
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.client.entry.sync_factory import connect
from redelivery.client.options import ConnectionKeywords
from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.destinations import Destination, Queue, destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.doctor.addresses import check_url
from redelivery.operate.doctor.broker_j import broker_j_names, broker_j_rules
from redelivery.operate.doctor.chosen import MOST, choose
from redelivery.operate.doctor.configured import OTHERS, check_problems, check_rules, check_version
from redelivery.operate.doctor.embedded import embedded_rules, is_embedded_here
from redelivery.operate.doctor.findings import Finding, Report, in_order
from redelivery.operate.doctor.inspect import Inspector, clock_skew
from redelivery.operate.doctor.management import artemis_addresses, artemis_rules, managed_as
from redelivery.operate.doctor.observed import check_bound, check_clock, check_queues, is_called_dead
from redelivery.operate.doctor.rabbitmq.over_amqp import (
    check_streams,
    described_queues,
    described_rules,
    describes_queues,
    unless_a_policy,
)
from redelivery.operate.doctor.rabbitmq.over_http import management_over_http, rabbit_reported, rabbit_rules
from redelivery.operate.doctor.rabbitmq.reported import check_reported
from redelivery.policies.brokers.formats import read_url
from redelivery.policies.brokers.policies import BrokerPolicies, named
from redelivery.policies.connection_url import masked_url
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.dialects.rabbitmq import AMQP_4
from redelivery.transports.failover import asked_once

_PREFETCH: Final = 100  # of a consumer here, unless its URL says otherwise
_JAVA_PREFETCH: Final = 1000  # of one of ActiveMQ's Java client
_JAVA: Final = re.compile(r"\b(tcp|ssl|nio|auto)(\+\w+)?://")


def examine_file(
    config: BrokerPolicies, *, queues: Iterable[Destination | str] = (), client: BrokerPolicies | None = None
) -> Report:
    """Look at a broker's configuration alone; the arguments are those of `examine`.

    Raises:
        InvalidDestinationError: one of the queues is not a destination.
    """
    asked = tuple(named(each) for each in queues)
    policy = None if client is None else client.redelivery_policies.default
    found = [*check_problems(config), *check_rules(config, asked, client=policy, prefetch=_prefetch("", client))]
    unchecked = ("the broker itself: no URL was given",)
    return Report("", in_order(found), unchecked, f"{config.path} ({config.broker})", config.not_read)


def examine(
    url: str,
    config: BrokerPolicies | None = None,
    *,
    queues: Iterable[Destination | str] = (),
    client: BrokerPolicies | None = None,
    watch: float = 1.0,
    connect_timeout: float = 15.0,
    options: ConnectionKeywords | None = None,
) -> Report:
    """Look at a broker, and at its configuration.

    ``queues`` are looked at beside those that the file names and the broker lists. ``client``: what was read of the URL
    of a client that redelivers by itself. ``watch``: seconds between the two looks at the queues' depths; 0 for one
    look. ``options``: what else `redelivery.connect` takes beside the URL.

    Raises:
        ConfigError: the URL or an option is malformed.
        InvalidDestinationError: one of the queues is not a destination.
    """
    asked = tuple(destination(each) for each in queues)
    findings, unchecked = list(check_url(url)), list[str]()
    if config is not None:
        findings += check_problems(config)
    not_read = () if config is None else config.not_read
    policy = None if client is None else client.redelivery_policies.default
    prefetch = _prefetch(url, client)
    try:
        given: ConnectionKeywords = {
            "connect_timeout": connect_timeout,
            "reconnect": asked_once(url),
            **(options or {}),
        }
        connection = connect(url, **given)
    except ConfigError:
        raise
    except JMSError as error:
        findings.append(_unreachable(url, error))
        if config is not None:
            findings += check_rules(config, asked, client=policy, prefetch=prefetch)
        return Report("", in_order(findings), ("the broker itself, which was not reached",), not_read=not_read)
    with connection:
        meta = connection.metadata
        rules = own_rules(connection, asked, unchecked) if config is None else _of_version(config, meta)
        if rules is not None:
            charges = meta.capabilities.counts_prefetched
            prefetch = _prefetch(url, client, _usual_prefetch(meta))
            own = config is None and management_over_http(connection) is not None  # it lists all queues that there are
            findings += check_rules(
                rules, asked, client=policy, prefetch=prefetch, charges_prefetched=charges, of_others=not own
            )
        else:
            findings += check_version(connection.dialect, meta.provider_version)
            described, rules = _described(connection, asked, policy, unchecked)
            findings += described
        findings += _reported(connection, findings, unchecked)
        findings += _inspected(connection, rules, asked, watch, unchecked)
        broker = f"{meta.provider_name} {meta.provider_version} over {meta.protocol}".replace("  ", " ")
    return Report(broker, in_order(findings), tuple(unchecked), not_read=not_read)


def _unreachable(url: str, error: JMSError) -> Finding:
    return Finding(
        "error",
        "connect",
        f"no connection to {masked_url(url) or 'the broker'}: {error}",
        "nothing can be sent or received",
        "start the broker, or correct the URL and its credentials",
    )


def _of_version(config: BrokerPolicies, meta: ConnectionMetaData) -> BrokerPolicies:
    """The rules with the version of the broker, on which RabbitMQ's delivery limit depends, where the file has none."""
    if config.rules.broker != meta.provider_name:
        return config
    return replace(config, rules=config.rules.of_version(meta.provider_version))


def _usual_prefetch(meta: ConnectionMetaData) -> int:
    """The prefetch of a consumer here where nobody says it: less where the queue counts whatever goes back to it."""
    version = tuple(map(int, re.findall(r"\d+", meta.provider_version)[:2]))
    counts = meta.provider_name == "RabbitMQ" and (4, 0) <= version < (4, 3)
    return AMQP_4.counted_prefetch if counts else _PREFETCH


def _prefetch(url: str, client: BrokerPolicies | None, usual: int = _PREFETCH) -> int:
    """The prefetch of a consumer of the client; without one, of one that is connected by this URL."""
    policies = client or _of_url(url)
    if policies is not None and policies.rules.prefetch is not None:
        number = policies.rules.prefetch.for_destination(OTHERS)
        if number is not None:
            return number
    return _JAVA_PREFETCH if client is not None and _JAVA.search(client.path) else usual


def _of_url(url: str) -> BrokerPolicies | None:
    try:
        return read_url(url, strict=False)
    except ConfigError:
        return None  # connecting says it


def own_rules(connection: Connection, queues: tuple[Destination, ...], unchecked: list[str]) -> BrokerPolicies | None:
    """The rules that the broker itself reports."""
    if is_embedded_here(connection):
        return embedded_rules(connection)
    asked = [each.name for each in queues]
    with _noting("the broker's rules", unchecked):
        over_http = management_over_http(connection)
        if over_http is not None:
            return rabbit_rules(over_http, unchecked)
        match managed_as(connection):
            case "artemis":
                return _of_artemis(connection, asked, unchecked)
            case "qpid":
                return _of_broker_j(connection, asked, unchecked)
        unchecked.append(f"the broker's rules, which it does not report here: pass {_file_of(connection)}")
    return None


def _of_artemis(connection: Connection, asked: list[str], unchecked: list[str]) -> BrokerPolicies:
    """The settings of these addresses, and of those that have a queue, but where dead letters go."""
    listed = _first(artemis_addresses(connection), asked, "the settings of {} more addresses", unchecked)
    found = artemis_rules(connection, [*asked, *listed, OTHERS.name])
    targets = {each.settings.dead_letter_address for each in found.entries}
    targets |= {each.settings.expiry_address for each in found.entries}
    entries = tuple(each for each in found.entries if each.match in asked or each.match not in targets)
    return BrokerPolicies("the broker itself", "artemis", replace(found, entries=entries))


def _of_broker_j(connection: Connection, asked: list[str], unchecked: list[str]) -> BrokerPolicies:
    """The same of queues."""
    listed = _first(broker_j_names(connection), asked, "the rules of {} more queues", unchecked)
    found = broker_j_rules(connection, [*asked, *listed])
    (host,) = found.hosts
    targets = {found.alternate_for(each.name) for each in host.queues} | {found.alternate_for(OTHERS.name)}
    queues = tuple(each for each in host.queues if each.name in asked or each.name not in targets)
    return BrokerPolicies("the broker itself", "broker_j", replace(found, hosts=(replace(host, queues=queues),)))


def _first(listed: tuple[str, ...], asked: list[str], what: str, unchecked: list[str]) -> list[str]:
    """The queues, as many as are looked at, that the broker lists and nobody asked for."""
    others = [each for each in listed if each not in asked]
    if len(others) > MOST:
        unchecked.append(f"{what.format(len(others) - MOST)}: name those that matter by --queue")
    return others[:MOST]


def _file_of(connection: Connection) -> str:
    if connection.dialect == "rabbitmq":
        return (
            "--management http://user:password@host:15672, or --config with its definitions, as 'rabbitmqctl "
            "export_definitions FILE' writes them"
        )
    return "its configuration file"


def _described(
    connection: Connection, queues: tuple[Destination, ...], client: RedeliveryPolicy | None, unchecked: list[str]
) -> tuple[list[Finding], BrokerPolicies | None]:
    """Check the queues that are asked for, where a broker says their arguments, and not its policies."""
    named = [each.name for each in queues if isinstance(each, Queue)]
    if not named or not describes_queues(connection):
        return [], None
    with _noting("the arguments of queues", unchecked):
        found = described_queues(connection, named)
        rules = described_rules(found, connection.metadata.provider_version)
        own = check_rules(rules, (), client=client, of_others=False)
        return [*unless_a_policy(own), *check_streams(found)], rules
    return [], None


def _reported(connection: Connection, found: list[Finding], unchecked: list[str]) -> list[Finding]:
    """The findings by a broker's management beside its rules and queues."""
    management = management_over_http(connection)
    if management is None:
        return []
    with _noting("what the broker's management reports", unchecked):
        said = any(each.check == "credentials" for each in found)
        return list(check_reported(rabbit_reported(management, unchecked), guest_is_said=said))
    return []


def _inspected(
    connection: Connection,
    rules: BrokerPolicies | None,
    queues: tuple[Destination, ...],
    watch: float,
    unchecked: list[str],
) -> Iterator[Finding]:
    """At the clock, and at the queues, twice."""
    chosen, inspector = choose(rules, queues), Inspector(connection)
    if chosen.more and not inspector.lists_all:
        unchecked.append(f"{chosen.more} more queues that the file names: name those that matter by --queue")
    with _noting("the broker's clock", unchecked):
        yield from check_clock(clock_skew(connection))
    named = [each.name for each in queues if isinstance(each, Queue) and is_called_dead(each.name)]
    depths = f" (of them {', '.join(named)}, where dead letters are)" if named else ""
    with _noting(
        f"the depths of queues{depths}", unchecked
    ):  # last: Classic may close a STOMP connection that looks at a queue
        before = inspector.states(chosen.queues)
        if watch > 0:
            sleep(watch)
        after = inspector.states(chosen.queues) if watch > 0 else before
        unchecked += after.unchecked
        unchecked += inspector.unnamed
        dead = chosen.dead_letters | inspector.holding_dead_letters(after.queues)
        asked = frozenset(each.name for each in queues if isinstance(each, Queue))
        yield from check_queues(before.queues, after.queues, dead, asked)
        yield from check_bound(chosen.targets, after.queues)


@contextmanager
def _noting(what: str, unchecked: list[str]) -> Iterator[None]:
    """A check that the broker refuses is not a failure of the doctor's."""
    try:
        yield
    except JMSError as error:
        unchecked.append(f"{what}: {error}")
