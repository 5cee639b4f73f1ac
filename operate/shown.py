"""Shows what others have written (bodies, names, causes, a broker's words) so that nothing acts on who reads it.

Neither a terminal nor a browser is to obey it: controls, and what turns the direction of writing, are shown by their
numbers.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any, Final

# Without these some languages cannot be written, nor emoji of several parts.
_JOINERS: Final = "\u200c\u200d"
# Controls, what turns the direction of a text or cannot be seen, ends of lines and paragraphs, halves of characters.
_HIDDEN: Final = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))


def visible(text: object, limit: int | None = None, *, lines: bool = False) -> str:
    r"""A value as a str in which nothing acts on its reader: ESC is shown as ``\x1b``, U+202E as ``\u202e``.

    Args:
        limit: characters of the text, at most; ``…`` stands for the rest.
        lines: ends of lines and tabs are as they are.
    """
    said = str(text)
    if limit is not None and len(said) > limit:
        said = said[:limit] + "…"
    if said.isascii() and said.isprintable():
        return said
    kept = "\n\t" if lines else ""
    return "".join(_escaped(each) if _is_hidden(each) and each not in kept else each for each in said)


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON in which all that `visible` escapes is escaped as JSON does it."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(each if each == "\n" or not _is_hidden(each) else json.dumps(each)[1:-1] for each in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
