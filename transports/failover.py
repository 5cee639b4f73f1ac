"""``failover:`` URLs: which brokers a connection may be made to, and in which order they are tried.

``failover:(stomp://a:61613,amqp://b:5672?amqp.vhost=x)?maxReconnectAttempts=5&…``, as ActiveMQ reads it: without the
parentheses all options belong to the last URL of the list, and ``//`` may stand after ``failover:``. No error, no
``str()`` and no ``repr()`` shows a password.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote

from redelivery.model.errors import ConfigError
from redelivery.policies.activemq.back_off import Random, random_source
from redelivery.policies.activemq.composite_url import shown_list, split_composite
from redelivery.policies.activemq.reconnect_names import RECONNECT_OPTIONS, check_reconnect_names
from redelivery.policies.connection_url import (
    ConnectionURL,
    masked_query,
    masked_url,
    parse_connection_url,
    parse_query,
)
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.registry import check_scheme

_FAILOVER: Final = "failover:"
_LISTS: Final = ("failover", "fanout", "discovery", "static", "masterslave")
_JMS: Final = "jms."
_NESTED: Final = "nested."
_PRIORITY: Final = "priorityURIs"


@dataclass(frozen=True, slots=True, repr=False)
class FailoverURL:
    """A parsed ``failover:`` URL; ``masked``, ``str()`` and ``repr()`` show ``****`` for every password.

    ``urls``: the URLs of the list, each once and in its order, as `parse_connection_url` takes them. The ``jms.*``
    options of the whole are added to the query of each, and so are the ``nested.*`` ones, without this prefix.
    ``reconnect``: the other options.
    ``priority``: those of ``urls`` that ``priorityURIs`` names, or the first; of use with
    ``reconnect.priority_backup`` only.
    """

    urls: tuple[str, ...]
    reconnect: ReconnectPolicy
    priority: tuple[str, ...]
    masked: str

    def __str__(self) -> str:
        return self.masked

    def __repr__(self) -> str:
        return f"FailoverURL({self.masked!r})"


def is_failover(url: object) -> bool:
    """Check whether it is a failover URL."""
    return isinstance(url, str) and url[: len(_FAILOVER)].lower() == _FAILOVER


def parse_failover_url(url: str) -> FailoverURL:
    """The brokers and options of a ``failover:`` URL.

    Raises:
        ConfigError: it has not this form, a URL of the list cannot be used, or an option is unknown or malformed; the
            text names it.
    """
    try:
        return _parse(url)
    except ConfigError as error:
        raise ConfigError(f"failover URL: {error}") from None


def asked_once(url: str) -> ReconnectPolicy | None:
    """The policy for a command, whose user waits: at the start each broker of the list is asked once, where the URL
    sets no limit. None: the URL is not a ``failover:`` one. Raises ConfigError as `parse_failover_url`.
    """
    if not is_failover(url):
        return None
    policy = parse_failover_url(url).reconnect
    return policy if policy.limited else replace(policy, startup_maximum_attempts=1)


def attempt_order(
    urls: Sequence[str],
    policy: ReconnectPolicy,
    *,
    priority: Collection[str] = (),
    failed: str | None = None,
    rng: Random | None = None,
) -> tuple[str, ...]:
    """The URLs in the order in which one attempt tries them, each once.

    Shuffled if the policy randomizes; with ``priority_backup`` those of ``priority`` come first. The URL whose
    connection has ``failed`` is the last in any case. ``rng``: its ``random()`` is drawn once for each URL.
    """
    source = random_source(rng)
    order = sorted(urls, key=lambda _: source.random()) if policy.randomize else list(urls)
    if policy.priority_backup:
        order.sort(key=lambda url: url not in priority)
    order.sort(key=lambda url: url == failed)
    return tuple(order)


def _parse(url: str) -> FailoverURL:
    pieces, query = split_composite(url, _FAILOVER)
    written = _parse_all(pieces, _broker)
    options = parse_query(query)
    own = {name: value for name, value in options.items() if not name.startswith((_JMS, _NESTED)) and name != _PRIORITY}
    check_reconnect_names(own, others=(_PRIORITY, f"{_JMS}*", f"{_NESTED}*"))
    reconnect = ReconnectPolicy.from_activemq(own)
    urls = tuple(_with_query(piece, _passed_on(options)) for piece in pieces)
    complete = _parse_all(urls, parse_connection_url, "with the jms.* and nested.* options of the whole, ")
    _check_agreement(complete)
    prior = _priority(options.get(_PRIORITY), reconnect)
    shown = [masked_query(piece) for piece in query.split("&") if unquote(piece.partition("=")[0]) != _PRIORITY]
    if prior:
        shown.append(f"{_PRIORITY}={','.join(each.masked for each in prior)}")
    return FailoverURL(
        urls=urls,
        reconnect=reconnect,
        priority=_members(prior, urls, complete) or urls[:1],
        masked=f"{_FAILOVER}({','.join(each.masked for each in written)})" + ("?" + "&".join(shown) if query else ""),
    )


def _parse_all(
    urls: Sequence[str], parse: Callable[[str], ConnectionURL], condition: str = ""
) -> tuple[ConnectionURL, ...]:
    found = []
    for number, url in enumerate(urls, 1):
        try:
            found.append(parse(url))
        except ConfigError as error:
            shown = masked_url(url)
            place = f"{condition}URL {number} of {len(urls)}" + (f" ({shown})" if shown else "")
            raise ConfigError(f"{place}: {error}") from None
    return tuple(found)


def _broker(url: str) -> ConnectionURL:
    """A URL of the list, parsed, if a connection to it can be lost and made again."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() in _LISTS:
        raise ConfigError(f"{scheme}:({shown_list(rest)}) cannot stand within failover: write all URLs into one list")
    if not url:
        raise ConfigError("it is empty: is there a ',' too many?")
    if "://" not in url:
        raise ConfigError(
            "it has no scheme; write it like stomp://host:61613, or %2C for a ',' that is part of a password before it"
        )
    parsed = parse_connection_url(url)
    if parsed.scheme == "vm":
        raise ConfigError(
            "a vm:// broker cannot be returned to, as its messages end with it: connect to it without failover:"
        )
    check_scheme(parsed.scheme)
    for name in parsed.params:
        if name in RECONNECT_OPTIONS or name == _PRIORITY:
            raise ConfigError(f"{name} is an option of the whole: write {_FAILOVER}(…)?{name}=…")
    return parsed


