"""STOMP frames: the text form of their heads, both ways, for versions 1.2, 1.1 and 1.0.

A head is the command line and the header lines, each with its line end, without the empty line that follows:
``b"MESSAGE\\nsubscription:1\\n"``. So every header can be found as ``b"\\nname:"``, and its value ends at a line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from redelivery.model.errors import MessageFormatError, ProtocolError

VERSIONS: Final = ("1.2", "1.1", "1.0")
# STOMP 1.2, "Value Encoding": these three are never escaped, so that older peers can read them.
UNESCAPED_COMMANDS: Final = frozenset(("CONNECT", "STOMP", "CONNECTED"))

_ESCAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.2": {"\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c"},
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.0": {},
}
_UNESCAPES: Final = {version: {escape: char for char, escape in table.items()} for version, table in _ESCAPES.items()}
_special = re.compile(r"[\\\n\r:\0]")
_escape_sequence = re.compile(r"\\.?", re.DOTALL)


class Frame:
    """One frame as it was cut from the wire; headers are read when they are asked for."""

    __slots__ = ("_headers", "body", "head", "version")

    def __init__(self, head: bytes, body: bytes = b"", version: str = "1.2") -> None:
        self.head = head
        self.body = body
        self.version = version
        self._headers: dict[str, str] | None = None

    @property
    def command(self) -> str:
        """The command, such as ``MESSAGE``."""
        return self.head[: self.head.find(b"\n")].decode("ascii")

    @property
    def headers(self) -> dict[str, str]:
        """All headers, unescaped; of a repeated one the first counts.

        Raises:
            ProtocolError: not UTF-8, a line without a colon, or an escape that the version does not know.
        """
        if self._headers is None:
            self._headers = parse_headers(self.head, self.version)
        return self._headers

    def raw(self, key: bytes) -> bytes | None:
        """The first header's value as it stands on the wire, still escaped; the key is ``b"\\nname:"``."""
        return raw_value(self.head, key)

    def __repr__(self) -> str:
        return f"<Frame {self.command} of {len(self.body)} bytes>"  # no headers: they may hold a passcode


def raw_value(head: bytes, key: bytes) -> bytes | None:
    """The value of the first header named by ``key`` (``b"\\nname:"``), still escaped; None where there is none."""
    at = head.find(key)
    if at < 0:
        return None
    at += len(key)
    return head[at : head.find(b"\n", at)]


def parse_headers(head: bytes, version: str = "1.2") -> dict[str, str]:
    """All headers of a head, unescaped; of a repeated one the first counts. Raises ProtocolError."""
    try:
        lines = head.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a STOMP header is not UTF-8 ({error.reason} at byte {error.start})") from error
    escaped = b"\\" in head and lines[0] not in UNESCAPED_COMMANDS
    headers: dict[str, str] = {}
    for line in lines[1:-1]:
        name, colon, value = line.partition(":")
        if not colon or not name:
            raise ProtocolError(f"{line[:80]!r} is not a STOMP header: it has no name or no colon")
        if escaped and "\\" in line:
            name, value = unescape(name, version), unescape(value, version)
        headers.setdefault(name, value)
    return headers


def escape(text: str, version: str = "1.2") -> str:
    """A header's name or value as it is written.

    Raises:
        MessageFormatError: the version cannot carry one of its characters: NUL; in 1.1 also CR, in 1.0 also LF.
    """
    if _special.search(text) is None:
        return text
    table = _ESCAPES[version]

    def replaced(match: re.Match[str]) -> str:
        char = match.group()
        if char in table:
            return table[char]
        if char in "\\:" and version == "1.0":
            return char
        raise MessageFormatError(f"STOMP {version} cannot carry {char!r} in a header")

    return _special.sub(replaced, text)


def unescape(text: str, version: str = "1.2") -> str:
    """The inverse of `escape`. Raises ProtocolError on an escape that the version does not know."""
    if "\\" not in text:
        return text
    table = _UNESCAPES[version]
    if not table:
        return text
    usual = text.replace("\\c", ":")  # of every message id; an escaped backslash before a "c" leaves one behind
    if "\\" not in usual:
        return usual

    def replaced(match: re.Match[str]) -> str:
        try:
            return table[match.group()]
        except KeyError:
            raise ProtocolError(f"{match.group()!r} is not an escape of STOMP {version}") from None

    return _escape_sequence.sub(replaced, text)


def encode_head(command: str, headers: Mapping[str, str] | Iterable[tuple[str, str]], version: str = "1.2") -> bytes:
    """The head of a frame. Raises MessageFormatError where a name or value cannot be written."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = [command]
    if command in UNESCAPED_COMMANDS:
        for name, value in pairs:
            refuse_line_ends(name, value)
            lines.append(f"{name}:{value}")
    else:
        for name, value in pairs:
            if not name or (version == "1.0" and ":" in name):
                raise MessageFormatError(f"{name!r} is not a name for a STOMP {version} header")
            lines.append(f"{escape(name, version)}:{escape(value, version)}")
    lines.append("")
    return encode_text("\n".join(lines))


def encode(
    command: str,
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    body: bytes = b"",
    version: str = "1.2",
) -> bytes:
    """A whole frame; the caller gives the ``content-length`` of a body that can hold NUL. Raises MessageFormatError."""
    return b"%b\n%b\0" % (encode_head(command, headers, version), body)


def refuse_line_ends(name: str, value: str) -> None:
    """Raise MessageFormatError, without the value (it may be a secret), where it would begin a new header or frame."""
    if not name or ":" in name or _breaks(name):
        raise MessageFormatError(f"{name!r} cannot name a header that is not escaped")
    if _breaks(value):
        raise MessageFormatError(f"the value of {name!r} holds a line end or NUL, which this frame cannot carry")


def encode_text(text: str) -> bytes:
    """UTF-8. Raises MessageFormatError on a lone surrogate, which UTF-8 cannot carry."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"{error.object[error.start]!r} is half a character: UTF-8 cannot carry it") from error


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text or "\0" in text
