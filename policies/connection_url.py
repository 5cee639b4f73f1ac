"""Connection URLs: where to connect, as whom, and ActiveMQ's ``jms.*`` options.

``scheme://user:password@host:port/vhost?option=value&…``; user, password, host, virtual host, names and values may be
percent-encoded.
No error, no ``str()`` and no ``repr()`` shows a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.checks import read_flag
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_HEAD: Final = re.compile(r"[^][:/?#@(),]*")  # of a host or a user name
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SECRET: Final = re.compile(r"passw|passcode|secret|token|credential", re.IGNORECASE)
_MASK: Final = "****"
_JMS: Final = "jms."
REDELIVERY: Final = "jms.redeliveryPolicy."
PREFETCH: Final = "jms.prefetchPolicy."
NON_BLOCKING: Final = "jms.nonBlockingRedelivery"
_CLIENT_ID: Final = "jms.clientID"
_USER_NAME: Final = "jms.userName"
_PASSWORD: Final = "jms.password"  # noqa: S105 - the name of an option, not a password
_SINGLE: Final = (NON_BLOCKING, _CLIENT_ID, _USER_NAME, _PASSWORD)
_SCHEMES: Final = {"amqp+ssl": "amqps"}  # as ActiveMQ and Amazon MQ write it
_SYNONYMS: Final = {"jms.user": _USER_NAME, "jms.passcode": _PASSWORD}


@dataclass(frozen=True, slots=True, repr=False)
class ConnectionURL:
    """A parsed connection URL; ``masked``, ``str()`` and ``repr()`` show ``****`` for every password.

    ``host``: without the brackets of an IPv6 address; for ``vm`` the name of the embedded broker.
    ``port``, ``username``, ``password``, ``redelivery_policy``, ``prefetch``, ``non_blocking_redelivery``,
    ``client_id``: None where the URL says nothing. ``vhost``: likewise; the virtual host ``/`` is written ``/%2F``.
    ``params``: the options that do not begin with ``jms.``, decoded, for the transport to judge.
    """

    scheme: str
    host: str
    port: int | None
    username: str | None
    password: str | None
    redelivery_policy: RedeliveryPolicy | None
    prefetch: PrefetchPolicy | None
    non_blocking_redelivery: bool | None
    client_id: str | None
    params: Mapping[str, str]
    masked: str
    vhost: str | None = None

    def __str__(self) -> str:
        return self.masked

    def __repr__(self) -> str:
        return f"ConnectionURL({self.masked!r})"


def parse_connection_url(url: str) -> ConnectionURL:
    """The parts of a connection URL.

    Raises:
        ConfigError: it has not this form, or a ``jms.`` option is unknown or malformed; the text names the part.
    """
    user_info, place, path, query, scheme = _split(url)
    host, port = _host_and_port(scheme, place)
    vhost = _virtual_host(scheme, path) if path else None
    options = parse_query(query)
    username, password = _credentials(user_info, options)
    strange = [name for name in options if name.startswith(_JMS) and not name.startswith((REDELIVERY, PREFETCH))]
    strange = [name for name in strange if name not in _SINGLE]
    if strange:
        known = (*_SINGLE, f"{REDELIVERY}*", f"{PREFETCH}*")
        raise ConfigError(unknown_option(strange[0], known, _SYNONYMS, of="a connection URL"))
    redelivery, prefetch = options_of(options, REDELIVERY), options_of(options, PREFETCH)
    non_blocking = options.get(NON_BLOCKING)
    client_id = options.get(_CLIENT_ID)
    if client_id == "":
        raise ConfigError(f"{_CLIENT_ID}='': use a str that is not empty")
    return ConnectionURL(
        scheme=scheme,
        host=host,
        port=port,
        username=username,
        password=password,
        redelivery_policy=RedeliveryPolicy.from_activemq(redelivery, prefix=REDELIVERY) if redelivery else None,
        prefetch=PrefetchPolicy.from_activemq(prefetch, prefix=PREFETCH) if prefetch else None,
        non_blocking_redelivery=None if non_blocking is None else read_flag(NON_BLOCKING, non_blocking),
        client_id=client_id,
        params=MappingProxyType({name: value for name, value in options.items() if not name.startswith(_JMS)}),
        masked=_masked(scheme, user_info, f"{place}/{path}" if path else place, query),
        vhost=vhost,
    )


def parse_query(query: str) -> dict[str, str]:
    """The options after the ``?`` of a URL, decoded.

    Raises:
        ConfigError: one is not of the form ``name=value``, or occurs twice; the text names it, and shows no value.
    """
    options: dict[str, str] = {}
    for piece in query.split("&") if query else ():
        encoded, equals, value = piece.partition("=")
        name = _decoded("name of an option", encoded)
        if not equals or not name:
            shown = "an option" if "@" in piece else repr(name)
            raise ConfigError(f"{shown} in the connection URL is not of the form name=value")
        if name in options:
            raise ConfigError(f"{name!r} occurs twice in the connection URL")
        options[name] = _decoded(repr(name), value)
    return options


def masked_query(query: str) -> str:
    """Return what stands after the ``?``, with ``****`` for every password."""
    pieces = []
    for piece in query.split("&"):
        name = piece.partition("=")[0]
        pieces.append(f"{name}={_MASK}" if _SECRET.search(unquote(name)) else piece)
    return "&".join(pieces)


def masked_url(url: str) -> str:
    """A URL with ``****`` for every password; of one that cannot be parsed no more than `url_head`."""
    try:
        return parse_connection_url(url).masked
    except ConfigError:
        return url_head(url)


def url_head(url: str) -> str:
    """``stomp://host…``: a part of a URL that holds no password even where the URL is malformed; empty if none does."""
    scheme, _, rest = url.partition("://")
    found = _HEAD.match(rest)
    return f"{scheme}://{found[0]}…" if rest and found and _SCHEME.fullmatch(scheme) else ""


