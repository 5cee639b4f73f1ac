"""Faults of connections, drawn one after the other."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Final

from tests.run.gate import Gate

# Of ten faults: reset and refused for up to 0.3 s; heard no more, then reset; passed on late; half open until noticed.
KINDS: Final = ("reset",) * 5 + ("deaf",) * 2 + ("stall",) * 2 + ("half-open",)
# A half-open connection is noticed by its heart-beat; over AMQP by that and the time for an answer that is awaited.
HEARTBEAT: Final = 1.0  # seconds
ANSWER: Final = 5.0  # seconds
NOTICED: Final = 30.0  # seconds until it must be noticed, on a busy machine


class Faults:
    """``losses``, ``returns``: how often one of so many ``connections`` was noticed to be lost, and came back.

    They are equal when all are there.
    """

    def __init__(
        self, gate: Gate, seed: int, losses: Callable[[], int], returns: Callable[[], int], connections: int
    ) -> None:
        self._gate = gate
        self._rng = random.Random(seed)  # noqa: S311  # no secret
        self._losses = losses
        self._returns = returns
        self._connections = connections
        self._pause = threading.Event()  # which nobody sets
        self.counts: Counter[str] = Counter()

    def between(self, seconds: float) -> None:
        """Wait about so long."""
        self._pause.wait(seconds * self._rng.uniform(0.5, 1.5))

    def next(self) -> None:
        """One of them, over when this returns; a refusal may last for a little longer."""
        kind = self._rng.choice(KINDS)
        self.counts[kind] += 1
        match kind:
            case "stall":
                self._gate.stall(self._rng.uniform(0.1, 0.8))
            case "half-open":
                self._half_open()
            case _:
                if kind == "deaf":
                    self._gate.deafen()
                    self._pause.wait(0.1)
                self._gate.shut(self._rng.uniform(0.02, 0.3))

    def _half_open(self) -> None:
        # one that is being dialled from an earlier fault cannot be lost again
        self._until(lambda: self._returns() == self._losses(), "connections did not come back")
        before = self._losses()
        self._gate.forget()
        self._until(lambda: self._losses() >= before + self._connections, "half-open connections were not noticed")

    def _until(self, holds: Callable[[], bool], problem: str) -> None:
        end = monotonic() + NOTICED
        while not holds():
            assert monotonic() < end, f"{problem} within {NOTICED:g} s"
            self._pause.wait(0.05)
