"""A policy's own rules as tenacity's strategies, for `tenacity.Retrying` too; only this module imports tenacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tenacity.stop import stop_base
from tenacity.wait import wait_base

if TYPE_CHECKING:
    from tenacity import RetryCallState


class _Waits(Protocol):
    def delay(self, number: int, /) -> float:
        """Seconds after the n-th attempt."""


class _Stops(Protocol):
    def ends(self, attempt: int, elapsed: float) -> bool:
        """Say whether none follows the n-th attempt, so many seconds after the first one began."""


@dataclass(frozen=True, slots=True)
class WaitByPolicy(wait_base):
    """The delays of a policy: the n-th one after the n-th attempt has failed."""

    policy: _Waits

    def __call__(self, retry_state: RetryCallState) -> float:
        """Seconds."""
        return self.policy.delay(retry_state.attempt_number)


@dataclass(frozen=True, slots=True)
class StopByPolicy(stop_base):
    """The limit of a policy."""

    policy: _Stops

    def __call__(self, retry_state: RetryCallState) -> bool:
        """True: no attempt follows."""
        return self.policy.ends(retry_state.attempt_number, retry_state.seconds_since_start or 0.0)
