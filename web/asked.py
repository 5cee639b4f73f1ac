"""A page: what it was asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from starlette.responses import Response

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue, destination
from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.web.runs import LetterRuns
from redelivery.web.sites import BrokerSite

PAGE: Final = 50
"""Letters of a page."""
MOST: Final = 10_000
"""Letters, from the head of a queue, that one request reads at most."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """A console's own: its sites by their keys; a file of the broker's rules; queues to look at beside those that are
    found; where receipts are written, and what is resolved is kept; whether anything may be changed.
    """

    sites: Mapping[str, BrokerSite]
    receipts: Path
    state: Path
    config: BrokerPolicies | None = None
    queues: tuple[Destination, ...] = ()
    allow_writes: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a page of one site: the fields of its address and, of a POST, of its form."""

    settings: ConsoleSettings
    site: BrokerSite
    runs: LetterRuns
    fields: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A field. Raises ConfigError: it is missing or empty."""
        value = self.fields.get(name, "")
        if not value:
            raise ConfigError(f"the address of this page lacks {name}=: begin at the list of queues")
        return value

    def optional(self, name: str) -> str | None:
        """A field; None: it is missing or empty."""
        return self.fields.get(name) or None

    def number(self, name: str, default: int, most: int) -> int:
        """A field that is a number from 1 on. Raises ConfigError: it is none."""
        text = self.fields.get(name) or str(default)
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most:
            raise ConfigError(f"{name} must be a number from 1 to {most}")
        return int(text)

    @property
    def queue(self) -> Destination:
        """The queue that is meant, whatever characters its name has. Raises ConfigError, InvalidDestinationError."""
        name = self.text("queue").removeprefix("queue://")
        return destination(name) if "://" in name else Queue(name)


@dataclass(frozen=True, slots=True)
class Templated:
    """A template with its values."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirected:
    """Another page of the same site, which the browser is sent to."""

    path: str
    query: Mapping[str, object] = field(default_factory=dict)


Answer: TypeAlias = Templated | Redirected | Response
Page: TypeAlias = Callable[[Asked], Answer]
ConnectedPage: TypeAlias = Callable[[Asked, Connection], Answer]
