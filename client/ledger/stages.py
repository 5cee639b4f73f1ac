"""The life of a consumer: one table. The holder of the session takes its steps; what is not in it is an error of ours.

OPEN ──close──▶ CLOSING ──settle──▶ CLOSED          CLOSING: it holds what the application has not settled yet, and
 │ ▲  ◀──reopen── │                   ▲             its detach waits for that; a new consumer of the destination
 └─┼─end──▶ ENDED ┼──close────────────┤             may take it over (reopen).
   └─reopen─┘     └──end──────────────┘             ENDED: the broker has ended it; a listener's may begin anew.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class ConsumerStage(Enum):
    """The stage of a consumer's life."""

    OPEN = "open"
    CLOSING = "closing"
    ENDED = "ended"
    CLOSED = "closed"


OPEN, CLOSING, ENDED, CLOSED = ConsumerStage

STEPS: Final[dict[ConsumerStage, dict[str, ConsumerStage]]] = {
    OPEN: {"close": CLOSING, "end": ENDED},
    CLOSING: {"close": CLOSING, "reopen": OPEN, "settle": CLOSED, "end": CLOSED},
    ENDED: {"close": CLOSED, "end": ENDED, "reopen": OPEN},
    CLOSED: {"close": CLOSED, "end": CLOSED},
}


def next_stage(stage: ConsumerStage, event: str) -> ConsumerStage:
    """The stage after ``close``, ``reopen``, ``settle`` or ``end``.

    Raises:
        AssertionError: the table has no such step: an error of ours, which no application can cause.
    """
    target = STEPS[stage].get(event)
    assert target is not None, f"a consumer that is {stage.value} cannot {event}"
    return target
