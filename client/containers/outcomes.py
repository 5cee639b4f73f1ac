"""Outcomes that a handler may raise or return, and what follows for its message."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from redelivery.client.arguments import seconds
from redelivery.client.ledger import BY_POLICY, Ruling
from redelivery.client.observing.log_lines import WORKERS, Lines, say_deferred, say_dropped_by_handler, short_cause
from redelivery.model.messages import Message
from redelivery.policies.activemq.causes import describe_cause

log = logging.getLogger(WORKERS)


class Outcome(Exception):
    """A decision of the handler's about its message, to be raised or returned."""

    decided = True  # its traceback says nothing: see `log_lines.traceback_of`


class Retry(Outcome):
    """Redeliver it; counted, and limited by its RedeliveryPolicy as every failure is.

    Args:
        reason: for the log, and for the dead letter that it may become.
        after: seconds until then; None: as the policy says.

    Raises:
        ConfigError: ``after`` is not a duration.
    """

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else seconds("after", after)


class DeadLetter(Outcome):
    """Dead-letter it at once, by the connection's strategy; ``reason`` stands on the dead letter."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason or "the handler asked for it"


class Drop(Outcome):
    """Consume it without a trace but a line in the log; what the handler has sent in its session is sent."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


for _outcome in (Retry, DeadLetter, Drop):
    _outcome.__module__ = "redelivery"  # as it is imported, and as a dead letter names it


class Fate(Enum):
    """The end of a message; the names are those of `plan.Counters`."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The step that follows from an outcome: ``cause`` and ``ruling`` for a rollback, ``reply`` for a commit.

    ``outage``: an outage may be the reason. ``parked``: so it is not counted, and others are tried first.
    """

    fate: Fate
    cause: BaseException | None = None
    ruling: Ruling = BY_POLICY
    reply: object = None
    outage: bool = False
    parked: bool = False

    @property
    def commits(self) -> bool:
        """True: the message is consumed."""
        return self.fate in (Fate.SUCCEEDED, Fate.DROPPED)


def say(message: Message, verdict: Verdict, lines: Lines) -> None:
    """Log what has become of the message of a handler, where the session does not: see `log_lines`."""
    if verdict.fate is Fate.DROPPED:
        say_dropped_by_handler(message, str(verdict.cause) or "it gives no reason", lines)
    elif verdict.parked:
        say_deferred(message, short_cause(verdict.cause), lines)


def judge(
    result: object,
    error: Exception | None,
    *,
    fatal: tuple[type[BaseException], ...],
    overdue: str | None,
    retry_on: tuple[type[BaseException], ...] = (),
    outage_on: Callable[[Exception], object] | None = None,
) -> Verdict:
    """Decide what follows where the handler has returned ``result``, or raised ``error``.

    ``overdue``: why it is not redelivered any more, where its time for all attempts has passed.
    """
    if isinstance(result, type) and issubclass(result, Outcome):
        result = result()  # ``return Drop``, which means what ``raise Drop`` does
    match error if error is not None else result:
        case Drop() as outcome:
            return Verdict(Fate.DROPPED, outcome)
        case DeadLetter() as outcome:
            return Verdict(Fate.GIVEN_UP, outcome, Ruling(give_up=outcome.reason))
        case Retry() as outcome if overdue is None:  # even where ``fatal`` is Exception: the handler has asked for it
            return Verdict(Fate.FAILED, outcome, Ruling(after=outcome.after))
        case Retry() as outcome:
            return Verdict(Fate.GIVEN_UP, outcome, Ruling(give_up=overdue))
    if error is None:
        return Verdict(Fate.SUCCEEDED, reply=result)
    return _judge_failure(error, fatal, overdue, retry_on, outage_on)


def _judge_failure(
    error: Exception,
    fatal: tuple[type[BaseException], ...],
    overdue: str | None,
    retry_on: tuple[type[BaseException], ...],
    outage_on: Callable[[Exception], object] | None,
) -> Verdict:
    if isinstance(error, fatal):
        return Verdict(Fate.GIVEN_UP, error, Ruling(give_up=f"{type(error).__name__} is fatal"))
    if outage_on is not None and _is_outage(outage_on, error):
        return Verdict(Fate.FAILED, error, Ruling(give_up=overdue), outage=True)
    if retry_on and not isinstance(error, retry_on):
        return Verdict(Fate.GIVEN_UP, error, Ruling(give_up=f"{type(error).__name__} is not to be retried"))
    if overdue is not None:
        return Verdict(Fate.GIVEN_UP, error, Ruling(give_up=overdue))
    return Verdict(Fate.FAILED, error)


def _is_outage(outage_on: Callable[[Exception], object], error: Exception) -> bool:
    try:
        return bool(outage_on(error))
    except Exception:  # a guard of application code: what it does not understand is a failure as any other
        log.exception("outage_on raised, so %s counts as the message's own failure", describe_cause(error))
        return False
