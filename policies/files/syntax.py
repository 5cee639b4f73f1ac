"""Says what a file is written in, and makes its tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from redelivery.policies.files.json_tree import decoded, parse_json
from redelivery.policies.files.places import Place, problem_at
from redelivery.policies.files.properties import parse_properties
from redelivery.policies.files.xml import Load, parse
from redelivery.policies.files.yaml_tree import parse_yaml

Syntax: TypeAlias = Literal["xml", "json", "properties", "yaml", "url"]

_SYNTAXES: Final[Mapping[str, Syntax]] = {"<": "xml", "{": "json", "[": "json", "/": "json"}
_KEYS: Final = (
    rb"(?:address(?:es)?Settings|addressConfigurations|wildcardConfiguration|maxRedel|persistDel|key\.|spring\.)"
)
_YAML: Final = re.compile(rb"^(?:---\s*$|(?:apiVersion|kind|spring)\s*:|\s*addressSettings\s*:(?:\s|$))", re.MULTILINE)
_KEY: Final = re.compile(rb"^\s*" + _KEYS, re.MULTILINE)


def syntax_of(content: bytes, name: str, usual: Syntax | None) -> Syntax:
    """Say what a file is written in, by its first character or its name, or what is usual."""
    first = _first(content)
    if name.lower().endswith((".yaml", ".yml")) and first != "<":
        return "yaml"
    if first in _SYNTAXES:
        return _SYNTAXES[first]
    is_properties = name.lower().endswith(".properties")
    if not is_properties and _YAML.search(content):
        return "yaml"
    if is_properties or _KEY.search(content):
        return "properties"
    if usual is not None:
        return usual
    what = f"neither XML nor JSON: it begins with {first!r}, and has no properties" if first else "the file is empty"
    raise problem_at(Place(name), what)


def _first(content: bytes) -> str:
    """Return the first character that is not blank; empty where there is none."""
    try:
        return decoded(content).lstrip()[:1]
    except UnicodeDecodeError:  # XML can have other encodings
        return content.lstrip()[:1].decode("latin-1")


def tree_of(
    content: bytes, name: str, syntax: Syntax, load: Load | None, problem: Callable[[str, Place], object]
) -> Any:
    """Return the root of a document; the properties of a file of these. ``problem`` gets what is wrong in JSON.

    Raises:
        ConfigFileError: it is not one.
    """
    match syntax:
        case "json":
            return parse_json(content, name, problem)
        case "properties":
            return parse_properties(content, name)
        case "yaml":
            return parse_yaml(content, name)
        case _:
            return parse(content, name, load)
