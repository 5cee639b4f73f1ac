"""What a handler may raise or return, and what follows for its message."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from redelivery.client.arguments import seconds
from redelivery.client.ledger import BY_POLICY, Ruling
from redelivery.client.observing.log_lines import Lines, message_facts
from redelivery.model.messages import Message
from redelivery.policies.activemq.causes import describe_cause

log = logging.getLogger(__name__)


class Outcome(Exception):
    """A decision of the handler's about its message, to be raised or returned."""


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


class Fate(Enum):
    """What becomes of a message; the names are those of `plan.Counters`."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from an outcome: ``cause`` and ``ruling`` for a rollback, ``reply`` for a commit."""

    fate: Fate
    cause: BaseException | None = None
    ruling: Ruling = BY_POLICY
    reply: object = None

    @property
    def commits(self) -> bool:
        """Whether the message is consumed."""
        return self.fate in (Fate.SUCCEEDED, Fate.DROPPED)


def say(name: str, message: Message, verdict: Verdict, lines: Lines) -> None:
    """Log what has become of the message of a handler, with the traceback where it has not decided that itself."""
    if verdict.fate is Fate.SUCCEEDED:
        return
    unexpected = None if isinstance(verdict.cause, Outcome) else verdict.cause
    log.log(
        lines.level(logging.WARNING, f"{name}: {verdict.fate.value.replace('_', ' ')}"),
        "%s %s: %s: %s: %s",
        message.destination,
        message.message_id,
        name,
        verdict.fate.value.replace("_", " "),
        describe_cause(verdict.cause),
        exc_info=unexpected,
        extra=message_facts(message, describe_cause(verdict.cause)),
    )


def judge(
    result: object, error: Exception | None, *, fatal: tuple[type[BaseException], ...], overdue: str | None
) -> Verdict:
    """What follows where the handler has returned ``result``, or raised ``error``.

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
    match error:
        case None:
            return Verdict(Fate.SUCCEEDED, reply=result)
        case Exception() if isinstance(error, fatal):
            return Verdict(Fate.GIVEN_UP, error, Ruling(give_up=f"{type(error).__name__} is fatal"))
        case Exception() if overdue is not None:
            return Verdict(Fate.GIVEN_UP, error, Ruling(give_up=overdue))
    return Verdict(Fate.FAILED, error)
