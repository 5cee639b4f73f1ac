"""XML as text: elements with attributes and text, indented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as Tree

from redelivery.model.errors import ConfigError

_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class Node:
    """An element that is being written."""

    def __init__(self, name: str, attributes: Mapping[str, str] = _NO_ATTRIBUTES) -> None:
        self._element = Tree.Element(name, {key: checked_text(value) for key, value in attributes.items()})

    def add(self, name: str, text: str | None = None, attributes: Mapping[str, str] = _NO_ATTRIBUTES) -> Node:
        """A child, which is returned. Raises ConfigError: a value has characters that XML does not hold."""
        child = Node(name, attributes)
        if text:
            child._element.text = checked_text(text)
        self._element.append(child._element)
        return child

    def set(self, name: str, value: str) -> None:
        """Give it one more attribute. Raises ConfigError as `add`."""
        self._element.set(name, checked_text(value))

    def __len__(self) -> int:
        return len(self._element)

    def document(self) -> str:
        """This element as a document."""
        Tree.indent(self._element)
        return Tree.tostring(self._element, encoding="unicode") + "\n"


def checked_text(text: str) -> str:
    """A str that XML holds as it is.

    Raises:
        ConfigError: it has control characters, or outer spaces, which readers do not keep.
    """
    if _UNWRITABLE.search(text) or text != text.strip():
        raise ConfigError(f"{text!r} cannot be written into XML: it has control characters or outer spaces")
    return text


def is_name(text: str) -> bool:
    """Say whether it can be the name of an element."""
    return _NAME.fullmatch(text) is not None
