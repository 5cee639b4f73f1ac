"""ActiveMQ's ``failover:`` URLs: several brokers, the first of which that answers is connected, again and again.

``failover:(stomp://a:61613,amqp://b:5672?amqp.vhost=x)?initialReconnectDelay=100``; the parentheses may be left out, as
may ``//`` behind the scheme. Options of one broker stand in its own URL, ``jms.*`` and ``nested.*`` behind the list are
every broker's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.checks import LONG_MAX, read_flag, read_number, read_whole
from redelivery.policies.connection_url import ConnectionURL, parse_connection_url
from redelivery.policies.reconnect import NO_LIMIT, ReconnectPolicy

SCHEME: Final = "failover:"
_INT_MAX: Final = (1 << 31) - 1
_JMS: Final = "jms."
_NESTED: Final = "nested."
_BACK_OFF: Final = "useExponentialBackOff"
_EXPONENTS: Final = frozenset(("backOffMultiplier", "reconnectDelayExponent"))
_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("backup", "backupPoolSize"), "no spare connections are kept open"),
    **dict.fromkeys(("priorityBackup", "priorityURIs"), "use randomize=false for a fixed order"),
    **dict.fromkeys(("trackMessages", "maxCacheSize", "trackTransactionProducers"), "nothing is replayed in silence"),
    **dict.fromkeys(
        ("updateURIsSupported", "rebalanceUpdateURIs", "updateURIsURL", "reconnectSupported"),
        "brokers tell their list over OpenWire only",
    ),
    "warnAfterReconnectAttempts": "the first and each tenth attempt that fails is logged as a WARNING",
    "reconnectDelay": "ActiveMQ itself replaces it by initialReconnectDelay",
}


def _delay(name: str, value: str) -> float:
    return read_whole(name, value, 0, LONG_MAX) / 1000


def _attempts(name: str, value: str) -> int:
    return read_whole(name, value, NO_LIMIT, _INT_MAX)


def _multiplier(name: str, value: str) -> float:
    return read_number(name, value, 1.0)


def _timeout(name: str, value: str) -> float | None:
    return None if value == "-1" else _delay(name, value)


_READERS: Final[Mapping[str, tuple[str, Callable[[str, str], object]]]] = {
    "initialReconnectDelay": ("initial_delay", _delay),
    "maxReconnectDelay": ("maximum_delay", _delay),
    **{name: ("multiplier", _multiplier) for name in _EXPONENTS},
    "maxReconnectAttempts": ("maximum_attempts", _attempts),
    "startupMaxReconnectAttempts": ("startup_maximum_attempts", _attempts),
    "randomize": ("randomize", read_flag),
    "timeout": ("timeout", _timeout),
}


@dataclass(frozen=True, slots=True)
class FailoverURL:
    """What such a URL says: its brokers in their order, how they are asked, and itself without passwords."""

    servers: tuple[ConnectionURL, ...]
    reconnect: ReconnectPolicy
    masked: str


def is_failover(url: object) -> bool:
    """Whether it is such a URL."""
    return isinstance(url, str) and url[: len(SCHEME)].lower() == SCHEME


def parse_failover_url(url: str) -> FailoverURL:
    """The parts of a failover URL.

    Raises:
        ConfigError: it has not this form, an option is unknown, malformed or not offered, or the URL of a broker is
            none; the text names the part.
    """
    listed, query = _split(url)
    options = _options(query)
    shared = {name: value for name, value in options.items() if name.startswith(_JMS)}
    shared |= {name.removeprefix(_NESTED): value for name, value in options.items() if name.startswith(_NESTED)}
    servers = tuple(_server(each, shared) for each in _members(listed))
    own = {name: unquote(value) for name, value in options.items() if not name.startswith((_JMS, _NESTED))}
    for other in servers[1:]:
        _check_agreed(servers[0], other)
    shown = "&".join(f"{name}={value}" for name, value in options.items() if not name.startswith((_JMS, _NESTED)))
    masked = f"{SCHEME}({','.join(each.masked for each in servers)})" + (f"?{shown}" if shown else "")
    return FailoverURL(servers, _policy(own), masked)


def _split(url: str) -> tuple[str, str]:
    """What is listed, and the query behind it."""
    rest = url[len(SCHEME) :].removeprefix("//")
    if not rest.startswith("("):
        if rest.count("(") != rest.count(")"):
            raise ConfigError("failover URL: its parentheses do not match: write failover:(url,url)?option=value")
        return rest, ""
    depth = 0
    for at, character in enumerate(rest):
        depth += (character == "(") - (character == ")")
        if not depth:
            after = rest[at + 1 :]
            if after and not after.startswith("?"):
                raise ConfigError("failover URL: behind the ')' there may only be '?' and its options")
            return rest[1:at], after[1:]
    raise ConfigError("failover URL: its parentheses do not match: write failover:(url,url)?option=value")


def _members(listed: str) -> list[str]:
    members = [each.strip() for each in listed.split(",")]
    if not all(members):
        raise ConfigError("failover URL: there is no broker in it, or nothing between two commas: failover:(url,url)")
    return members


def _server(url: str, shared: Mapping[str, str]) -> ConnectionURL:
    if is_failover(url):
        raise ConfigError("failover URL: a failover: URL stands in another one; list its brokers instead")
    if url.lower().startswith("vm:"):
        raise ConfigError("failover URL: vm:// does not come back, as its messages end with its broker; leave it out")
    parsed = parse_connection_url(url)  # alone first: an error shows what was written
    if not shared:
        return parsed
    more = "&".join(f"{name}={value}" for name, value in shared.items())
    whole = parse_connection_url(f"{url}{'&' if '?' in url else '?'}{more}")
    return replace(whole, masked=parsed.masked)


def _options(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        name = unquote(name)
        if not name or not equals:
            raise ConfigError("failover URL: an option is written name=value, and they are joined by '&'")
        if name in found:
            raise ConfigError(f"{name} stands twice in the failover URL")
        found[name] = value
    return found


def _policy(options: Mapping[str, str]) -> ReconnectPolicy:
    for name in options:
        if name in _REFUSED:
            raise ConfigError(f"{name}: this client has no such option: {_REFUSED[name]}; remove it")
        if name not in _READERS and name != _BACK_OFF:
            raise ConfigError(unknown_option(name, (*_READERS, _BACK_OFF), of="a failover URL"))
    if options.keys() >= _EXPONENTS:
        raise ConfigError(f"{' and '.join(sorted(_EXPONENTS))} are two names of one option: give one")
    given: dict[str, Any] = {}
    for name, (ours, read) in _READERS.items():
        if name in options:
            given[ours] = read(name, options[name])
    if _BACK_OFF in options and not read_flag(_BACK_OFF, options[_BACK_OFF]):
        given["multiplier"] = 1.0
    return ReconnectPolicy(**given)


def _check_agreed(first: ConnectionURL, other: ConnectionURL) -> None:
    for name in ("redelivery_policy", "prefetch", "non_blocking_redelivery", "client_id"):
        if getattr(first, name) != getattr(other, name):
            raise ConfigError(
                f"failover URL: the brokers of the list have different jms.* options ({name}), but they are the "
                "connection's: write them once, behind the ')'"
            )
