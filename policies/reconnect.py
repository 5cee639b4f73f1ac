"""The delays of ActiveMQ's failover transport, with jitter, before a lost connection is tried again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import suggesting
from redelivery.policies.activemq.back_off import Classic, Random, random_source
from redelivery.policies.activemq.reconnect_names import read_reconnect_policy
from redelivery.policies.checks import (
    Seconds,
    check_flag,
    check_number,
    check_seconds,
    check_whole,
    to_ms,
    warn_if_long,
)
from redelivery.policies.strategies.given import Strategy, check_stop, check_wait

if TYPE_CHECKING:
    from tenacity.stop import StopBaseT
    from tenacity.wait import WaitBaseT

NO_LIMIT: Final = -1
_AFTER_NONE_MS: Final = 10  # the delay after one of 0, which ActiveMQ would multiply for ever
_EVER: Final = 1e15  # seconds
_DELAYS: Final[Mapping[str, object]] = {  # and what they are where they are not given
    "initial_delay": 0.01,
    "maximum_delay": 30.0,
    "multiplier": 2.0,
    "use_exponential_back_off": True,
    "jitter": 0.5,
}
_LIMITS: Final[Mapping[str, object]] = {
    "maximum_attempts": NO_LIMIT,
    "startup_maximum_attempts": NO_LIMIT,
    "maximum_time": None,
}
_SYNONYMS: Final = {
    "initial_reconnect_delay": "initial_delay",
    "reconnect_delay": "initial_delay",
    "delay": "initial_delay",
    "max_reconnect_delay": "maximum_delay",
    "max_delay": "maximum_delay",
    "back_off_multiplier": "multiplier",
    "factor": "multiplier",
    "max_reconnect_attempts": "maximum_attempts",
    "max_attempts": "maximum_attempts",
    "max_retries": "maximum_attempts",
    "retries": "maximum_attempts",
    "attempts": "maximum_attempts",
    "startup_max_reconnect_attempts": "startup_maximum_attempts",
    "exponential": "use_exponential_back_off",
    "shuffle": "randomize",
    "send_timeout": "timeout",
}


@dataclass(frozen=True, slots=True, init=False)
class ReconnectPolicy:
    """The rules by which a lost or first connection is tried again; durations in seconds, or given as timedelta.

    One attempt is one round: every URL once. Names, defaults and the growth of the delays are those of ActiveMQ's
    failover transport; the jitter is not, as its clients all return in the same millisecond.

    ``initial_delay``: before the first attempt after a loss. 0 makes this attempt at once; the delays after it
    begin with 10 ms, where ActiveMQ would try without a pause for ever.
    ``maximum_delay``: no delay is longer.
    ``use_exponential_back_off``, ``multiplier`` (1 or more): each delay is the one before times the multiplier, in
    whole milliseconds; with False it is not multiplied, and ``maximum_delay`` has no effect.
    ``jitter`` (0 to 1): the part of a delay d that is left to chance. The wait is drawn uniformly from
    [(1 - jitter) * d, d]: by default from [d/2, d], with 0 it is d. The next delay is computed from d.
    ``maximum_attempts``: the connection has failed when as many attempts have; -1 for no limit, 0 to never reconnect.
    ``startup_maximum_attempts``: the same until the first success; -1 to take ``maximum_attempts``. The first attempt
    is made in any case.
    ``maximum_time``: the connection has failed, too, when it has been away for so long, whatever the number of
    attempts; None for no limit. ActiveMQ has no such option.
    ``warn_after_attempts``: the first failed attempt and each n-th are worth a warning; 0 for none.
    ``timeout``: how long a send waits while the connection is away; None or -1 for as long as it takes.
    ``randomize``: the URLs are tried in random order, a new one in each attempt.
    ``priority_backup``: of a ``failover:`` list the priority URLs are tried first, and a connection to another one is
    moved to one of them when that answers.

    ``wait``: a strategy of tenacity's in place of the delays and their jitter: the wait before the n-th attempt after a
    loss. ``stop``: one in place of the numbers of attempts and of ``maximum_time``, asked after the n-th attempt has
    failed; the time counts from the loss, or the start.

    Raises:
        ConfigError: a value of a wrong type or out of its range; the text names it.
    """

    initial_delay: float
    maximum_delay: float
    multiplier: float
    maximum_attempts: int
    startup_maximum_attempts: int
    maximum_time: float | None
    randomize: bool
    use_exponential_back_off: bool
    jitter: float
    warn_after_attempts: int
    timeout: float | None
    priority_backup: bool
    given_wait: Strategy | None = field(repr=False)
    given_stop: Strategy | None = field(repr=False)

    @suggesting(_SYNONYMS)
    def __init__(
        self,
        *,
        initial_delay: Seconds = 0.01,
        maximum_delay: Seconds = 30.0,
        multiplier: float = 2.0,
        maximum_attempts: int = NO_LIMIT,
        startup_maximum_attempts: int = NO_LIMIT,
        maximum_time: Seconds | None = None,
        randomize: bool = True,
        use_exponential_back_off: bool = True,
        jitter: float = 0.5,
        warn_after_attempts: int = 10,
        timeout: Seconds | None = None,
        priority_backup: bool = False,
        wait: WaitBaseT | None = None,
        stop: StopBaseT | None = None,
        given_wait: Strategy | None = None,
        given_stop: Strategy | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("given_wait", check_wait(wait) or given_wait)  # dataclasses.replace hands the old one over
        put("given_stop", check_stop(stop) or given_stop)
        put("initial_delay", check_seconds("initial_delay", initial_delay))
        put("maximum_delay", check_seconds("maximum_delay", maximum_delay))
        put("multiplier", check_number("multiplier", multiplier, 1.0))
        put("maximum_attempts", check_whole("maximum_attempts", maximum_attempts, NO_LIMIT))
        put("startup_maximum_attempts", check_whole("startup_maximum_attempts", startup_maximum_attempts, NO_LIMIT))
        put("maximum_time", None if maximum_time is None else check_seconds("maximum_time", maximum_time))
        put("randomize", check_flag("randomize", randomize))
        put("use_exponential_back_off", check_flag("use_exponential_back_off", use_exponential_back_off))
        put("jitter", check_number("jitter", jitter, 0.0, 1.0))
        put("warn_after_attempts", check_whole("warn_after_attempts", warn_after_attempts, 0))
        put("timeout", None if timeout is None or timeout == NO_LIMIT else check_seconds("timeout", timeout))
        put("priority_backup", check_flag("priority_backup", priority_backup))
        self._check_delays()
        self._check_strategies()
        warn_if_long("initial_delay", initial_delay)
        warn_if_long("maximum_delay", maximum_delay)
        warn_if_long("timeout", timeout)
        warn_if_long("maximum_time", maximum_time)

    @property
    def wait(self) -> WaitBaseT:
        """The delays as a strategy of tenacity, for `tenacity.Retrying`, or what was given."""
        from redelivery.policies.strategies.own import WaitByPolicy  # tenacity, which most programs need not import

        return WaitByPolicy(self) if self.given_wait is None else self.given_wait.call

    @property
    def stop(self) -> StopBaseT:
        """The limits, of attempts and of time, as a strategy of tenacity, or what was given."""
        from redelivery.policies.strategies.own import StopByPolicy

        return StopByPolicy(self) if self.given_stop is None else self.given_stop.call

    def delay(self, attempt: int, rng: Random | None = None, elapsed: float = 0.0) -> float:
        """Seconds to wait before the n-th attempt since the connection was lost, n = 1, 2, …; to the millisecond.

        Before the first success nothing is waited for before the first attempt, and ``delay(n)`` after the n-th.
        ``rng`` serves the jitter: its ``random()`` is drawn once; with a jitter of 0 not at all. ``elapsed``: seconds
        since the loss, for a strategy that was given.

        Raises:
            ConfigError: the number is not an integer >= 1; or the strategy fails.
        """
        check_whole("attempt", attempt, 1)
        if self.given_wait is not None:
            return self.given_wait.seconds(attempt, elapsed)
        cap_ms, first_ms = to_ms(self.maximum_delay), to_ms(self.initial_delay)
        multiplier = self.multiplier if self.use_exponential_back_off else None
        arithmetic = Classic(first_ms, first_ms or min(_AFTER_NONE_MS, cap_ms), multiplier, cap_ms, None)
        longest = arithmetic.delay(attempt, None) / 1000
        return longest * (1 - self.jitter * random_source(rng).random()) if self.jitter else longest

    def exhausted(self, attempts: int, startup: bool = False, elapsed: float = 0.0) -> bool:
        """Say whether no attempt follows so many failed ones. ``startup``: the connection has never been there.

        ``elapsed``: seconds since the loss or the start, for a strategy that was given; ``maximum_time`` is not asked.

        Raises:
            ConfigError: the number is not an integer >= 0; or the strategy fails.
        """
        check_whole("attempts", attempts, 0)
        if self.given_stop is not None:
            stop = self.given_stop
            return attempts > 0 and stop.stops(attempts, elapsed, lambda: self.delay(attempts, None, elapsed))
        limit = self.maximum_attempts
        if startup:
            limit = limit if self.startup_maximum_attempts == NO_LIMIT else self.startup_maximum_attempts
            limit = limit or 1
        return limit != NO_LIMIT and attempts >= limit

    def ends(self, attempt: int, elapsed: float) -> bool:
        """Say whether no attempt follows the n-th, so many seconds after the loss: as `exhausted`, or by the time."""
        late = self.maximum_time is not None and elapsed >= self.maximum_time
        return late or self.exhausted(attempt, elapsed=elapsed)

    @property
    def limited(self) -> bool:
        """True: a connection that has never been there is not tried for ever."""
        return self.maximum_time is not None or self.exhausted(sys.maxsize, startup=True, elapsed=_EVER)

    def warns(self, attempts: int) -> bool:
        """Say whether the last of so many failed attempts is worth a warning: the first is, and each n-th.

        Raises:
            ConfigError: the number is not an integer >= 1.
        """
        check_whole("attempts", attempts, 1)
        every = self.warn_after_attempts
        return every > 0 and (attempts == 1 or attempts % every == 0)

    @classmethod
    def from_activemq(cls, options: Mapping[str, object], *, prefix: str = "") -> ReconnectPolicy:
        """A policy from ``options`` with the names and milliseconds of ActiveMQ's failover transport, as str or values.

        ``reconnectDelayExponent`` and ``backOffMultiplier`` are the same. A ``timeout`` of 0 or -1 is none. ``prefix``
        stands before the names in errors.

        Raises:
            ConfigError: an unknown name, one that has no meaning here, or a value that does not fit; the text names it.
        """
        return cls(**read_reconnect_policy(options, prefix))

    def __repr__(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        values |= {each.name: each for each in (self.given_wait, self.given_stop) if each is not None}
        return f"ReconnectPolicy({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def _check_strategies(self) -> None:
        """Refuse a delay or a limit beside the strategy that stands for it."""
        for given, names in ((self.given_wait, _DELAYS), (self.given_stop, _LIMITS)):
            for name, usual in names.items():
                if given is not None and getattr(self, name) != usual:
                    raise ConfigError(f"{given.name}= stands for {name}= too: leave {name} out")
        wait = self.given_wait
        if wait is not None and not any(wait.seconds(attempt, 0.0) for attempt in (2, 3, 10)):
            raise ConfigError(f"wait={wait!r} leaves no pause between attempts")

    def _check_delays(self) -> None:
        """Refuse what would try without a pause, and a first delay that the second would be shorter than."""
        if not to_ms(self.maximum_delay):
            raise ConfigError(
                f"maximum_delay={self.maximum_delay!r} leaves no pause between attempts: pass 0.001 or more"
            )
        if self.use_exponential_back_off and self.initial_delay > self.maximum_delay:
            raise ConfigError(
                f"initial_delay={self.initial_delay!r} is longer than maximum_delay={self.maximum_delay!r} (in a URL "
                "initialReconnectDelay and maxReconnectDelay): change one of them, or use no exponential back-off"
            )
