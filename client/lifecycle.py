"""The lives of a connection, of a session and of its epochs: a table each; what is not in it is the error.

Connection   CONNECTING ──open──▶ STOPPED ◀──start/stop──▶ RUNNING      all ──lose──▶ FAILED
                                  both ──interrupt──▶ RECOVERING ──return──▶ STOPPED
                                  any of them ──close──▶ CLOSING ──end──▶ CLOSED
Session      OPEN ◀──listen/unlisten──▶ LISTENING                       all ──lose──▶ LOST ──end──▶ CLOSED
                                  any of them ──close──▶ CLOSING ──end──▶ CLOSED
Epoch        ATTACHED ──leave──▶ LEAVING                                all ──lose──▶ AWAY
                                  AWAY ──come──▶ RETURNING ──attach──▶ ATTACHED
                                                 RETURNING ──fail──▶ AWAY

The connection steps its own. A session's are taken by the holder of the session, but for ``close``, which may come
from any thread. An epoch is the session's part in one connection to a broker (`client.session.epoch`): while its
connection is RECOVERING a session stays OPEN or LISTENING, and its epoch is AWAY. The life of a consumer is
`client.ledger.stages`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Set
from datetime import datetime
from enum import Enum
from typing import Final, Generic, TypeVar

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.wire.clock import utc_now


class ConnectionStage(Enum):
    """The stage of a connection's life."""

    CONNECTING = "connecting"
    STOPPED = "stopped"
    RUNNING = "started"
    RECOVERING = "being connected again"
    CLOSING = "being closed"
    CLOSED = "closed"
    FAILED = "lost"


class SessionStage(Enum):
    """The stage of a session's life."""

    OPEN = "open"
    LISTENING = "listening"
    CLOSING = "being closed"
    CLOSED = "closed"
    LOST = "lost"


class EpochStage(Enum):
    """The stage of a session in its part in a connection to a broker."""

    ATTACHED = "attached"  # it has a channel
    LEAVING = "leaving"  # likewise; the connection is moved as soon as the session is at rest
    AWAY = "away"  # the connection is lost, and another one will come
    RETURNING = "returning"  # another one is there, and the session takes a channel on it


Stage = TypeVar("Stage", bound=Enum)
C, S, E = ConnectionStage, SessionStage, EpochStage
CONNECTION: Final[Mapping[ConnectionStage, Mapping[str, ConnectionStage]]] = {
    C.CONNECTING: {"open": C.STOPPED, "lose": C.FAILED, "close": C.CLOSING},
    C.STOPPED: {"start": C.RUNNING, "stop": C.STOPPED, "interrupt": C.RECOVERING, "lose": C.FAILED, "close": C.CLOSING},
    C.RUNNING: {"start": C.RUNNING, "stop": C.STOPPED, "interrupt": C.RECOVERING, "lose": C.FAILED, "close": C.CLOSING},
    C.RECOVERING: {
        "start": C.RECOVERING,
        "stop": C.RECOVERING,
        "interrupt": C.RECOVERING,
        "return": C.STOPPED,
        "lose": C.FAILED,
        "close": C.CLOSING,
    },
    C.FAILED: {"open": C.FAILED, "lose": C.FAILED, "close": C.CLOSING},
    C.CLOSING: {"lose": C.CLOSING, "close": C.CLOSING, "end": C.CLOSED},
    C.CLOSED: {"lose": C.CLOSED, "close": C.CLOSED, "end": C.CLOSED},
}
SESSION: Final[Mapping[SessionStage, Mapping[str, SessionStage]]] = {
    S.OPEN: {"listen": S.LISTENING, "unlisten": S.OPEN, "lose": S.LOST, "close": S.CLOSING},
    S.LISTENING: {"listen": S.LISTENING, "unlisten": S.OPEN, "lose": S.LOST, "close": S.CLOSING},
    S.CLOSING: {"unlisten": S.CLOSING, "lose": S.LOST, "close": S.CLOSING, "end": S.CLOSED},
    S.LOST: {"unlisten": S.LOST, "lose": S.LOST, "close": S.LOST, "end": S.CLOSED},
    S.CLOSED: {"unlisten": S.CLOSED, "lose": S.CLOSED, "close": S.CLOSED, "end": S.CLOSED},
}
EPOCH: Final[Mapping[EpochStage, Mapping[str, EpochStage]]] = {
    E.ATTACHED: {"leave": E.LEAVING, "lose": E.AWAY},
    E.LEAVING: {"leave": E.LEAVING, "lose": E.AWAY},
    E.AWAY: {"lose": E.AWAY, "come": E.RETURNING},
    E.RETURNING: {"lose": E.AWAY, "fail": E.AWAY, "attach": E.ATTACHED},
}
_ENDS: Final[Set[Enum]] = {C.CLOSING, C.CLOSED, C.FAILED, S.CLOSING, S.CLOSED, S.LOST}
_LOSSES: Final[Set[Enum]] = {C.FAILED, S.LOST}


class Lifecycle(Generic[Stage]):
    """The stage of one object, and since when and why it is over.

    ``error`` is the loss of the connection, also when it is closed after it.
    """

    def __init__(self, what: str, table: Mapping[Stage, Mapping[str, Stage]], stage: Stage) -> None:
        self.what = what
        self.stage: Stage = stage
        self.error: JMSError | None = None
        self._table = table
        self._why = ""
        self._lock = threading.Lock()  # one step at a time

    def step(self, event: str, why: str = "", error: JMSError | None = None, at: datetime | None = None) -> bool:
        """Take one step of the table, now or as of ``at``; True where it changed the stage.

        Raises:
            IllegalStateError: the table has no such step; the text says when and why the object ended.
        """
        with self._lock:
            target = self._table[self.stage].get(event)
            if target is None:
                raise self.problem(event)
            changed = target is not self.stage
            self.error = self.error or error
            if changed and why:
                noticed = ", noticed" if event == "lose" else ""  # the broker may have been gone for a while
                self._why = f"{why}{noticed} at {at or utc_now():%Y-%m-%d %H:%M:%S} UTC"
            self.stage = target
            return changed

    def orphan(self, error: JMSError) -> None:
        """In a child after fork(): it is lost, and whatever thread was in here is the parent's."""
        self._lock = threading.Lock()
        if self.stage not in _ENDS:
            self.step("lose", str(error), error)

    @property
    def ended(self) -> bool:
        """Closed, being closed, or lost."""
        return self.stage in _ENDS

    @property
    def state(self) -> str:
        """``the connection is closed (closed by close() at …)``; after a loss with its reason."""
        text = f"the {self.what} is {self.stage.value}{self._why and f' ({self._why})'}"
        return text if self.error is None or self.stage not in _LOSSES else f"{text}: {self.error}"

    def problem(self, action: str) -> JMSError:
        """The error that says that ``action`` is not possible any more; after a loss with the reason of the loss."""
        kind = ConnectionLostError if self.stage in _LOSSES else IllegalStateError
        problem: JMSError = kind(f"{action}: {self.state}")
        problem.__cause__ = self.error
        return problem
