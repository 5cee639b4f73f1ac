"""Names a broker on the command line, and reaches it: the same options on every command that uses one."""

from __future__ import annotations

import os
import re
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from getpass import getpass
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

import redelivery
from redelivery import Connection
from redelivery.broker.registry import running
from redelivery.cli.parts.target import outcome
from redelivery.client.options import ConnectionKeywords
from redelivery.model.errors import ConfigError
from redelivery.policies.connection_url import parse_connection_url
from redelivery.transports.failover import asked_once
from redelivery.transports.management.address import is_encrypted

_BOUNDS: Final[ConnectionKeywords] = {"connect_timeout": 10, "request_timeout": 30, "close_timeout": 5}
_PANEL: Final = "The broker"
_PLAIN: Final = re.compile(r"\b(stomp|amqp)://", re.IGNORECASE)
_ENCRYPTED: Final = {"stomp": "stomp+ssl", "amqp": "amqps"}
_MANAGEMENT_HELP: Final = "Its management over HTTP, such as http://user:password@host:15672."
_URL_HELP: Final = "The broker, such as stomp://user:password@host:61613."
_Text = str | None


def _option(flag: str, help: str, metavar: str | None = None, **settings: Any) -> Any:
    return typer.Option(flag, help=help, metavar=metavar, rich_help_panel=_PANEL, **settings)


_OPTIONS: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("user", _Text, _option("--user", "Who logs in.")),
    ("password_file", Path | None, _option("--password-file", "Its first line is the password.", "FILE")),
    ("ca", Path | None, _option("--ca", "Certificates (PEM) that are trusted.", "FILE")),
    ("cert", Path | None, _option("--cert", "The client's certificate (PEM).", "FILE")),
    ("key", Path | None, _option("--key", "Its key, where --cert has none.", "FILE")),
    ("dialect", _Text, _option("--dialect", "Which broker it is, where that cannot be seen.")),
    ("vhost", _Text, _option("--vhost", "The virtual host.")),
    ("management", _Text, _option("--management", _MANAGEMENT_HELP, "URL")),
    ("connect_timeout", float | None, _option("--connect-timeout", "Seconds until there must be a connection.")),
)
OPTIONS: Final = tuple(name for name, _, _ in _OPTIONS)
_MANAGEMENT: Final = "REDELIVERY_MANAGEMENT"  # for the commands whose broker can be named by the environment, too


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker's URL, and what `redelivery.connect` takes beside it, as far as that was given.

    ``url``: empty where none was given, and the command needs none.
    """

    url: str = field(repr=False)
    options: ConnectionKeywords = field(repr=False)

    def check_stays(self) -> None:
        """Raise ConfigError: it is a broker that would end with the command, and its messages with it."""
        if self.url.lower().startswith("vm://"):
            parsed = parse_connection_url(self.url)
            if "store" not in parsed.params and running(parsed.host) is None:
                raise ConfigError(
                    f"{parsed.masked} would end with this command, and its messages with it: add a store "
                    f"(vm://{parsed.host}?store={parsed.host}.db), or run 'redelivery broker' and use its URL"
                )

    def connect(self) -> Connection:
        """The connection of a command: with the library's bounds.

        Raises:
            ConfigError: it is a broker that would end with the command, and its messages with it.
            JMSError: as `redelivery.connect`.
        """
        self.check_stays()
        given: ConnectionKeywords = {**_BOUNDS, "reconnect": asked_once(self.url), **self.options}
        return redelivery.connect(self.url, **given)


def with_broker(name: str, *, needed: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: its keyword ``broker`` is what ``--url`` and the options beside it say.

    ``name``: what it is called in an error; what it raises becomes its exit code, as `outcome` says. ``needed``: False
    where it does something without a broker, too: then ``broker`` is None.
    """
    kind, default = (str, Parameter.empty) if needed else (_Text, None)
    return lambda command: _with_options(command, name, kind, _from_environment(), default, _managed_options())


