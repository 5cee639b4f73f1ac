"""The address of a broker's management, with user and password: ``http://user:password@host:15672``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.policies.connection_url import ConnectionURL, parse_connection_url
from redelivery.transports.seam import TransportOptions

_SCHEMES: Final = ("http", "https")
_FORM: Final = "write http://user:password@host:15672, or https://"
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'*+,;=:@%-]+)*/?")
_MESSAGING: Final = ("stomp", "stomp+ssl", "amqp", "amqps")
_SECURE: Final = ("stomp+ssl", "amqps", "vm")
_HERE: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ManagementAddress:
    """A URL of a broker's management, and what it is asked with; no ``repr`` shows the password.

    ``port``: None: the usual one of its scheme. ``path``: before that of the API, without a slash at its end; empty
    where the URL has none. ``vhost``: the connection's virtual host, None where it named none. ``timeout``: seconds
    within which each answer must be there.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    masked: str
    username: str | None
    password: str | None = field(repr=False)
    vhost: str | None = None
    tls: SSLContext | None = None
    timeout: float = 30.0


def is_encrypted(url: object) -> bool:
    """Check whether it is a URL of ``https``."""
    return isinstance(url, str) and url.lower().startswith("https://")


def management_address(
    url: object, server: TransportOptions, *, tls: SSLContext | None = None, timeout: float = 30.0
) -> ManagementAddress | None:
    """The address in ``management=`` of a connection to this server; None where there is none.

    A login that the URL does not have is the connection's. ``tls``: for ``https``; None: the system's. Raises
    ConfigError: it is no such URL; or the connection's password, which is encrypted there, would not be here.
    """
    if url is None:
        return None
    if server.scheme == "vm":
        raise ConfigError("management= was given, but a vm:// broker has no management over HTTP: leave it out")
    parsed, path = _parts(url)
    username, password = parsed.username, parsed.password
    if username is None and server.username is not None:
        if parsed.scheme == "http" and server.scheme in _SECURE and parsed.host not in _HERE:
            raise ConfigError(
                "management: the connection's password would be sent to it unencrypted: write https://, or name who "
                "logs in there (http://user:password@host:15672)"
            )
        username, password = server.username, server.password
    return ManagementAddress(
        scheme=parsed.scheme,
        host=parsed.host,
        port=parsed.port,
        path=path,
        masked=parsed.masked + path,
        username=username,
        password=password,
        vhost=server.vhost,
        tls=tls,
        timeout=timeout,
    )


def _parts(url: object) -> tuple[ConnectionURL, str]:
    """The URL without its path, and its path."""
    if not isinstance(url, str):
        raise ConfigError(f"management must be a str, not a {type(url).__name__}: {_FORM}")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _SCHEMES:
        said = f"{scheme}:// is the broker's messaging" if scheme in _MESSAGING else "it begins with neither"
        raise ConfigError(f"management: {said}, not its management: {_FORM}")
    if "?" in rest:
        raise ConfigError(f"management: its URL has no options; is there a '?' in the password? Write it %3F; {_FORM}")
    place, slash, path = rest.partition("/")
    if "@" in path:
        raise ConfigError("management: is there a '/' in the password? Write it %2F")
    try:
        parsed = parse_connection_url(f"{scheme}://{place}")
    except ConfigError as error:
        raise ConfigError(f"management: {error}") from None
    if path.startswith("#"):
        raise ConfigError("management: leave out what begins with '/#', which is a page for people")
    if not _PATH.fullmatch(slash + path):
        raise ConfigError("management: the path of its URL has a character that must be percent-encoded")
    return parsed, (slash + path).rstrip("/")
