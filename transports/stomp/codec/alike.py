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
    """

    def __init__(self, version: str, dialect: StompDialect, ours: Collection[str]) -> None:
        self._version = version
        self._fields = (
            # an empty name, which no header has, for what the dialect lacks
            *(dialect.message_id_header or "", "message-id", "destination", "reply-to", "correlation-id", "type"),
            *("timestamp", "priority", dialect.group_header, dialect.group_sequence_header),
        )
        self._is_property = lambda name: name not in ours and is_property(name, dialect)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._last: _Shape | None = None

    def read(self, head: bytes) -> tuple[Sequence[str | None], dict[str, str]]:
        """The values of ten headers, None for what is not set, and the properties. Of repeated ones the first counts.

        The ten: the stable id's, message-id, destination, reply-to, correlation-id, type, timestamp, priority, and the
        group's two.

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
        values = found.groups()
        fields, properties = shape.fields(values), {name: values[at] for name, at in shape.properties}
        if shape.escaped and "\\" in text:
            version = self._version
            if "\\" in text.replace("\\c", ""):  # other escapes than that of a colon, in any header
                parse_headers(head, version)  # raises where one is wrong
            fields = [unescape(each, version) if each and "\\" in each else each for each in fields]
            for name, value in properties.items():
                if "\\" in value:
                    properties[name] = unescape(value, version)
        return fields, properties

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

    __slots__ = ("escaped", "fields", "match", "properties")

    def __init__(
        self, written: Sequence[str], version: str, fields: Sequence[str], is_property: Callable[[str], bool]
    ) -> None:
        command, *names = written
        self.escaped = command not in UNESCAPED_COMMANDS
        places: dict[str, int] = {}
        pattern = [re.escape(command) + "\n"]
        for each in names:
            name = unescape(each, version) if self.escaped else each
            pattern.append(re.escape(each) + (":[^\n]*\n" if name in places else ":([^\n]*)\n"))
            places.setdefault(name, len(places))
        self.match = re.compile("".join(pattern) + _NOTHING).fullmatch
        self.fields: Callable[[Any], Sequence[str | None]] = itemgetter(*[places.get(name, -1) for name in fields])
        self.properties = [(name, at) for name, at in places.items() if is_property(name)]
