"""Map bodies as ActiveMQ's ``jms-map-json``: the JSON that XStream writes for a java.util.Map, both ways.

    {"map":{"entry":[{"string":["name","text"]},{"string":"count","int":5}]}}

What the broker's own JSON library would change on the way is refused when it is written.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from typing import Any, Final

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import INT_MAX, INT_MIN, Byte, Float, Long, Short, Value

START: Final = b'{"map":'
_READ: Final[Mapping[str, Callable[[str], Value]]] = {
    "int": int,
    "long": int,
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "double": float,
    "float": lambda text: Float(float(text)),
    "boolean": lambda text: text == "true",
    "char": str,
    "null": lambda _: None,
    "byte-array": lambda text: b64decode(text, validate=True),
}


def write_map(body: Mapping[str, Value]) -> bytes:
    """The JSON of a map body.

    Raises:
        MessageFormatError: a value cannot travel this way: bytes; a str with NUL or characters beyond U+FFFF, or the
            text "null", which the broker changes.
    """
    entries = [_entry(name, value) for name, value in body.items()]
    return json.dumps({"map": {"entry": entries}}, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_map(data: bytes) -> dict[str, Value] | None:
    """The map body that this JSON is; None where it is something else."""
    try:
        # Numbers and literals stay text: the broker writes the text "5" as 5, and the key of the entry has the type.
        outer = json.loads(data, parse_int=str, parse_float=str, parse_constant=str)
        inner = outer["map"]
        if outer.keys() != {"map"}:
            return None
        if inner == "":
            return {}
        if inner.keys() != {"entry"}:
            return None
        entries = inner["entry"]
        return dict(_read_entry(entry) for entry in (entries if isinstance(entries, list) else [entries]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Base64Error):
        return None


def _entry(name: str, value: Value) -> dict[str, object]:
    _check_text(name, name)
    match value:
        case str():
            return {"string": [name, _check_text(name, value)]}
        case None:
            return {"string": name, "null": ""}
        case bool():
            return {"string": name, "boolean": value}
        case Byte() | Short() | Long():
            return {"string": name, type(value).__name__.lower(): int(value)}
        case int():
            return {"string": name, "int" if INT_MIN <= value <= INT_MAX else "long": value}
        case float():
            finite = value - value == 0
            return {
                "string": name,
                "float" if isinstance(value, Float) else "double": value if finite else _java(value),
            }
        case _:
            raise MessageFormatError(f"map entry {name!r}: bytes in a map cannot travel over STOMP; send a bytes body")


def _java(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _check_text(name: str, text: str) -> str:
    if text == "null" or "\0" in text or any(char > "\uffff" or "\ud800" <= char <= "\udfff" for char in text):
        raise MessageFormatError(
            f"map entry {name!r}: the broker's JSON would change a str that is 'null' or has NUL or a character "
            "beyond U+FFFF; send a str or bytes body"
        )
    return text


def _read_entry(entry: dict[str, Any]) -> tuple[str, Value]:
    names = entry["string"]
    if isinstance(names, list):
        name, value = names
        if len(entry) != 1:
            raise ValueError("a map entry of two strings has nothing else")
        return _text(name), _text(value)
    ((kind, value),) = ((kind, value) for kind, value in entry.items() if kind != "string")
    return _text(names), _READ[kind](_text(value))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    raise ValueError("a map entry nests nothing")
