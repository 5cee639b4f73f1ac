"""Tells text from bytes, and finds its encoding: by a content type, and as Java's streams write it."""

from __future__ import annotations

import re
from typing import Final

_TEXTUAL: Final = re.compile(
    r"\s*(?:text/[^;]+|application/(?:xml|json|javascript|ecmascript|xml-dtd|[^;]+\+(?:xml|json)))\s*(?:;|$)", re.I
)
_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)', re.I)
# Not each name that Python knows: some of its codecs take quadratic time.
_CHARSETS: Final = re.compile(
    r"(?:us-)?ascii|utf-?(?:8|16|32)(?:-?[lb]e)?|latin-?1|iso-8859-\d{1,2}|windows-125\d", re.I
)


def text_charset(content_type: str) -> str | None:
    """The charset of a textual content type, as Qpid JMS reads it; None where the data is bytes."""
    if not _TEXTUAL.match(content_type):
        return None
    named = _CHARSET.search(content_type)
    if named is None:
        return "utf-8"
    return named[1] if _CHARSETS.fullmatch(named[1]) else None


def modified_utf_8(data: bytes) -> str | None:
    """The str of what Java's streams have written: surrogates one by one, NUL as C0 80. Some brokers pass it on.

    None where the bytes are not that either, because half a character stands alone, say.
    """
    try:
        halves = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return halves.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None
