"""``redelivery broker``: an embedded broker as a process of its own, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from redelivery.broker import EmbeddedBroker
from redelivery.cli.parts.shown import as_json as to_json
from redelivery.cli.parts.shown import visible
from redelivery.client.containers.running import handled_by


class Stopped:
    """The end of the broker: a signal, or the broker itself, which says why."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.signal: int | None = None
        self._event = threading.Event()
        broker.core.when_closed(self._event.set)

    def wait(self) -> None:
        """Return when it has happened."""
        self._event.wait()

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Handle it."""
        self.signal = number
        self._event.set()


def serve(broker: EmbeddedBroker, *, as_json: bool) -> int:
    """Run it until something ends it; the exit code. One line says where it is reached, when it can be.

    Raises:
        ConfigError: a port or the store cannot be had.
    """
    stopped = Stopped(broker)
    with handled_by(stopped.on_signal), broker:
        urls = broker.urls
        if as_json:
            print(to_json({**urls, "store": str(broker.store) if broker.store else None}), flush=True)
        else:
            kept = f"messages are kept in {broker.store}" if broker.store else "messages end with this process"
            print(visible(f"redelivery broker: {' '.join(urls.values())} ({kept})"), flush=True)
        stopped.wait()
    if stopped.signal is None:
        return 1
    return 130 if stopped.signal == signal.SIGINT else 0