def _split(url: str) -> tuple[str | None, str, str, str, str]:
    """User info (None: no ``@``), host and port, path, query, scheme: still encoded."""
    if not isinstance(url, str):
        raise ConfigError(f"a connection URL is a str, not a {type(url).__name__}")
    if url.lower().startswith("failover:"):
        raise ConfigError("failover: is not in this version; give the URL of one broker, like 'stomp://host:61613'")
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        raise ConfigError("a connection URL begins with a scheme, like 'vm://name' or 'stomp://host:61613'")
    scheme = _SCHEMES.get(scheme.lower(), scheme.lower())
    if not url.isprintable() or " " in url:
        raise ConfigError(f"{scheme} URL: it has a space or a control character; percent-encode it")
    if "#" in rest:
        raise ConfigError(f"{scheme} URL: a '#' must be written %23")
    before, _, query = rest.partition("?")
    if "@" not in before and "@" in query and "=" not in query.partition("@")[0]:
        raise ConfigError(f"{scheme} URL: is there a '?' in the password? Write it %3F, or use password=")
    authority, _, path = before.partition("/")
    if "@" in path:
        raise ConfigError(f"{scheme} URL: is there a '/' in the password? Write it %2F, or use password=")
    user_info, at, place = authority.rpartition("@")
    return (user_info if at else None), place, path, query, scheme


def _virtual_host(scheme: str, path: str) -> str:
    if scheme == "vm":
        raise ConfigError("vm URL: nothing may follow the broker's name but '?' (a '/' elsewhere must be written %2F)")
    if "/" in path:
        raise ConfigError(
            f"{scheme} URL: nothing may follow the host but a virtual host and '?' (a '/' in its name is written %2F)"
        )
    vhost = _decoded("virtual host", path)
    if not vhost.isprintable():
        raise ConfigError(f"{scheme} URL: the virtual host has a control character")
    return vhost


def _host_and_port(scheme: str, place: str) -> tuple[str, int | None]:
    # The texts are not shown: where a password is not encoded, a part of it may stand here.
    if place.startswith("["):
        inside, bracket, after = place[1:].partition("]")
        host = _decoded("host", inside)
        try:
            IPv6Address(host)
        except AddressValueError:
            bracket = ""
        if not bracket or (after and not after.startswith(":")):
            raise ConfigError(f"{scheme} URL: between '[' and ']' there must be an IPv6 address, then ':' and the port")
        port = after[1:] if after else None
    else:
        name, colon, number = place.partition(":")
        host = _decoded("host", name)
        port = number if colon else None
        if port is not None and ":" in port:
            raise ConfigError(f"{scheme} URL: two ':' after the host; an IPv6 address is written in brackets")
    if not host:
        raise ConfigError(f"{scheme} URL: the host is missing" + (" (the broker's name)" if scheme == "vm" else ""))
    if not host.isprintable() or " " in host or "/" in host:
        raise ConfigError(f"{scheme} URL: the host has a character that no host has")
    if port is None:
        return host, None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= 65535):
        raise ConfigError(f"{scheme} URL: the port must be an integer from 1 to 65535")
    return host, int(port)


def _credentials(user_info: str | None, options: Mapping[str, str]) -> tuple[str | None, str | None]:
    username, password = options.get(_USER_NAME), options.get(_PASSWORD)
    if user_info is None:
        return username, password
    user, colon, secret = user_info.partition(":")
    if not user:
        raise ConfigError("the connection URL has an '@' but no user name before it")
    if username is not None or (colon and password is not None):
        twice = "the user name" if username is not None else "the password"
        raise ConfigError(f"the connection URL gives {twice} before '@' and as {_USER_NAME} or {_PASSWORD}")
    return _decoded("user name", user), _decoded("password", secret) if colon else password


def _decoded(what: str, encoded: str) -> str:
    try:
        if not _BROKEN_ESCAPE.search(encoded):
            return unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        pass  # the same advice as for a lone '%'; the text itself may be secret
    raise ConfigError(f"{what} in the connection URL is not percent-encoded UTF-8 (a '%' itself is written %25)")


def options_of(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the options whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def _masked(scheme: str, user_info: str | None, place: str, query: str) -> str:
    user, colon, _ = (user_info or "").partition(":")
    shown = "" if user_info is None else f"{user}:{_MASK}@" if colon else f"{user}@"
    return f"{scheme}://{shown}{place}" + ("?" + masked_query(query) if query else "")
