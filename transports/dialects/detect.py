"""Chooses the dialect: the one that was asked for, or the one that the broker's own name says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from redelivery.model.errors import ConfigError, UnsupportedError
from redelivery.model.suggestions import did_you_mean
from redelivery.transports.dialects import activemq, artemis, embedded, hornetq, qpid, rabbitmq, unknown
from redelivery.transports.dialects.amqp import AmqpDialect, DepthQuestion, ReturnLimits
from redelivery.transports.dialects.dialect import Dialect, StompDialect

AUTO: Final = "auto"
INSISTS: Final = "!"  # behind a name: whatever the broker says that it is
_DIALECTS: Final[Mapping[str, Dialect]] = {
    each.DIALECT.name: each.DIALECT for each in (activemq, artemis, hornetq, qpid, rabbitmq, embedded, unknown)
}
_OBEYING: Final[Mapping[str, Dialect]] = {
    each.DIALECT.name: embedded.as_broker(each.DIALECT) for each in (activemq, artemis, hornetq, qpid, rabbitmq)
}
_SYNONYMS: Final = {"classic": "activemq", "amq": "activemq", "broker-j": "qpid", "rabbit": "rabbitmq"}


class ContradictedError(ConfigError):
    """The dialect that was asked for is not that of this broker."""


def check_name(name: str) -> None:
    """Raise ConfigError where there is no such dialect."""
    if name != AUTO and (not isinstance(name, str) or name.removesuffix(INSISTS) not in _DIALECTS):
        known = ", ".join(repr(each) for each in (AUTO, *_DIALECTS))
        raise ConfigError(
            f"dialect={name!r} is not known; it is one of {known}{did_you_mean(name, _DIALECTS, _SYNONYMS)}"
        )


def detect_stomp(name: str, server: str) -> tuple[Dialect, StompDialect]:
    """The dialect of a broker whose header ``server`` that is, or the one of that name, unless that contradicts it.

    Raises:
        ContradictedError: the broker says that it is another one.
        ConfigError: there is no dialect of that name.
        UnsupportedError: that broker has no STOMP.
    """
    said = unknown.DIALECT
    for each in (*_DIALECTS.values(), *_OBEYING.values()):
        if each.server_prefix and server.startswith(each.server_prefix):
            said = each
    found = chosen(name, said, server)
    if found.stomp is None:
        raise UnsupportedError(f"{found.provider} has no STOMP; use amqp://")
    version = server.removeprefix(found.server_prefix)
    return found, next((table for since, table in found.stomp_since if _numbers(version) >= since), found.stomp)


def stomp_host(name: str, refusal: str | None = None) -> str | None:
    """The virtual host to name in CONNECT of a broker of that dialect; None: that of the URL.

    ``refusal``: what the broker said when that of the URL was named, so that there is no guess before. ``"auto"`` has
    nothing else to go by.
    """
    for each in _DIALECTS.values():
        stomp = each.stomp
        if stomp is None or name.removesuffix(INSISTS) not in (AUTO, each.name):
            continue
        if refusal is None and name.removesuffix(INSISTS) == each.name:
            return stomp.virtual_host
        if refusal and stomp.virtual_host_refused is not None and stomp.virtual_host_refused in refusal.lower():
            return stomp.virtual_host
    return None


def check_virtual_host(dialect: Dialect, vhost: str | None) -> None:
    """Raise ConfigError where a virtual host is named to a broker that has none, and would ignore it."""
    if vhost is not None and not dialect.virtual_host:
        raise ConfigError(
            f"{dialect.provider} has no virtual hosts: leave {vhost!r} out, after the URL's host or as vhost="
        )


def check_declares(dialect: Dialect, table: StompDialect | AmqpDialect, declares: bool) -> None:
    """Raise UnsupportedError where no queue is to be made, and the broker makes them by itself."""
    if not declares and table.makes_queues:
        raise UnsupportedError(
            f"declare=False: {dialect.provider} itself makes queues that are used, or not, as it is set up: turn that "
            "off in its configuration, and leave declare= out"
        )


def amqp_virtual_host(name: str, vhost: str) -> str:
    """The name of this virtual host in AMQP's open, for a broker of that dialect; of ``"auto"``: as it is."""
    return (_DIALECTS[name.removesuffix(INSISTS)].virtual_host if name != AUTO else "").replace("{}", vhost) or vhost


