"""Shows what others have written (bodies, names, causes, a broker's words) so that no terminal obeys it."""

from __future__ import annotations

import logging
import sys
from typing import Final

from redelivery.operate.shown import as_json, visible

__all__ = ["CUT", "VisibleFormatter", "as_json", "complain", "log_visibly", "visible"]
CUT: Final = 200
"""Characters of a value that are shown in a line."""


def complain(command: str, text: object) -> None:
    """Each line of it on the standard error, with the command before it."""
    for line in str(text).splitlines():
        print(f"redelivery {command}: {visible(line)}", file=sys.stderr)


class VisibleFormatter(logging.Formatter):
    """Log lines and tracebacks in which what others have written is shown, not obeyed.

    Further lines of a record begin with spaces, so that no text of a message looks like another record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, and those that belong to it."""
        return visible(super().format(record), lines=True).replace("\n", "\n  ")


def log_visibly(format: str = "%(asctime)s %(levelname)s %(name)s: %(message)s") -> None:
    """Log to the standard error from INFO on, by a `VisibleFormatter`, if nobody has set logging up."""
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter(format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
