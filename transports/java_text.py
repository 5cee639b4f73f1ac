"""Text as Java's streams write it: surrogates one by one, NUL as C0 80. Some brokers pass it on as UTF-8."""

from __future__ import annotations


def modified_utf_8(data: bytes) -> str | None:
    """The str; None where the bytes are not that either, because half a character stands alone, say."""
    try:
        halves = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return halves.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None
