"""A broker that cannot be reached for a while: connections to the pair that pass a gate."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from tests.conformance.lives import Lives
from tests.conformance.stage import LATE, Stage, soon
from tests.run.gate import Gate

from redelivery import IllegalStateError, ReconnectPolicy
from redelivery.events import Connected, ConnectionLost, Event, Reconnected

OUTAGE: Final = 0.3  # seconds


class Outage:
    """Makes connections that come back, and cuts them."""

    def __init__(self, stage: Stage, gate: Gate) -> None:
        parts = urlsplit(stage.pair.url)
        user, at, _ = parts.netloc.rpartition("@")
        self.stage = stage
        self.gate = gate
        self.url = parts._replace(netloc=f"{user}{at}127.0.0.1:{gate.port}").geturl()
        self.lives = Lives()

    def connect(self, **options: Any) -> Any:
        options.setdefault("reconnect", ReconnectPolicy(maximum_delay=0.1))
        return self.stage.connect(url=self.url, observer=self.lives, **options)

    def begin(self, seconds: float = OUTAGE) -> None:
        """An outage that has begun, and been noticed, when this returns; a connection must be there, or come soon."""
        until(lambda: len(self.seen(Connected, Reconnected)) > len(self.seen(ConnectionLost)))
        before = len(self.seen(ConnectionLost))
        self.gate.shut(seconds)
        until(lambda: len(self.seen(ConnectionLost)) > before)

    def accepted(self, call: Callable[[], None]) -> None:
        """Call it; again where the broker may refuse it, as it has not noticed a loss yet."""
        end = monotonic() + LATE
        while True:
            try:
                return call()
            except IllegalStateError:
                if not self.stage.late or monotonic() > end:
                    raise

    def seen(self, *kinds: type) -> list[Any]:
        """The events of these kinds."""
        return [event for event in self.lives.seen if isinstance(event, kinds)]


def until(holds: Callable[[], bool]) -> None:
    """Wait for what happens on another thread; fails where it does not, soon."""
    event, end = threading.Event(), monotonic() + soon()
    while not holds():
        assert monotonic() < end, "it did not happen"
        event.wait(0.01)


class Counted:
    """An observer for long runs: it keeps no event."""

    def __init__(self) -> None:
        self.numbers: Counter[type] = Counter()

    def __call__(self, event: Event) -> None:
        self.numbers[type(event)] += 1

    def check(self) -> None:
        """See Lives."""

    def until(self, kind: type, number: int) -> None:
        until(lambda: self.numbers[kind] >= number)
