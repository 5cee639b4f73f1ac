"""The form that the description of each real broker fills in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redelivery.testing.brokers.sources import Source


@dataclass(frozen=True, slots=True)
class Site:
    """The place where one broker runs: its configuration and its command are made from it.

    ``home``: its distribution. ``folder``: its configuration. ``data``: its store, which outlives a kill -9.
    ``host``: the address to listen on. ``ports``: by protocol.
    """

    home: Path
    folder: Path
    data: Path
    host: str
    ports: Mapping[str, int]

    def write(self, name: str, text: str) -> None:
        """Write one file of the configuration."""
        (self.folder / name).write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Image:
    """A container image.

    ``files``: where it looks for files of the configuration, by their names. ``has_broker``: it brings the broker and
    starts it; otherwise it has what the broker's own distribution needs, which is mounted into it.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    has_broker: bool = True


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """The way one broker is found, configured and started.

    ``ports``: those it has in a container, by protocol: ``stomp``, ``amqp``, ``openwire``. ``more_ports``: further
    ones that it needs for itself when it runs natively. ``login``: what a url needs before the host, if anything.
    ``tried``: the versions that our own tests were run on; of a system's package the last part may move on.
    ``ready``: what it says on its output when it has all its ports; who listens there before may be another program.
    """

    name: str
    title: str
    source: Source
    image: Image
    ports: Mapping[str, int]
    configure: Callable[[Site], None]
    command: Callable[[Site], Sequence[str]]
    ready: str
    more_ports: Sequence[str] = ()
    login: str = ""
    tried: Sequence[str] = ()
