"""Reads heads that are alike: most messages of a subscription have the same headers in the same order, and one pattern,
made for the first of them, finds all values of the others at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, Final

from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.codec.frames import UNESCAPED_COMMANDS, parse_headers, unescape
from redelivery.transports.stomp.codec.names import is_property

_KEPT: Final = 64  # shapes of heads: a pattern takes as long as a hundred messages
_NOTHING: Final = "(\0)?"  # no head has this character: the value of what is not there


class HeadReader:
    """Reads the heads of one subscription.

    Args:
        version: of STOMP.
        ours: headers of this library, which are no properties.
        mode: the one of them that says that a message is not persistent.
    """

    def __init__(self, version: str, dialect: StompDialect, ours: Collection[str], mode: str) -> None:
        self._version = version
        self._fields = (
            # an empty name, which no header has, for what the dialect lacks
            *(dialect.message_id_header or "", "message-id", "destination", "reply-to", "correlation-id", "type"),
            *("timestamp", "expires", "priority", "persistent", mode),
            *(dialect.group_header, dialect.group_sequence_header),
        )
        self._is_property = lambda name: name not in ours and is_property(name, dialect)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._last: _Shape | None = None

    def read(self, head: bytes) -> tuple[Sequence[str | None], dict[str, str]]:
        """The values of 13 headers, None for what is not set, and the properties. Of repeated ones the first counts.

        The 13: the stable id's, message-id, destination, reply-to, correlation-id, type, timestamp, expires, priority,
        persistent, the mode, and the group's two.

        Raises:
            ProtocolError: not UTF-8, a line without a colon, or an escape that the version does not know.
        """
        shape = self._last
        try:
            text = head.decode()
        except UnicodeDecodeError:
            parse_headers(head)
            raise
        found = None if shape is None else shape.match(text)
        if shape is None or found is None:
            shape = self._last = self._shape_of(head, text)
            found = shape.match(text)
            assert found is not None, "the pattern was made of these names"
        if shape.escaped and "\\" in text:
            return self._unescaped(shape, head, text)
        return shape.read(found.groups())

    def _unescaped(self, shape: _Shape, head: bytes, text: str) -> tuple[Sequence[str | None], dict[str, str]]:
        """The same of a head that has that shape, and escapes."""
        version, usual = self._version, text.replace("\\c", ":")  # in every message id
        if shape.plain and "\\" not in usual:
            found = shape.match(usual)
            assert found is not None, "no name has changed, and each value ends with its line"
            return shape.read(found.groups())
        parse_headers(head, version)  # raises where one is wrong
        found = shape.match(text)
        assert found is not None, "it has that shape"
        fields, properties = shape.read(found.groups())
        fields = [unescape(each, version) if each else each for each in fields]
        return fields, {name: unescape(value, version) for name, value in properties.items()}

    def _shape_of(self, head: bytes, text: str) -> _Shape:
        lines = text.split("\n")
        written = (lines[0], *[line.partition(":")[0] for line in lines[1:-1]])
        shape = self._shapes.get(written)
        if shape is None:
            parse_headers(head, self._version)  # raises on what is no header
            if len(self._shapes) >= _KEPT:
                self._shapes.clear()
            shape = self._shapes[written] = _Shape(written, self._version, self._fields, self._is_property)
        return shape


class _Shape:
    """The names of a head's headers, in order; ``written``: behind the command, as they are on the wire."""

    __slots__ = ("_fields", "_properties", "escaped", "match", "plain")

    def __init__(
        self, written: Sequence[str], version: str, fields: Sequence[str], is_property: Callable[[str], bool]
    ) -> None:
        command, *names = written
        self.escaped = command not in UNESCAPED_COMMANDS and version != "1.0"
        self.plain = not any("\\" in name for name in names)
        places: dict[str, int] = {}
        pattern = [re.escape(command) + "\n"]
        for each in names:
            name = unescape(each, version) if self.escaped else each
            pattern.append(re.escape(each) + (":[^\n]*\n" if name in places else ":([^\n]*)\n"))
            places.setdefault(name, len(places))
        self.match = re.compile("".join(pattern) + _NOTHING).fullmatch
        self._fields: Callable[[Any], Sequence[str | None]] = itemgetter(*[places.get(name, -1) for name in fields])
        self._properties = [(name, at) for name, at in places.items() if is_property(name)]

    def read(self, values: Sequence[str]) -> tuple[Sequence[str | None], dict[str, str]]:
        """The values of the fields, and the properties, of the groups of a `match`."""
        return self._fields(values), {name: values[place] for name, place in self._properties}
