"""One option of the data source `jms`, as the table has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from redelivery.spark.options import values as read

READ_STREAM: Final = "readStream"
READ: Final = "read"
WRITE: Final = "write"


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    ``default``: as the user would write it; None: there is none.
    ``where``: of `READ_STREAM`, `READ` (browse) and `WRITE` (batch and stream), those that have it.
    ``required``: of the same, those that cannot do without it.
    ``receiver``: the only receiver that looks at it, None for both.
    ``alias``: another name for it.
    ``like``: the option that does for the other receiver what this one does for ``receiver``.
    ``instead``: the option that may be given in its place, and not beside it.
    """

    name: str
    parse: read.Parser
    meaning: str
    default: str | None = None
    where: tuple[str, ...] = (READ_STREAM,)
    required: tuple[str, ...] = ()
    receiver: str | None = None
    alias: str | None = None
    like: str | None = None
    instead: str | None = None

    @property
    def field(self) -> str:
        """The option's name in snake case."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()
