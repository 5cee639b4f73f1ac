"""What can become of a delivery, named for what it means; every transport maps it to its own wire verbs."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """The end of a delivery, as the broker is told it."""

    ACCEPTED = "accepted"  # consumed: the broker forgets it
    RELEASED = "released"  # never shown to the application: the broker may give it to anybody, uncounted
    REDELIVER = "redeliver"  # failed: the broker may give it to anybody, counted
    POISON = "poison"  # failed for good: the broker dead-letters it
