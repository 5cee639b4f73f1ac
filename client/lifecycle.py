"""The legal states of connection, session and consumer: one table; what is not in it is the error.

    NEW ──start──▶ STARTED ◀──start/stop──▶ STOPPED         every one of them ──close──▶ CLOSED
                                                           every one of them ──lose──▶ FAILED ──close──▶ CLOSED

A connection is created in NEW, which behaves as STOPPED. Sessions and consumers follow their connection for start
and stop, and have a life of their own for close.
"""

from __future__ import annotations

from enum import Enum

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.wire.clock import utc_now


class Stage(Enum):
    """Where an object is in its life."""

    NEW = "new"
    STARTED = "started"
    STOPPED = "stopped"
    FAILED = "lost"
    CLOSED = "closed"


TRANSITIONS: dict[Stage, dict[str, Stage]] = {
    Stage.NEW: {"start": Stage.STARTED, "stop": Stage.STOPPED, "lose": Stage.FAILED, "close": Stage.CLOSED},
    Stage.STARTED: {"start": Stage.STARTED, "stop": Stage.STOPPED, "lose": Stage.FAILED, "close": Stage.CLOSED},
    Stage.STOPPED: {"start": Stage.STARTED, "stop": Stage.STOPPED, "lose": Stage.FAILED, "close": Stage.CLOSED},
    Stage.FAILED: {"lose": Stage.FAILED, "close": Stage.CLOSED},
    Stage.CLOSED: {"lose": Stage.CLOSED, "close": Stage.CLOSED},
}


class Lifecycle:
    """The stage of one object, and since when and why it is over."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.stage = Stage.NEW
        self.error: JMSError | None = None
        self._why = ""

    def step(self, event: str, why: str = "", error: JMSError | None = None) -> bool:
        """Do ``start``, ``stop``, ``lose`` or ``close``; True where it changed the stage.

        Raises:
            IllegalStateError: the table has no such step; the text says when and why the object ended.
        """
        target = TRANSITIONS[self.stage].get(event)
        if target is None:
            raise self.problem(event)
        changed = target is not self.stage
        if changed and target in (Stage.FAILED, Stage.CLOSED):
            if self.error is None:
                self.error = error
            self._why = f"{why} at {utc_now():%Y-%m-%d %H:%M:%S} UTC"
        self.stage = target
        return changed

    @property
    def over(self) -> bool:
        """Closed or failed."""
        return self.stage is Stage.CLOSED or self.stage is Stage.FAILED

    def problem(self, action: str) -> JMSError:
        """The error that says that ``action`` is not possible any more."""
        text = f"{action}: the {self.what} is {self.stage.value} ({self._why})"
        problem: JMSError = ConnectionLostError(text) if self.stage is Stage.FAILED else IllegalStateError(text)
        problem.__cause__ = self.error
        return problem
