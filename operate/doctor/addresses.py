"""Checks the URL of a broker: encryption and credentials."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.operate.doctor.findings import Finding
from redelivery.policies.activemq.composite_url import split_composite
from redelivery.policies.connection_url import ConnectionURL, parse_connection_url

_PLAIN: Final = ("stomp", "amqp")
_DEFAULTS: Final = frozenset(
    {("guest", "guest"), ("admin", "admin"), ("system", "manager"), ("user", "password"), ("artemis", "artemis")}
)


def check_url(url: str) -> Iterator[Finding]:
    """The findings of a URL, or of each in a ``failover:`` list; none of one that cannot be parsed."""
    for parsed in _parts(url):
        local = _is_local(parsed.host) or parsed.scheme == "vm"
        if parsed.scheme in _PLAIN and not local:
            yield Finding(
                "warning",
                "tls",
                f"the connection to {parsed.host} is not encrypted",
                "the password and every message can be read, and changed, on their way",
                f"use {'stomp+ssl' if parsed.scheme == 'stomp' else 'amqps'}://",
            )
        if (parsed.username, parsed.password) in _DEFAULTS:
            yield Finding(
                "warning" if local else "error",
                "credentials",
                f"the user {parsed.username!r} has the password that brokers are delivered with",
                "anybody who reaches the broker can log in, read every message and delete queues",
                "give the user another password, and remove the users that you do not need",
            )


def _parts(url: str) -> Iterator[ConnectionURL]:
    try:
        urls = split_composite(url, "failover:")[0] if url.lower().startswith("failover:") else [url]
        yield from map(parse_connection_url, urls)
    except ConfigError:
        return  # connecting says it


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
