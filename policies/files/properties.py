"""Java's ``.properties`` as keys and values that know where they stand (`java.util.Properties`)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from redelivery.policies.files.places import Place, problem_at

MOST: Final = 200_000  # keys of a file
_BREAKS: Final = ("#---", "!---")
_BLANK: Final = " \t\f"
LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PAIR: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*+)[ \t\f]*+(?:[=:][ \t\f]*+)?(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_NO_CHARACTER: Final = re.compile(r"(?<!\\)(?:\\\\)*+(\\u)(?![0-9A-Fa-f]{4})")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A key with its value, without their escapes; ``place``: where the key begins."""

    key: str
    value: str
    place: Place


class Properties(list[Property]):
    """The properties of a file; ``breaks``: its lines ``#---`` or ``!---``, at which Spring Boot's documents end."""

    def __init__(self) -> None:
        super().__init__()
        self.breaks: list[int] = []


def parse_properties(content: bytes | str, file: str) -> Properties:
    r"""Return the keys and values of a file in its order; a key that stands there twice is there twice.

    A line ends a value unless a ``\`` is before its end; ``#`` and ``!`` begin a comment; a key ends at ``=``, ``:`` or
    a blank. Bytes are read as ISO 8859-1, as Java reads them. Raises ConfigFileError: ``\u`` without four hexadecimal
    digits, for which Java refuses the whole file, or more than MOST keys.
    """
    text = content if isinstance(content, str) else content.decode("latin-1")
    found = Properties()
    lines = enumerate(LINE_END.split(text), 1)
    for number, line in lines:
        start = line.lstrip(_BLANK)
        if not start or start[0] in "#!":
            found.breaks += [number] * (line.rstrip() in _BREAKS)
            continue
        place = Place(file, number, len(line) - len(start) + 1)
        parts = [_part(line, number, file)]
        while _goes_on(line):
            number, line = next(lines, (number + 1, ""))
            parts.append(_part(line, number, file))
        if len(found) == MOST:
            raise problem_at(place, f"more than {MOST} keys")
        found.append(_property("".join(parts), place))
    return found


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _part(line: str, number: int, file: str) -> str:
    """Return what a line adds: without the blanks before it, and without what joins it to the next one."""
    wrong = _NO_CHARACTER.search(line)
    if wrong is not None:
        raise problem_at(Place(file, number, wrong.start(1) + 1), r"\u needs four hexadecimal digits")
    return (line[:-1] if _goes_on(line) else line).lstrip(_BLANK)


def _property(line: str, place: Place) -> Property:
    pair = _PAIR.match(line)
    assert pair is not None, "the expression matches any text"
    return Property(_unescaped(pair[1]), _unescaped(pair[2]), place)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2]), text)


def escaped(text: str, *, is_key: bool = False) -> str:
    """Spell a key or a value so that `parse_properties` reads it again."""
    marked = re.sub(r"[\\=: ]" if is_key else r"\\|^ ", r"\\\g<0>", text)
    if is_key:
        marked = re.sub(r"^[#!]", r"\\\g<0>", marked)
    for name, character in _ESCAPES.items():
        marked = marked.replace(character, f"\\{name}")
    return re.sub(r"[^ -~]", lambda found: _units(found[0]), marked)


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
