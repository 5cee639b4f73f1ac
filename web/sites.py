"""The brokers that a console shows, and how each of them is reached."""

from __future__ import annotations

import re
from codecs import lookup
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.client.entry.sync_factory import ConnectionFactory
from redelivery.client.options import ConnectionKeywords
from redelivery.operate.views.looks import Looks
from redelivery.policies.connection_url import masked_url, parse_connection_url
from redelivery.transports.failover import asked_once, is_failover
from redelivery.transports.registry import transport_class

BOUNDS: Final[ConnectionKeywords] = {"connect_timeout": 5, "request_timeout": 10, "close_timeout": 2}
"""Seconds: somebody waits for the page."""


_TAKEN: Final = ("login", "static")  # addresses of the console's own


@dataclass(frozen=True, slots=True)
class BrokerSite:
    """One broker.

    ``key``: its name in the addresses of pages. ``label``: its URL without a password. ``connect``: opens a connection,
    which the page that asked for it closes. ``looks``: how its queues were before. ``url``, ``options``: for the
    doctor.
    """

    key: str
    label: str
    connect: Callable[[], Connection] = field(repr=False)
    url: str = field(repr=False)
    options: ConnectionKeywords = field(repr=False)
    looks: Looks = field(default_factory=Looks, repr=False)


def sites_of(brokers: Iterable[tuple[str, ConnectionKeywords]]) -> dict[str, BrokerSite]:
    """The sites by their keys, in order; two of the same address have numbers.

    Raises:
        ConfigError: a URL or an option is malformed; nobody is connected to.
    """
    found: dict[str, BrokerSite] = {}
    for url, options in brokers:
        label = masked_url(url)
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", address_of(label)).strip("-.") or "broker"
        key = next(each for each in _numbered(name) if each not in (*found, *_TAKEN))
        found[key] = BrokerSite(key, label, _opening(url, options), url, options)
    return found


def address_of(url: str) -> str:
    """The hosts of a URL with their ports: without a scheme, a user and options."""
    return re.sub(r"^[\w+]+:(//)?|[^/@]*@|\?.*", "", url)


def _opening(url: str, options: ConnectionKeywords) -> Callable[[], Connection]:
    if not is_failover(url):
        transport_class(parse_connection_url(url).scheme)  # now, or the first page would wait for it
    lookup("idna")  # the codec of hosts, likewise
    given: Any = {**BOUNDS, "reconnect": asked_once(url), **options}
    return ConnectionFactory(url, **given).create_connection


def _numbered(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
