"""Names and patterns of destinations: words between dots, with ActiveMQ's wildcards.

``*`` stands for one word; ``>`` (Artemis: ``#``) at the end for any further words, none included. A wildcard is a whole
word (``ord*`` is a literal), empty words count, and case matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ONE: Final = "*"
REST: Final = ">"
_REST_WORDS: Final = (REST, "#")


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name or pattern; ``#`` becomes ``>``, and ``a.>.>`` is ``a.>``."""
    words = [REST if word in _REST_WORDS else word for word in name.split(".")]
    while words[-2:] == [REST, REST]:
        words.pop()
    return tuple(words)


def covers(pattern: Sequence[str], name: Sequence[str]) -> bool:
    """Say whether the pattern matches the name; where that is a pattern itself, whether it matches all that it does."""
    for at, word in enumerate(pattern):
        if word == REST:
            return True
        if at == len(name) or (word != name[at] and (word != ONE or name[at] == REST)):
            return False
    return len(pattern) == len(name)


def matches(pattern: str, name: str) -> bool:
    """`covers` for str.

    >>> matches("orders.*", "orders.new"), matches("orders.>", "orders"), matches("orders.*", "orders.eu.new")
    (True, True, False)
    """
    return pattern == name or covers(words_of(pattern), words_of(name))
