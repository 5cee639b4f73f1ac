"""ActiveMQ's RedeliveryPolicy: when a rolled-back message is redelivered, and when it was delivered too often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import suggesting
from redelivery.policies.activemq.back_off import Classic, Random, jittered
from redelivery.policies.activemq.redelivery_names import java_double, read_policy
from redelivery.policies.checks import (
    UNSAID,
    Seconds,
    check_flag,
    check_number,
    check_optional_str,
    check_seconds,
    check_whole,
    to_ms,
    warn_if_long,
)
from redelivery.policies.strategies.given import Strategy, check_stop, check_wait, most_attempts

if TYPE_CHECKING:
    from tenacity.stop import StopBaseT
    from tenacity.wait import WaitBaseT

NO_LIMIT: Final = -1
_DEFAULT_LIMIT: Final = 6
_DEFAULT_MULTIPLIER: Final = 5.0
_DEFAULT_PERCENT: Final = 15
_DELAYS: Final[Mapping[str, object]] = {  # and what they are where they are not given
    "initial_redelivery_delay": 1.0,
    "redelivery_delay": 1.0,
    "use_exponential_back_off": False,
    "back_off_multiplier": _DEFAULT_MULTIPLIER,
    "maximum_redelivery_delay": None,
    "use_collision_avoidance": False,
    "collision_avoidance_percent": _DEFAULT_PERCENT,
    "move_first_delay": False,
}
_BACK_OFF: Final = "use_exponential_back_off"
_AVOIDANCE: Final = "use_collision_avoidance"
_SYNONYMS: Final = {
    "max_attempts": "maximum_redeliveries",
    "max_retries": "maximum_redeliveries",
    "retries": "maximum_redeliveries",
    "max_delay": "maximum_redelivery_delay",
    "delay": "redelivery_delay",
    "initial_delay": "initial_redelivery_delay",
    "multiplier": "back_off_multiplier",
    "exponential": "use_exponential_back_off",
    "jitter": "use_collision_avoidance",
}


@dataclass(frozen=True, slots=True, init=False)
class RedeliveryPolicy:
    """ActiveMQ's RedeliveryPolicy: its names, defaults and arithmetic; durations in seconds, or given as timedelta.

    ``maximum_redeliveries``: -1 for no limit; N allows N + 1 deliveries.
    ``initial_redelivery_delay``: before the first redelivery, taken as it is: no jitter, no cap.
    ``redelivery_delay``: before the later ones; with back-off it is used only after an initial delay of 0.
    ``use_exponential_back_off``, ``back_off_multiplier`` (1 or more): each delay is the previous one times the
    multiplier.
    ``maximum_redelivery_delay``: caps the back-off, None for no cap; not below the first delay. One below
    ``redelivery_delay`` gives ``redelivery_delay``.
    ``use_collision_avoidance``, ``collision_avoidance_percent`` (0 to 100): moves each delay but the first up or down
    randomly, after the cap; each moved one is the previous one of the next.
    ``move_first_delay``: with collision avoidance, the first one too; each delay is moved by itself, and capped then,
    with or without back-off. That is Artemis' rule, which policies that are read of its configuration have.

    A multiplier, a cap, a percentage and ``move_first_delay`` are refused where their switch is not given: they would
    have no effect. With a switch that is given as False they are kept. What `from_activemq` reads has ActiveMQ's
    meaning in any case: there a multiplier of at most 1 is no back-off, and a cap below the first delay caps the later
    ones.

    ``pre_dispatch_check``: a delivery whose count, as the broker says, is beyond the limit is poisoned unseen.
    Where the broker's count charges messages that nobody saw, this is done only if the user asked for it, which
    ``pre_dispatch_check_set`` says: True where the argument was given (None, the default, is "not given").
    ``wait``: a strategy of tenacity's in place of the delays, as ``wait_random_exponential(max=60)``, or a function of
    its state: the wait after the n-th failed delivery. What it draws randomly it draws anew each time that it is asked.
    ``stop``: one in place of ``maximum_redeliveries``, as ``stop_after_attempt(4) | stop_after_delay(600)``: after
    which failed delivery a message is poison. ``maximum_redeliveries`` is then what the number alone allows; -1 where
    only the time stops it, which counts from the first failure. Both know the number of the delivery and that time,
    and nothing else. Without them `wait` and `stop` are the rules above, as strategies.
    ``destination``: the entry under which a RedeliveryPolicyMap holds the policy; it only appears in causes.

    Raises:
        ConfigError: a value of a wrong type or out of its range; the text names it.
    """

    maximum_redeliveries: int
    initial_redelivery_delay: float
    redelivery_delay: float
    use_exponential_back_off: bool
    back_off_multiplier: float
    maximum_redelivery_delay: float | None
    use_collision_avoidance: bool
    collision_avoidance_percent: int
    move_first_delay: bool
    pre_dispatch_check: bool
    destination: str | None = field(compare=False)
    pre_dispatch_check_set: bool = field(compare=False)
    given_wait: Strategy | None
    given_stop: Strategy | None

    @suggesting(_SYNONYMS)
    def __init__(
        self,
        *,
        maximum_redeliveries: int = _DEFAULT_LIMIT,
        initial_redelivery_delay: Seconds = 1.0,
        redelivery_delay: Seconds = 1.0,
        use_exponential_back_off: bool | None = None,
        back_off_multiplier: float = _DEFAULT_MULTIPLIER,
        maximum_redelivery_delay: Seconds | None = None,
        use_collision_avoidance: bool = UNSAID,
        collision_avoidance_percent: int = _DEFAULT_PERCENT,
        move_first_delay: bool = False,
        pre_dispatch_check: bool | None = None,
        destination: str | None = None,
        wait: WaitBaseT | None = None,
        stop: StopBaseT | None = None,
        pre_dispatch_check_set: bool | None = None,
        given_wait: Strategy | None = None,
        given_stop: Strategy | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("given_wait", check_wait(wait) or given_wait)  # dataclasses.replace hands the old one over
        put("given_stop", check_stop(stop) or given_stop)
        put("maximum_redeliveries", check_whole("maximum_redeliveries", maximum_redeliveries, NO_LIMIT))
        put("initial_redelivery_delay", check_seconds("initial_redelivery_delay", initial_redelivery_delay))
        put("redelivery_delay", check_seconds("redelivery_delay", redelivery_delay))
        back_off = False if use_exponential_back_off is None else use_exponential_back_off
        put("use_exponential_back_off", check_flag("use_exponential_back_off", back_off))
        put("back_off_multiplier", check_number("back_off_multiplier", back_off_multiplier, 0.0))
        cap = maximum_redelivery_delay
        put("maximum_redelivery_delay", None if cap is None else check_seconds("maximum_redelivery_delay", cap))
        if pre_dispatch_check_set is None:  # a new one, and by Python's names
            warn_if_long("initial_redelivery_delay", initial_redelivery_delay)
            warn_if_long("redelivery_delay", redelivery_delay)
        avoids = False if use_collision_avoidance is UNSAID else use_collision_avoidance
        put("use_collision_avoidance", check_flag("use_collision_avoidance", avoids))
        percent = check_whole("collision_avoidance_percent", collision_avoidance_percent, 0, 100)
        put("collision_avoidance_percent", percent)
        put("move_first_delay", check_flag("move_first_delay", move_first_delay))
        if pre_dispatch_check_set is None:
            self._check_effect(use_exponential_back_off, use_collision_avoidance)
        self._check_strategies(old_stop=given_stop)
        put("destination", check_optional_str("destination", destination))
        if pre_dispatch_check is None:
            put("pre_dispatch_check", True)
            put("pre_dispatch_check_set", False)
        else:
            check = check_flag("pre_dispatch_check", pre_dispatch_check)
            put("pre_dispatch_check", check)
            # dataclasses.replace hands the old answer over; a False can only have been asked for.
            put("pre_dispatch_check_set", pre_dispatch_check_set is not False or not check)

    @property
    def wait(self) -> WaitBaseT:
        """The delays as a strategy of tenacity: for `tenacity.Retrying`, or another policy.

        That is `delay` after the n-th attempt, or what was given.
        """
        from redelivery.policies.strategies.own import WaitByPolicy  # tenacity, which most programs need not import

        return WaitByPolicy(self) if self.given_wait is None else self.given_wait.call

    @property
    def stop(self) -> StopBaseT:
        """The limit as a strategy of tenacity: N redeliveries are N + 1 attempts."""
        from redelivery.policies.strategies.own import StopByPolicy

        return StopByPolicy(self) if self.given_stop is None else self.given_stop.call

    def delay(self, redelivery_count: int, rng: Random | None = None, elapsed: float = 0.0) -> float:
        """Seconds to wait before the n-th redelivery, n = 1, 2, …; exact to the millisecond as ActiveMQ computes it.

        ``redelivery_count``: that n.
        ``rng`` serves collision avoidance: its ``random()`` is drawn twice per step, n - 1 steps (at most 1,000); with
        ``move_first_delay`` twice. ``elapsed``: seconds since the first failure, for a strategy that was given.

        Raises:
            ConfigError: the count is not an integer >= 1; or the strategy fails.
        """
        check_whole("redelivery_count", redelivery_count, 1)
        if self.given_wait is not None:
            return self.given_wait.seconds(redelivery_count, elapsed)
        cap = None if self.maximum_redelivery_delay is None else to_ms(self.maximum_redelivery_delay)
        factor = self.collision_avoidance_percent * 0.01 if self.use_collision_avoidance else None
        multiplier = self.back_off_multiplier if self.use_exponential_back_off else None
        first, later = to_ms(self.initial_redelivery_delay), to_ms(self.redelivery_delay)
        if factor is None or not self.move_first_delay:
            return Classic(first, later, multiplier, cap, factor).delay(redelivery_count, rng) / 1000
        moved = jittered(Classic(first, later, multiplier, None, None).delay(redelivery_count, rng), factor, rng)
        return (moved if cap is None else min(moved, cap)) / 1000

    def exceeded(self, redelivery_count: int, elapsed: float = 0.0) -> bool:
        """Say whether a message redelivered that often (0 on the first delivery) is beyond the limit: poison.

        ``redelivery_count``: how often it was.
        ``elapsed``: seconds since the first failure, for a strategy that was given; 0: the number alone decides.

        Raises:
            ConfigError: the count is not an integer >= 0; or the strategy fails.
        """
        check_whole("redelivery_count", redelivery_count, 0)
        if self.given_stop is not None:
            return redelivery_count > 0 and self.ends(redelivery_count, elapsed)
        return self.maximum_redeliveries != NO_LIMIT and redelivery_count > self.maximum_redeliveries

    def ends(self, attempt: int, elapsed: float = 0.0) -> bool:
        """Say whether no delivery follows the ``attempt``-th, if that fails. Raises ConfigError as `exceeded`."""
        check_whole("attempt", attempt, 1)
        if self.given_stop is None:
            return self.exceeded(attempt)
        return self.given_stop.stops(attempt, elapsed, lambda: self.delay(attempt, None, elapsed))

    @classmethod
    def from_activemq(cls, options: Mapping[str, object], *, prefix: str = "") -> RedeliveryPolicy:
        """A policy from ``options`` with ActiveMQ's names and milliseconds, as str or values, and else the defaults.

        A negative delay means "at once", a ``maximumRedeliveryDelay`` of -1 "no cap". Unlike in Java, where it would
        poison every message, a ``maximumRedeliveries`` below -1 is refused. ``prefix`` stands before the names in
        errors (``jms.redeliveryPolicy.`` in a URL).

        Raises:
            ConfigError: an unknown name, or a value that does not fit it; the text names it.
        """
        return cls(**read_policy(options, prefix), pre_dispatch_check_set=True)

    def describe(self) -> str:
        """The str that Java's ``toString`` gives, fields in Java's order: it appears in the cause of a dead letter."""
        cap = self.maximum_redelivery_delay
        shown = {
            "destination": self.destination or "null",
            "collisionAvoidanceFactor": java_double(self.collision_avoidance_percent * 0.01),
            "maximumRedeliveries": self.maximum_redeliveries,
            "maximumRedeliveryDelay": -1 if cap is None else to_ms(cap),
            "initialRedeliveryDelay": to_ms(self.initial_redelivery_delay),
            "useCollisionAvoidance": str(self.use_collision_avoidance).lower(),
            "useExponentialBackOff": str(self.use_exponential_back_off).lower(),
            "backOffMultiplier": java_double(self.back_off_multiplier),
            "redeliveryDelay": to_ms(self.redelivery_delay),
            "preDispatchCheck": str(self.pre_dispatch_check).lower(),
        }
        given = [each for each in (self.given_wait, self.given_stop) if each is not None]
        parts = [f"{name} = {value}" for name, value in shown.items()] + [f"{each.name} = {each}" for each in given]
        return "RedeliveryPolicy {" + ", ".join(parts) + "}"

    __str__ = describe

    def __repr__(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self) if not each.name.startswith("given_")}
        values |= {each.name: each for each in (self.given_wait, self.given_stop) if each is not None}
        return f"RedeliveryPolicy({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def _check_strategies(self, old_stop: Strategy | None) -> None:
        """Refuse a delay or a limit beside the strategy that stands for it; ``old_stop``: of what is replaced."""
        if self.given_wait is not None:
            for name, usual in _DELAYS.items():
                if getattr(self, name) != usual:
                    raise ConfigError(f"wait= and {name}= both say how long to wait: leave {name} out")
        if self.given_stop is None:
            return
        if self.maximum_redeliveries not in (_DEFAULT_LIMIT, _most_of(old_stop)):
            raise ConfigError(
                "stop= and maximum_redeliveries= both say how often: leave maximum_redeliveries out, or write "
                f"stop=… | stop_after_attempt({self.maximum_redeliveries + 1})"
            )
        object.__setattr__(self, "maximum_redeliveries", _most_of(self.given_stop))

    def _check_effect(self, back_off: bool | None, avoids: object) -> None:
        """Refuse what would have no effect, or another than it seems to have."""
        if back_off is None:
            _check_inert("back_off_multiplier", self.back_off_multiplier, _DEFAULT_MULTIPLIER, _BACK_OFF)
            _check_inert("maximum_redelivery_delay", self.maximum_redelivery_delay, None, _BACK_OFF)
        if avoids is UNSAID:
            percent = self.collision_avoidance_percent
            _check_inert("collision_avoidance_percent", percent, _DEFAULT_PERCENT, _AVOIDANCE)
            _check_inert("move_first_delay", self.move_first_delay, False, _AVOIDANCE)
        if not back_off:
            return
        if self.back_off_multiplier < 1:
            raise ConfigError(
                f"back_off_multiplier={self.back_off_multiplier!r} is below 1, which is no back-off: use 1 or more, or "
                "use_exponential_back_off=False"
            )
        name, first = "initial_redelivery_delay", self.initial_redelivery_delay
        if not first:
            name, first = "redelivery_delay", self.redelivery_delay
        cap = self.maximum_redelivery_delay
        if cap is not None and cap < first and not self.move_first_delay:
            raise ConfigError(
                f"maximum_redelivery_delay={cap!r} is below {name}={first!r}, the first delay, which it does not cap: "
                "change one of them"
            )


def _most_of(stop: Strategy | None) -> int:
    """The redeliveries that the number of deliveries alone allows."""
    attempts = None if stop is None else most_attempts(stop)
    return (_DEFAULT_LIMIT if stop is None else NO_LIMIT) if attempts is None else attempts - 1


def _check_inert(name: str, value: object, usual: object, switch: str) -> None:
    if value != usual:
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        raise ConfigError(f"{name}={shown} has no effect without {switch}=True: say True or False, or leave {name} out")