def detect_amqp(
    name: str, product: str, container: str, version: str = "", hostname: str | None = None
) -> tuple[Dialect, AmqpDialect]:
    """The same, for a broker whose connection properties those are; of one that has none the rest of its open.

    Raises:
        ContradictedError, ConfigError: as `detect_stomp`.
        UnsupportedError: that broker's AMQP 1.0 cannot be used.
    """
    said, unnamed = unknown.DIALECT, not container and hostname == ""
    for each in (*_DIALECTS.values(), *_OBEYING.values()):
        if (product == each.product) if product else (each.anonymous and unnamed):
            said = each
    found = chosen(name, said, product)
    amqp = next((table for since, table in found.amqp_since if _numbers(version) >= since), found.amqp)
    if amqp is None or amqp.unsupported is not None:
        why = "it has none" if amqp is None else amqp.unsupported
        raise UnsupportedError(f"{found.provider} cannot be used over AMQP: {why}")
    return found, amqp


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with; none where it begins otherwise."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def chosen(name: str, said: Dialect, named: str) -> Dialect:
    """The dialect of that name where the broker says nothing else, or where it is insisted on."""
    check_name(name)
    if name in (AUTO, said.name):
        return said
    asked = _DIALECTS[name.removesuffix(INSISTS)]
    stands_in = said is embedded.DIALECT and asked.name == embedded.MEANING
    if unknown.DIALECT in (said, asked) or stands_in or name.endswith(INSISTS):
        return asked
    says = f" ({named[:80]!r})" if named else ""
    raise ContradictedError(
        f"dialect={name!r}: the broker says that it is {said.provider}{says}, which may confirm, and lose, what is"
        f" written as for {asked.provider}; leave dialect= out, or insist: dialect={name + INSISTS!r}"
    )


def obeying(name: str | None) -> Dialect:
    """The dialect of an embedded broker that obeys the file of a broker of that name; None: that of one without."""
    return embedded.DIALECT if name is None else _OBEYING[name]


def spoken(name: str) -> StompDialect | None:
    """The STOMP of the broker of that name itself; None: it has none."""
    return _DIALECTS[name].stomp


def depth_question(name: str) -> DepthQuestion | None:
    """The question over AMQP how many messages a queue of that dialect's broker holds; None: it does not say."""
    amqp = _DIALECTS[name].amqp
    return None if amqp is None else amqp.depth


def limits(name: str) -> ReturnLimits | None:
    """The names that the newest broker of that dialect has for the limits of queues that count; None: it has none."""
    since = _DIALECTS[name].amqp_since
    return since[0][1].limits if since else None


def shares_by_client_id(name: str, protocol: str) -> bool:
    """Check whether a shared durable subscription of that dialect's broker belongs to a client id in any case.

    ``protocol``: such as ``STOMP 1.2``. Such a broker takes a client id as often as it comes.
    """
    stomp = _DIALECTS[name].stomp
    return protocol.startswith("STOMP") and stomp is not None and stomp.shared_needs_client_id


def duplicate_refusal(name: str) -> str | None:
    """A part of how a broker of that dialect refuses, over AMQP, a transaction that it has committed before."""
    amqp = _DIALECTS[name].amqp
    return None if amqp is None else amqp.duplicate_refusal


def messaging_system(name: str) -> str:
    """The name that OpenTelemetry has for a broker of that dialect."""
    return _DIALECTS[name].system


def queues_of_topics() -> Mapping[str, str]:
    """The way a queue's name is written that the broker fills from a topic, by provider."""
    return {each.provider: each.queue_of_topic for each in _DIALECTS.values() if each.queue_of_topic}


def counted_properties() -> frozenset[str]:
    """Properties that one broker or another changes with each delivery of a message."""
    return frozenset().union(*(each.counted_properties for each in _DIALECTS.values()))


def duplicate_id_properties() -> frozenset[str]:
    """Properties by which one broker or another drops a message that has one that came before."""
    protocols = [each for dialect in _DIALECTS.values() for each in (dialect.stomp, dialect.amqp) if each is not None]
    return frozenset(
        each.capabilities.duplicate_id_property for each in protocols if each.capabilities.duplicate_id_property
    )
