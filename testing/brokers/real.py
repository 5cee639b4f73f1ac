"""A real broker for the tests: found, started and ended."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from redelivery.testing.brokers import containers, native
from redelivery.testing.brokers.ports import AddressInUseError, NotStartedError
from redelivery.testing.brokers.spec import BrokerSpec
from redelivery.testing.brokers.specs import SPECS

_SCHEMES = {"stomp": "stomp", "amqp": "amqp", "openwire": "tcp", "http": "http"}


class UnavailableError(Exception):
    """No broker can be had here, or it cannot do what was asked; the text says why in one line."""


class Provider(Protocol):
    """A process or a container with one broker in it."""

    host: str
    ports: Mapping[str, int]

    def start(self) -> None:
        """Start it, or start it again on the same store and ports."""

    def kill(self) -> None:
        """kill -9."""

    def close(self) -> None:
        """End it and forget its store."""


@dataclass(frozen=True, slots=True)
class RealBroker:
    """A running broker. ``name``: as in `SPECS`. ``title``: with its version. ``urls``: by protocol."""

    name: str
    title: str
    urls: Mapping[str, str]
    provider: Provider | None = field(default=None, repr=False)

    @property
    def stomp_url(self) -> str:
        """``stomp://host:port``."""
        return self._url("stomp")

    @property
    def amqp_url(self) -> str:
        """``amqp://host:port``."""
        return self._url("amqp")

    @property
    def openwire_url(self) -> str:
        """``tcp://host:port``, for a Java client."""
        return self._url("openwire")

    @property
    def http_url(self) -> str:
        """``http://host:port`` of its management, where it has one."""
        return self._url("http")

    def kill(self) -> None:
        """kill -9 of the broker. Follow it by `restart`: the other tests use the same broker."""
        self._provider().kill()

    def restart(self) -> None:
        """Start it again after `kill`, on the same store and ports; returns when it listens."""
        self._provider().start()

    def _url(self, protocol: str) -> str:
        try:
            return self.urls[protocol]
        except KeyError:
            raise UnavailableError(f"{_variable(self.name)} names no {_SCHEMES[protocol]}:// url") from None

    def _provider(self) -> Provider:
        if self.provider is None:
            raise UnavailableError(f"the broker of {_variable(self.name)} is not ours to kill")
        return self.provider


def missing(name: str) -> str | None:
    """The reason why the broker cannot be had here, in one line; None: it can. Starts nothing."""
    if os.environ.get(_variable(name)):
        return None
    spec = SPECS[name]
    lacking = spec.source.missing()
    if lacking is None:
        return None
    without_docker = containers.missing(spec)
    return f"{lacking}, and {without_docker}" if without_docker else None


def wanted(name: str) -> bool:
    """Check whether the broker may be started for the tests (and be fetched by Maven, or pulled by Docker).

    REDELIVERY_REAL_BROKERS=1 says so, for all; CI and REDELIVERY_REQUIRE_BROKERS do, too. REDELIVERY_<NAME>_URL names
    one that runs already.
    """
    asked = os.environ.get("REDELIVERY_REAL_BROKERS", "").lower() in {"1", "true"}
    return asked or bool(os.environ.get(_variable(name))) or required(name)


def required(name: str) -> bool:
    """A missing broker is a failure where REDELIVERY_REQUIRE_BROKERS names it, or CI is set and that is not."""
    listed = os.environ.get("REDELIVERY_REQUIRE_BROKERS")
    if listed is None:
        return os.environ.get("CI", "").lower() in {"1", "true"}
    return name in listed.replace(" ", "").split(",")


@contextmanager
def running(name: str) -> Iterator[RealBroker]:
    """The broker, from the moment it listens; ended on leaving.

    Environment: ``REDELIVERY_<NAME>_URL`` uses one that runs already (several urls are separated by commas);
    ``REDELIVERY_BROKER_PROVIDER`` (``native`` or ``containers``) leaves no choice; otherwise the broker's own
    distribution where what it needs is found (it needs no image and starts in seconds), else a container;
    ``REDELIVERY_CONTAINER_IMAGE`` is one image for all containers (see `redelivery.testing.brokers.containers.image`).
    Where another program takes a port before the broker does, it is started once more, on other ports.

    Raises:
        UnavailableError: there is none.
    """
    spec = SPECS[name]
    external = os.environ.get(_variable(name))
    if external:
        yield RealBroker(name, spec.title, _external_urls(name, external))
        return
    with ExitStack() as closing:
        provider = _started(spec, closing)
        at = f"{spec.login}@{provider.host}" if spec.login else provider.host
        urls = {protocol: f"{_SCHEMES[protocol]}://{at}:{port}" for protocol, port in provider.ports.items()}
        yield RealBroker(name, spec.title, urls, provider)


def _started(spec: BrokerSpec, closing: ExitStack) -> Provider:
    """Started once more, on other ports, where another program was quicker to have one of the first."""
    try:
        with suppress(AddressInUseError):
            return _start(spec, closing)
        return _start(spec, closing)
    except NotStartedError as error:
        raise UnavailableError(str(error)) from error


def _start(spec: BrokerSpec, closing: ExitStack) -> Provider:
    provider = _provider(spec)
    closing.callback(provider.close)
    provider.start()
    return provider


def _provider(spec: BrokerSpec) -> Provider:
    choice = os.environ.get("REDELIVERY_BROKER_PROVIDER", "")
    if choice not in {"", "native", "containers"}:
        raise UnavailableError(f"REDELIVERY_BROKER_PROVIDER={choice!r} is neither 'native' nor 'containers'")
    without_native = spec.source.missing() if choice != "containers" else "containers are asked for"
    if without_native is None:
        return native.NativeBroker(spec)
    without_containers = containers.missing(spec) if choice != "native" else "native is asked for"
    if without_containers is None:
        return containers.ContainerBroker(spec)
    raise UnavailableError(f"no {spec.title}: {without_native}, and {without_containers}")


def _external_urls(name: str, text: str) -> dict[str, str]:
    protocols = {_SCHEMES[protocol]: protocol for protocol in SPECS[name].ports}
    urls = {}
    for url in text.split(","):
        scheme = url.strip().partition("://")[0]
        if scheme not in protocols:
            raise UnavailableError(f"{_variable(name)}: {url!r} begins with none of {', '.join(protocols)}://")
        urls[protocols[scheme]] = url.strip()
    return urls


def _variable(name: str) -> str:
    return f"REDELIVERY_{name.upper()}_URL"
