"""XML as a tree of elements that know where they stand; nothing that a file says is loaded, expanded or run.

defusedxml refuses every DTD, and with it entities; a file has an upper size, and its elements a number and a depth.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from xml.parsers import expat

from redelivery.policies.files.places import Place, problem_at

DEEPEST: Final = 100
MOST: Final = 200_000  # elements of a file
_INCLUDES: Final = 20  # files within each other
XINCLUDE: Final = "http://www.w3.org/2001/XInclude"
_TAG: Final = re.compile(rb"<[^\s/>]+")
_ATTRIBUTE: Final = re.compile(rb"""\s+([^\s=]+)\s*=\s*(?:"[^"]*"|'[^']*')""")
_MARKUP: Final = re.compile(rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|(<[^!?/\s])", re.DOTALL)
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")

Load: TypeAlias = Callable[[str, str], tuple[str, bytes]]
"""``(file that includes, what it names) -> (name of that file, its bytes)``. Raises ConfigError where it is refused."""


@dataclass(frozen=True, slots=True)
class Element:
    """``name``: without its prefix. ``text``: what stands in it outside of its children, without outer spaces.

    ``places``: of its attributes, by name.
    """

    name: str
    namespace: str
    attributes: Mapping[str, str]
    place: Place
    text: str = ""
    children: tuple[Element, ...] = field(default=(), repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)

    def at(self, attribute: str) -> Place:
        """Return where an attribute stands; the element's place where it has none of that name."""
        return self.places.get(attribute, self.place)

    def all(self, *names: str) -> Iterator[Element]:
        """The children of these names."""
        return (each for each in self.children if each.name in names)

    def first(self, name: str) -> Element | None:
        """The first child of that name."""
        return next(self.all(name), None)

    def walk(self) -> Iterator[Element]:
        """This element, and all below it."""
        todo = [self]
        while todo:
            each = todo.pop()
            yield each
            todo += reversed(each.children)


class _Tree:
    """The target of the parser: builds the elements from the inside out."""

    def __init__(self, file: str, content: bytes) -> None:
        self.file = file
        self.parser: Any = None  # expat's, which knows the line
        self.root: Element | None = None
        self._content = content
        self._open: list[tuple[Element, list[str], list[Element]]] = []

    def here(self) -> Place:
        return Place(self.file, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEEPEST:
            raise problem_at(self.here(), f"more than {DEEPEST} elements within each other")
        namespace, name = tag[1:].split("}", 1) if tag.startswith("{") else ("", tag)
        plain = {key.rpartition("}")[2]: value for key, value in attributes.items()}
        place = self.here()
        places = self._places(place) if plain else {}
        self._open.append((Element(name, namespace, MappingProxyType(plain), place, places=places), [], []))

    def _places(self, place: Place) -> dict[str, Place]:
        """Return the places of the attributes of the element that begins here; none if bytes are not like ASCII's."""
        places: dict[str, Place] = {}
        line, column, seen = place.line, place.column, self.parser.CurrentByteIndex
        tag = _TAG.match(self._content, seen)
        at = tag.end() if tag else len(self._content)
        while (found := _ATTRIBUTE.match(self._content, at)) is not None:
            *lines, rest = _LINE_END.split(self._content[seen : found.start(1)])
            line, column = line + len(lines), (1 if lines else column) + len(rest.decode(errors="replace"))
            name = found[1].rpartition(b":")[2].decode(errors="replace")
            places.setdefault(name, Place(self.file, line, column))
            seen, at = found.start(1), found.end()
        return places

    def data(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)

    def end(self, _tag: str) -> None:
        element, texts, children = self._open.pop()
        element = replace(element, text="".join(texts).strip(), children=tuple(children))
        if self._open:
            self._open[-1][2].append(element)
        else:
            self.root = element

    def close(self) -> None:
        """The parser asks for it."""


def parse(content: bytes, file: str, load: Load | None = None) -> Element:
    """The root element of a document, with what it includes by XInclude where ``load`` is given.

    Raises:
        ConfigFileError: it is not well-formed, has a DTD, is nested too deeply, or includes what cannot be loaded.
    """
    return _included(_parsed(content, file), (file,), load)


def _parsed(content: bytes, file: str) -> Element:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser, ParseError

    _check_number(content, file)
    tree = _Tree(file, content)
    parser = DefusedXMLParser(target=tree, forbid_dtd=True)
    tree.parser = parser.parser
    try:
        parser.feed(content)
        parser.close()
    except DefusedXmlException as error:
        what = f"a DTD or an entity is refused ({type(error).__name__}): write the values into the file"
        raise problem_at(tree.here(), what) from error
    except (ParseError, expat.ExpatError) as error:
        line, column = getattr(error, "position", (0, 0))
        text = str(error).partition(": line")[0]
        raise problem_at(Place(file, line, column + 1), f"not well-formed XML: {text}") from error
    except (LookupError, ValueError, RecursionError) as error:  # an encoding that Python does not have
        raise problem_at(Place(file), f"not readable as XML: {error}") from error
    assert tree.root is not None, "expat refuses a document without a root"
    return tree.root


def _check_number(content: bytes, file: str) -> None:
    """Raise ConfigFileError where a document has too many elements, before it is parsed: that would take long."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        content = content.decode("utf-16", errors="replace").encode()
    elements = (found for found in _MARKUP.finditer(content) if found[1])
    first = next(islice(elements, MOST, None), None)
    if first is not None:
        at = first.start()
        place = Place(file, content.count(b"\n", 0, at) + 1, at - content.rfind(b"\n", 0, at))
        raise problem_at(place, f"more than {MOST} elements")


def _included(element: Element, files: tuple[str, ...], load: Load | None) -> Element:
    """The element with its ``xi:include`` children replaced by the roots of what they name."""
    from redelivery.model.errors import ConfigError

    if all(each.namespace != XINCLUDE for each in element.walk()):
        return element
    children = []
    for child in element.children:
        if child.namespace != XINCLUDE:
            children.append(_included(child, files, load))
            continue
        href = child.attributes.get("href", "")
        try:
            if load is None:
                raise ConfigError("it includes another file, which only a file can: read it by its path")
            name, content = load(files[-1], href)
            if name in files:
                raise ConfigError("it includes itself")
            if len(files) > _INCLUDES:
                raise ConfigError(f"more than {_INCLUDES} files that include each other")
        except ConfigError as error:
            raise problem_at(child.at("href"), f"include of {href!r}: {error}") from error
        children.append(_included(_parsed(content, name), (*files, name), load))
    return replace(element, children=tuple(children))
