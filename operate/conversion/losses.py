"""Collects what a format cannot say."""

from __future__ import annotations


class Losses:
    """Sentences, each once."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, text: str) -> None:
        """One that is lost."""
        self._found[text] = None

    @property
    def found(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(self._found)
