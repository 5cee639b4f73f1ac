"""When a connection that was lost is dialled again: the delays of ActiveMQ's failover transport, with a jitter."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import suggesting
from redelivery.policies.checks import (
    Seconds,
    check_flag,
    check_number,
    check_seconds,
    check_whole,
    to_ms,
    warn_if_long,
)
from redelivery.policies.redelivery.back_off import Random, drawn, truncated

NO_LIMIT: Final = -1
_LEAST_MS: Final = 10  # with an initial delay of 0 the second wait is this long: 0 · 2 = 0 would never pause
_MOST_STEPS: Final = 10_000
_SYNONYMS: Final = {
    "initial_reconnect_delay": "initial_delay",
    "max_delay": "maximum_delay",
    "max_reconnect_delay": "maximum_delay",
    "back_off_multiplier": "multiplier",
    "max_attempts": "maximum_attempts",
    "max_reconnect_attempts": "maximum_attempts",
    "startup_max_attempts": "startup_maximum_attempts",
    "randomise": "randomize",
    "shuffle": "randomize",
}


@dataclass(frozen=True, slots=True, init=False)
class ReconnectPolicy:
    """How a lost connection comes back; durations in seconds, or given as timedelta. Defaults are ActiveMQ's.

    ``initial_delay``, ``multiplier``, ``maximum_delay``: a round asks each broker of the list once. Before the n-th
    round a delay between the half and the whole of ``initial_delay · multiplier ** (n - 1)``, at most
    ``maximum_delay``, is drawn: ActiveMQ waits the whole, so that all clients of a broker come back to it at the same
    moment. A multiplier of 1 means no back-off.
    ``maximum_attempts``: rounds after which the connection is lost for good; -1 for no limit, 0 for never again.
    ``startup_maximum_attempts``: the same of the first connect; -1 is ``maximum_attempts``. It is tried once at least.
    ``randomize``: each round asks the brokers in an order of its own; the one that was lost comes last.
    ``timeout``: how long a send waits while the connection is away, before it raises ConnectionLostError; None waits
    as long as it takes.

    Raises:
        ConfigError: a value of a wrong type or out of its range; the text names it.
    """

    initial_delay: float
    maximum_delay: float
    multiplier: float
    maximum_attempts: int
    startup_maximum_attempts: int
    randomize: bool
    timeout: float | None = field(default=None)

    @suggesting(_SYNONYMS)
    def __init__(
        self,
        *,
        initial_delay: Seconds = 0.01,
        maximum_delay: Seconds = 30.0,
        multiplier: float = 2.0,
        maximum_attempts: int = NO_LIMIT,
        startup_maximum_attempts: int = NO_LIMIT,
        randomize: bool = True,
        timeout: Seconds | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("initial_delay", check_seconds("initial_delay", initial_delay))
        put("maximum_delay", check_seconds("maximum_delay", maximum_delay))
        put("multiplier", check_number("multiplier", multiplier, 1.0))
        put("maximum_attempts", check_whole("maximum_attempts", maximum_attempts, NO_LIMIT))
        put("startup_maximum_attempts", check_whole("startup_maximum_attempts", startup_maximum_attempts, NO_LIMIT))
        put("randomize", check_flag("randomize", randomize))
        put("timeout", None if timeout is None else check_seconds("timeout", timeout))
        if not self.maximum_delay:
            raise ConfigError("maximum_delay=0: brokers would be asked without a pause; pass seconds > 0")
        warn_if_long("initial_delay", initial_delay)
        warn_if_long("maximum_delay", maximum_delay)

    def delay(self, attempt: int, rng: Random | None = None) -> float:
        """Seconds to wait before the n-th round, n = 1, 2, …; ``rng.random()`` is drawn once.

        Raises:
            ConfigError: the number is not a whole number from 1.
        """
        check_whole("attempt", attempt, 1)
        cap, wait = to_ms(self.maximum_delay), to_ms(self.initial_delay)
        for _ in range(min(attempt - 1, _MOST_STEPS)):
            if wait >= cap:
                break
            wait = truncated(wait * self.multiplier) or _LEAST_MS
            if self.multiplier == 1:
                break
        return min(wait, cap) / 1000 * (0.5 + drawn(rng) / 2)

    def exhausted(self, attempts: int, *, startup: bool = False) -> bool:
        """Whether so many rounds were all. ``startup``: of the first connect, which is always tried once.

        Raises:
            ConfigError: the number is not a whole number from 0.
        """
        check_whole("attempts", attempts, 0)
        most = self.maximum_attempts
        if startup and self.startup_maximum_attempts != NO_LIMIT:
            most = self.startup_maximum_attempts
        return most != NO_LIMIT and attempts >= max(most, startup)