def _passed_on(options: Mapping[str, str]) -> str:
    """The text that is added to the query of each URL."""
    added = [(name.removeprefix(_NESTED), value) for name, value in options.items() if name.startswith((_JMS, _NESTED))]
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in added)


def _with_query(url: str, query: str) -> str:
    if not query:
        return url
    separator = "" if url.endswith("?") else "&" if "?" in url else "?"
    return f"{url}{separator}{query}"


def _check_agreement(urls: Sequence[ConnectionURL]) -> None:
    """The policies and the client id belong to the connection, which has them wherever it is connected."""
    found = [(url.redelivery_policy, url.prefetch, url.non_blocking_redelivery, url.client_id) for url in urls]
    for number, options in enumerate(found, 1):
        if options != found[0]:
            raise ConfigError(
                f"URL {number} of {len(urls)} ({urls[number - 1].masked}) has other jms.* options than the first one; "
                f"only the login may differ: write the others once, as {_FAILOVER}(…)?jms.…"
            )


def _priority(value: str | None, policy: ReconnectPolicy) -> tuple[ConnectionURL, ...]:
    if value is None:
        return ()
    if not policy.priority_backup:
        raise ConfigError(f"{_PRIORITY} has no effect without priorityBackup=true: add it, or leave {_PRIORITY} out")
    return _parse_all(value.split(","), parse_connection_url, f"{_PRIORITY}: ")


def _members(prior: Sequence[ConnectionURL], urls: Sequence[str], parsed: Sequence[ConnectionURL]) -> tuple[str, ...]:
    """The URLs of the list that are at the place of a priority URL; its login and options do not count."""
    places = [_place(each) for each in parsed]
    for each in prior:
        if _place(each) not in places:
            raise ConfigError(f"{_PRIORITY}: {each.masked} is not in the list: write the URL as it stands there")
    wanted = {_place(each) for each in prior}
    return tuple(url for url, place in zip(urls, places, strict=True) if place in wanted)


def _place(url: ConnectionURL) -> tuple[str, str, int | None]:
    return url.scheme, url.host.lower(), url.port
