"""Describes the problem of a selector: the error has a line that points at the place."""

from __future__ import annotations

from typing import Final

from redelivery.model.errors import InvalidSelectorError

_AROUND: Final = 60  # characters that are shown before and after the place


def invalid(text: str, position: int, problem: str) -> InvalidSelectorError:
    """The error, to be raised; ``position`` counts from 0, and the length of ``text`` is its end."""
    before, after = text[:position], text[position:]
    line = before.rpartition("\n")[2]
    head = line if len(line) <= _AROUND else "…" + line[-_AROUND:]
    rest = after.partition("\n")[0]
    tail = rest if len(rest) <= _AROUND else rest[:_AROUND] + "…"
    where = f"at character {position + 1}" if after else "at its end"
    shown = (head + tail).translate(_BLANKS)
    return InvalidSelectorError(
        f"the selector is not valid {where}: {problem}\n    {shown}\n    {' ' * len(head)}^", position=position
    )


_BLANKS: Final = {code: " " for code in (*range(32), 127)}  # the caret stands below what it points at