def with_brokers(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same of a command with several brokers: its keyword ``brokers`` has one for each ``--url``."""
    url = _from_environment()
    return lambda command: _with_options(command, name, list[str], url, Parameter.empty, _managed_options(), "brokers")


def with_broker_or_none(name: str, help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same of a command that does something without a broker, too: then ``broker`` is None."""
    return lambda command: _with_options(command, name, _Text, _option("--url", help), None)


def with_another_broker(name: str, help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same of a command that has a broker of its own: what is given goes before what that says."""
    return lambda command: _with_options(command, name, str, _option("--url", help), "")


def _from_environment() -> Any:
    return _option("--url", _URL_HELP, envvar="REDELIVERY_URL")


def _managed_options() -> tuple[tuple[str, Any, Any], ...]:
    managed = _option("--management", _MANAGEMENT_HELP, "URL", envvar=_MANAGEMENT)
    return tuple((each, kind, managed if each == "management" else option) for each, kind, option in _OPTIONS)


def options_of(given: dict[str, Any]) -> ConnectionKeywords:
    """The keywords for `redelivery.connect`, of the options beside the URL.

    Raises:
        ConfigError: a file cannot be read, is empty or does not fit; or an option has no effect.
    """
    values: dict[str, Any] = {
        "connect_timeout": given["connect_timeout"],
        "username": given["user"],
        "password": None if given["password_file"] is None else _password(given["password_file"]),
        "dialect": given["dialect"],
        "management": given["management"],
        "vhost": given["vhost"],
    }
    options = cast(ConnectionKeywords, {name: value for name, value in values.items() if value is not None})
    if any(given[name] is not None for name in ("ca", "cert", "key")):
        options["tls"] = _tls(given["ca"], given["cert"], given["key"])
    return options


def _check_encrypted(url: str, given: dict[str, Any]) -> None:
    """Raise ConfigError where a certificate has no effect, with the names that it has here."""
    if is_encrypted(given["management"]):  # for which they may be
        return
    useless = [name for name in ("ca", "cert", "key") if given[name] is not None]
    plain = _PLAIN.search(url)
    if useless and plain is not None:
        raise ConfigError(
            f"--{useless[0]} has no effect: {plain[0]} is not encrypted; write {_ENCRYPTED[plain[1].lower()]}://"
        )


def _with_options(
    command: Callable[..., None],
    name: str,
    kind: Any,
    url: Any,
    default: Any,
    options: tuple[tuple[str, Any, Any], ...] = _OPTIONS,
    keyword: str = "broker",
) -> Callable[..., None]:
    asked = signature(command, eval_str=True)

    def broker(where: str | None, beside: dict[str, Any]) -> Broker | None:
        if (where or "vm:").lower().startswith("vm:") and beside["management"] == os.environ.get(_MANAGEMENT):
            beside["management"] = None  # which is of another broker
        if where is None and (useless := [each for each in OPTIONS if beside[each] is not None]):
            raise ConfigError(f"--{useless[0].replace('_', '-')} has no effect without --url")
        _check_encrypted(where or "", beside)
        return None if where is None else Broker(where, options_of(beside))

    @wraps(command)
    def called(**given: Any) -> None:
        with outcome(name):
            where, beside = given.pop("url"), {each: given.pop(each) for each in OPTIONS}
            several = isinstance(where, list)
            given[keyword] = [broker(each, dict(beside)) for each in where] if several else broker(where, beside)
            command(**given)

    def parameter(name: str, kind: Any, option: Any, default: Any) -> Parameter:
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])

    own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in asked.parameters.values() if each.name != keyword]
    added = [parameter("url", kind, url, default), *(parameter(*each, None) for each in options)]
    called.__signature__ = asked.replace(parameters=[*own, *added])  # type: ignore[attr-defined]  # for typer
    called.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
    return called


def _password(file: Path) -> str:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--password-file: {file} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    password = lines[0].removesuffix("\r")
    if not password:
        raise ConfigError(f"--password-file: the first line of {file} is empty")
    return password


def _tls(ca: Path | None, cert: Path | None, key: Path | None) -> ssl.SSLContext:
    if key is not None and cert is None:
        raise ConfigError("--key has no effect without --cert")
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca: {ca} has no certificates that can be read: {error}") from error
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, lambda: _pass_phrase(key or cert))
        except (OSError, ssl.SSLError) as error:
            where = f"--cert: {cert}" if key is None else f"--cert, --key: {cert}, {key}"
            raise ConfigError(f"{where}: no certificate with its key: {error}") from error
    return context


def _pass_phrase(file: Path) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(f"{file} is encrypted, and there is no terminal to ask for its pass phrase")
    return getpass(f"Pass phrase of {file}: ")
