"""The arithmetic of delays, in whole milliseconds like the Java code that it follows."""

from __future__ import annotations

import math
import random
from typing import Final, Protocol

from redelivery.policies.checks import LONG_MAX

# Beyond these the exact step-by-step sequence is left: a count of a million must not take a million steps.
MAX_EXACT_STEPS: Final = 10_000
MAX_JITTERED_STEPS: Final = 1_000


class Random(Protocol):
    """The source that a delay draws from; `random.Random` fits."""

    def random(self) -> float:
        """A number from 0 to below 1."""


_system: Final = random.SystemRandom()  # has no state: forked processes would all draw the same from a generator


def random_source(rng: Random | None) -> Random:
    """The one that was given, or the system's."""
    return _system if rng is None else rng


def truncated(value: float) -> int:
    """Java's narrowing of a double to a long: towards zero, and never beyond a long."""
    return LONG_MAX if value >= LONG_MAX else int(value)


def jittered(delay_ms: int, factor: float, rng: Random | None) -> int:
    """The delay moved by less than ``factor`` of it; draws twice: the side (upper half: up), then how far."""
    source = random_source(rng)
    side = factor if source.random() >= 0.5 else -factor
    return truncated(delay_ms + delay_ms * (side * source.random()))


class Classic:
    """ActiveMQ's RedeliveryPolicy.getNextRedeliveryDelay, applied n - 1 times after the initial delay."""

    __slots__ = ("cap_ms", "delay_ms", "factor", "initial_ms", "multiplier")

    def __init__(
        self, initial_ms: int, delay_ms: int, multiplier: float | None, cap_ms: int | None, factor: float | None
    ) -> None:
        self.initial_ms = initial_ms
        self.delay_ms = delay_ms
        # None, or a multiplier that does not exceed 1: no back-off
        self.multiplier = multiplier if multiplier is not None and multiplier > 1 else None
        self.cap_ms = cap_ms
        self.factor = factor

    def delay(self, redelivery_count: int, rng: Random | None) -> int:
        """Milliseconds before the n-th redelivery."""
        steps = redelivery_count - 1
        if self.factor is None:
            return self._plain(steps)
        # Jitter compounds: each jittered delay is the next one's previous. Of a very long sequence the end matters.
        late = min(steps, MAX_JITTERED_STEPS)
        delay = self._plain(steps - late)
        for _ in range(late):
            delay = jittered(self._next(delay), self.factor, rng)
        return delay

    def _next(self, previous: int) -> int:
        if self.multiplier is None or previous <= 0:
            return self.delay_ms
        return self._capped(truncated(previous * self.multiplier))

    def _capped(self, delay: int) -> int:
        # A cap below the redelivery delay gives the redelivery delay, as in Java.
        if self.cap_ms is not None and delay > self.cap_ms:
            return max(self.cap_ms, self.delay_ms)
        return delay

    def _plain(self, steps: int) -> int:
        delay = self.initial_ms
        for _ in range(min(steps, MAX_EXACT_STEPS)):
            following = self._next(delay)
            if following == delay:
                return delay  # it stays: no back-off, at the cap, or growth truncated away
            delay = following
        if steps <= MAX_EXACT_STEPS or self.multiplier is None:
            return delay
        # A multiplier so close to 1 that it is still growing: the rest in one power instead of millisecond steps.
        rest = (steps - MAX_EXACT_STEPS) * math.log(self.multiplier) + math.log(delay)
        return self._capped(truncated(math.exp(rest)) if rest < math.log(LONG_MAX) else LONG_MAX)


def artemis_delay(
    delivery_count: int, delay_ms: int, multiplier: float, factor: float, max_ms: int, rng: Random | None
) -> int:
    """Artemis' QueueImpl.calculateRedeliveryDelay: a power of the multiplier, jitter, and the cap after the jitter."""
    steps = max(delivery_count - 1, 0)
    try:
        delay = truncated(delay_ms * multiplier**steps)
    except OverflowError:
        delay = LONG_MAX if delay_ms else 0
    if factor > 0:
        delay = jittered(delay, factor, rng)
    return min(delay, max_ms)
