"""Writes down what happens, when, as the recordings do: the time of an event counts from the previous event or step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.traces.places import Place
from tests.traces.scenario import Step


class Recorder:
    """The events so far, and the messages last received; used by the player's threads and by listeners."""

    def __init__(self, place: Place, show: Sequence[str]) -> None:
        self.place = place
        self.show = show
        self.events: list[dict[str, Any]] = []
        self.messages: dict[str, Any] = {}
        self.changed = threading.Condition()
        self._mark = time.perf_counter()
        self._setup = 0.0

    @contextmanager
    def timed(self, nominal_ms: float) -> Iterator[None]:
        """One step. What it took beyond its nominal time since its last event excuses the time of the next event."""
        started = time.perf_counter()
        recorded = len(self.events)
        yield
        with self.changed:
            ended = time.perf_counter()
            since = started if len(self.events) == recorded else self._mark
            self._setup += max(0.0, (ended - since) * 1000 - nominal_ms)
            self._mark = ended

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """A wait that ends with its time-out. What it took beyond that excuses its event, as above."""
        started = time.perf_counter()
        yield
        with self.changed:
            self._setup += max(0.0, time.perf_counter() - started - seconds) * 1000

    def record(self, step: Step | None, op: str | None = None, **fields: Any) -> None:
        with self.changed:
            now = time.perf_counter()
            event: dict[str, Any] = {"op": op or (step.do if step else "deliver")}
            if step is not None:
                event["step"] = step.path
            event.update(fields, ms=(now - self._mark) * 1000, setup=self._setup)
            self.events.append(event)
            self._mark, self._setup = now, 0.0

    def record_message(self, step: Step | None, message: Any, **fields: Any) -> None:
        if message is None:
            self.record(step, body=None, **fields)
            return
        seen = {"body": message.body, "redelivered": message.redelivered, "count": message.delivery_count}
        seen.update((name, self._shown(message, name)) for name in self.show)
        self.messages[(step.get("as") if step else None) or message.body] = message
        self.record(step, **seen, **fields)

    def _shown(self, message: Any, name: str) -> object:
        if name in ("priority", "expiration"):
            return getattr(message, name)
        if name == "destination":
            return self.place.logical(str(message.destination))
        value = message.properties.get(name)
        return self.place.logical(value) if isinstance(value, str) else value


def described(error: Exception) -> dict[str, str]:
    """An error as the recordings have it."""
    return {"class": type(error).__name__, "message": str(error)}
