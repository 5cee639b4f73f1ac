"""A strategy that was given to a policy, and the state that it is asked with: numbers that the caller has measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from redelivery.model.callables import deferred
from redelivery.model.errors import ConfigError
from redelivery.policies.checks import LONG_MAX

if TYPE_CHECKING:
    from tenacity.stop import StopBaseT
    from tenacity.wait import WaitBaseT

_LONGEST: Final = LONG_MAX / 1000  # seconds; tenacity's own longest wait is longer
_TRIED: Final = (1, 2, 3, 10, 1_000_000)  # attempts with which a new strategy is tried
_LISTED: Final = 1000  # attempts; beyond them the limit is searched for by doubling
_MOST: Final = 1 << 30
_JOINED: Final = {"wait_combine": ("wait_funcs", " + "), "stop_any": ("stops", " | "), "stop_all": ("stops", " & ")}
_PLAIN: Final = (bool, int, float, str, bytes, timedelta, type(None))
_LONG_TEXT: Final = 200


class Moment:
    """The state that a strategy is given in place of tenacity's RetryCallState, when an attempt has failed.

    What a policy does not know is absent as in a call that has not begun: ``outcome``, ``fn`` and ``retry_object`` are
    None, ``args`` and ``kwargs`` empty. A strategy that needs them (`wait_exception`) fails, which is a ConfigError.
    """

    __slots__ = ("_upcoming", "attempt_number", "seconds_since_start")

    start_time, idle_for = 0.0, 0.0
    outcome = fn = retry_object = next_action = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}  # no strategy changes it

    def __init__(self, attempt_number: int, elapsed: float, upcoming: Callable[[], float] | None = None) -> None:
        self.attempt_number = attempt_number
        self.seconds_since_start = elapsed
        self._upcoming = upcoming

    @property
    def outcome_timestamp(self) -> float:
        """Seconds, with ``start_time`` 0."""
        return self.seconds_since_start

    @property
    def upcoming_sleep(self) -> float:
        """The wait before the next attempt, if there is one."""
        return 0.0 if self._upcoming is None else self._upcoming()

    def get_fn_name(self) -> str:
        """Tenacity's word where there is no function."""
        return "<unknown>"


class Strategy:
    """A strategy that was given to a policy; equal to one of the same kind with the same values."""

    __slots__ = ("_key", "call", "name")

    def __init__(self, name: str, call: Callable[[Any], Any]) -> None:
        self.name = name
        self.call = call
        self._key = _key(call)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strategy) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return _shown(self.call)

    def __reduce__(self) -> tuple[Any, ...]:
        return Strategy, (self.name, self.call)

    def __str__(self) -> str:
        """For a cause, which has braces of its own and is a header."""
        text = "".join(each if each.isprintable() and each not in "{}" else " " for each in repr(self))
        return text if len(text) <= _LONG_TEXT else f"{text[:_LONG_TEXT]}…"

    def seconds(self, attempt: int, elapsed: float) -> float:
        """The wait after the n-th attempt has failed. Raises ConfigError: the strategy fails, or gives none."""
        found = self._asked(Moment(attempt, elapsed))
        if isinstance(found, timedelta):
            found = found.total_seconds()
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < math.inf:
            raise ConfigError(
                f"{self.name}={self!r} gave {_brief(found)} after attempt {attempt}: a wait is a number of seconds ≥ 0"
            )
        return min(float(found), _LONGEST)

    def stops(self, attempt: int, elapsed: float, upcoming: Callable[[], float] | None = None) -> bool:
        """Say whether no attempt follows the n-th. Raises ConfigError: the strategy fails, or does not say."""
        found = self._asked(Moment(attempt, elapsed, upcoming))
        if not isinstance(found, bool):
            raise ConfigError(
                f"{self.name}={self!r} gave {_brief(found)} after attempt {attempt}: a stop strategy says True or False"
            )
        return found

    def _asked(self, moment: Moment) -> object:
        try:
            return self.call(moment)
        except ConfigError:
            raise
        except Exception as error:  # the application's strategy may raise anything
            raise ConfigError(
                f"{self.name}={self!r} failed after attempt {moment.attempt_number} with {error!r}: a policy's "
                "strategy knows the number of the attempt and the seconds since the first one, and nothing of the call"
            ) from error


def check_wait(wait: WaitBaseT | Strategy | None) -> Strategy | None:
    """The strategy, tried; None: none was given. Raises ConfigError: it is none, or fails."""
    return _tried(_checked("wait", wait, "tenacity.wait_fixed(5)"), wait, Strategy.seconds)


def check_stop(stop: StopBaseT | Strategy | None) -> Strategy | None:
    """The same of a ``stop``."""
    return _tried(_checked("stop", stop, "tenacity.stop_after_attempt(5)"), stop, Strategy.stops)


def _tried(found: Strategy | None, given: object, ask: Callable[[Strategy, int, float], object]) -> Strategy | None:
    """The strategy, asked once for several attempts where it is new."""
    if found is not None and found is not given:
        for attempt in _TRIED:
            ask(found, attempt, 0.0)
    return found


def most_attempts(stop: Strategy) -> int | None:
    """The attempt after which it stops however little time has passed; None: no number alone stops it."""
    for attempt in range(1, _LISTED + 1):
        if stop.stops(attempt, 0.0):
            return attempt
    low, high = _LISTED, 2 * _LISTED
    while not stop.stops(high, 0.0):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stop.stops(middle, 0.0) else (middle, high)
    return high


def _checked(name: str, given: object, example: str) -> Strategy | None:
    if given is None or isinstance(given, Strategy):
        return given
    if not callable(given):
        raise ConfigError(f"{name}={given!r} is no strategy: pass one of tenacity's, such as {example}")
    if isinstance(given, type):
        raise ConfigError(f"{name}={given.__qualname__} is a class: call it, as {example}")
    kind = deferred(given)
    if kind is not None:
        raise ConfigError(f"{name}={_shown(given)} is {kind}: a policy waits for nothing, pass a plain function")
    return Strategy(name, given)


def _has_values(value: object) -> bool:
    """Say whether it is one of tenacity's kind, which has no equality of its own, and is what its attributes are."""
    kind = type(value)
    if kind.__eq__ is not object.__eq__ or any(vars(base).get("__slots__") for base in kind.__mro__):
        return False
    return any(base.__module__.startswith("tenacity.") for base in kind.__mro__)


def _key(value: object) -> object:
    if isinstance(value, (tuple, list)):
        return (tuple, *(_key(each) for each in value))
    if _has_values(value):
        return type(value), tuple((name, _key(each)) for name, each in sorted(vars(value).items()))
    try:
        hash(value)
    except TypeError:
        return "the one at", id(value)
    return value


def _shown(value: object) -> str:
    """``wait_fixed(wait_fixed=1.0) + wait_none()``, with the values' names; a function by its name."""
    kind = type(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_shown, value))}]"
    if kind.__name__ in _JOINED and kind.__module__.startswith("tenacity"):
        attribute, sign = _JOINED[kind.__name__]
        parts = [(each, _shown(each)) for each in getattr(value, attribute)]
        return sign.join(f"({text})" if type(each).__name__ in _JOINED else text for each, text in parts)
    if _has_values(value) and kind.__module__.startswith("tenacity."):  # another's attributes may be secret
        return f"{kind.__name__}({', '.join(f'{name}={_shown(each)}' for name, each in vars(value).items())})"
    return repr(value) if isinstance(value, _PLAIN) else str(getattr(value, "__qualname__", kind.__qualname__))


def _brief(value: object) -> str:
    text = repr(value) if isinstance(value, _PLAIN) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}…"
