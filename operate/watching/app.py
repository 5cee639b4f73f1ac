"""Looks at the page of metrics that an application serves by ``redelivery run --health-port``."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any, Final, cast
from urllib.parse import urlsplit

from redelivery.model.errors import ConfigError, ConnectError, ProtocolError, RequestTimeoutError
from redelivery.operate.watching.rates import Look, Sample
from redelivery.transports.management.http import BoundedSocket

_FORM: Final = "write http://host:port"
_LARGEST: Final = 16 << 20  # bytes of a page
_LINE: Final = re.compile(r"(redelivery_[a-z_]+)(?:\{(.*)\})? ([-+.0-9eE]+|NaN|[+-]Inf)(?: \d+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?')
_ESCAPED: Final = re.compile(r"\\(.)")
_NOW: Final[Mapping[str, str]] = {
    "consumers": "redelivery_workers",
    "in_flight": "redelivery_in_flight",
    "retries": "redelivery_redeliveries_pending",
    "dead_letters": "redelivery_dead_letters_total",
}
_COUNTED: Final[Mapping[str, str]] = {
    "in": "redelivery_deliveries_total",
    "out": "redelivery_succeeded_total",
    "failed": "redelivery_failures_total",
}
_NOT_SAID: Final = "the page has no such metric"
Labels = Mapping[str, str]


class AppWatch:
    """Looks at one application, at ``http://host:port``, with or without ``/metrics``. Raises ConfigError: it is no
    such URL.

    ``timeout``: seconds within which a page must be there.
    """

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"--app: {_FORM}: its port is not a number") from error
        if parts.scheme != "http" or not parts.hostname or parts.username or parts.query or parts.fragment:
            raise ConfigError(f"--app: {_FORM}, without a login: that is where an application serves its metrics")
        self._host, self._port = parts.hostname, port or 80
        self._path = parts.path if parts.path not in ("", "/") else "/metrics"
        self._timeout = timeout
        place = f"[{self._host}]" if ":" in self._host else self._host
        self._masked = f"http://{place}:{self._port}{self._path}"

    def poll_once(self) -> Look:
        """Look once.

        Raises:
            ConnectError: nobody listens there.
            RequestTimeoutError: the page was not there in time.
            ProtocolError: it is no page of metrics of an application of this library.
        """
        text = self._page()
        at = monotonic()
        found = list(metrics(text))
        alone = {name: value for name, labels, value in found if not labels}
        if "redelivery_connected" not in alone:
            raise ProtocolError(f"what answers at {self._masked} serves no metrics of a redelivery.App")
        facts: dict[str, int | bool | None] = {
            "connected": bool(alone["redelivery_connected"]),
            "healthy": bool(alone.get("redelivery_healthy")),
            "blocked_sends": _whole(alone.get("redelivery_blocked_sends")),
        }
        samples = {each.name: each for each in _samples(found)}
        letters = [each.now["dead_letters"] for each in samples.values()]
        facts["dead_letters"] = None if None in letters else sum(each for each in letters if each is not None)
        why = dict.fromkeys((*_NOW, *_COUNTED), _NOT_SAID)
        return Look(at, datetime.now(UTC), f"the application at {self._masked}", samples, facts, why)

    def _page(self) -> str:
        deadline = monotonic() + self._timeout
        try:
            sock = socket.create_connection((self._host, self._port), timeout=self._timeout)
        except OSError as error:
            raise ConnectError(f"there is no application at {self._masked}: {error.strerror or error}") from error
        with sock:
            connection = HTTPConnection(self._host, self._port)
            connection.sock = cast(Any, BoundedSocket(sock, deadline))
            try:
                connection.request("GET", self._path, headers={"Connection": "close", "Accept": "text/plain"})
                response = connection.getresponse()
                body = response.read(_LARGEST + 1)
            except TimeoutError as error:
                raise RequestTimeoutError(f"{self._masked} did not answer within {self._timeout:g} s") from error
            except (HTTPException, OSError) as error:
                raise ProtocolError(f"what answers at {self._masked} does not speak HTTP: {error}") from error
        if response.status != 200 or len(body) > _LARGEST:
            raise ProtocolError(f"{self._masked} answers {response.status} and no page of metrics")
        return body.decode("utf-8", "replace")


def metrics(text: str) -> Iterator[tuple[str, Labels, float]]:
    """The samples of this library on a page in Prometheus' text format: name, labels and value."""
    for line in text.split("\n"):
        matched = _LINE.fullmatch(line.strip())
        if matched is not None:
            labels = {name: _plain(value) for name, value in _LABEL.findall(matched[2] or "")}
            yield matched[1], labels, float(matched[3])


def _samples(found: list[tuple[str, Labels, float]]) -> Iterator[Sample]:
    """A sample for each destination, over all its listeners."""
    numbers: dict[str, dict[str, float]] = {}
    for name, labels, value in found:
        destination = labels.get("destination")
        if destination is not None:
            of_it = numbers.setdefault(destination, {})
            of_it[name] = of_it.get(name, 0.0) + value
    for destination, values in numbers.items():
        now = {column: _whole(values.get(name)) for column, name in _NOW.items()}
        counted = {column: _whole(values.get(name)) for column, name in _COUNTED.items()}
        yield Sample(destination, now, counted)


def _whole(value: float | None) -> int | None:
    return None if value is None or value != value or abs(value) == float("inf") else int(value)


def _plain(value: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value)
