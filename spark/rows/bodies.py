"""Bodies as bytes with a kind, and back.

Text is UTF-8. Map and stream are JSON, so that ``from_json(string(body), …)`` reads them: a map is an object, a stream
an array. JSON has fewer types than JMS: bytes in them are base64 strings, which ``from_json`` decodes in a field of
type BINARY; NaN and the infinities are the strings ``NaN``, ``Infinity``, ``-Infinity``, which it reads as DOUBLE. On
the way back such bytes and numbers are strings, a byte, short or long is an int where it fits one, a float is a double.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import Body, body_kind, check_body


def body_bytes(body: Body) -> tuple[bytes | None, str]:
    """The bytes of a body (None of none), and its kind.

    Raises:
        MessageFormatError: a str has half a surrogate pair, which UTF-8 cannot carry.
    """
    if type(body) is bytes:
        return body, "bytes"
    if body is None:
        return None, "none"
    try:
        if isinstance(body, str):
            return body.encode(), "text"
        if isinstance(body, bytes):
            return bytes(body), "bytes"
        plain: Any = {name: _plain(value) for name, value in body.items()} if isinstance(body, dict) else None
        if plain is None:
            plain = [_plain(value) for value in body]
        return json.dumps(plain, ensure_ascii=False, allow_nan=False).encode(), body_kind(body)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"the body has half a surrogate pair, which UTF-8 cannot carry: {error}") from error


def body_of(raw: bytes | None, kind: str | None) -> Body:
    """The body of such bytes; without a kind it is bytes.

    Raises:
        MessageFormatError: the bytes are not of that kind, or there is no such kind.
    """
    if kind not in (None, "text", "bytes", "map", "stream", "none"):
        raise MessageFormatError(f"body_type={kind!r}: use text, bytes, map, stream or none")
    if raw is None or (kind == "none" and not raw):
        return None
    raw = bytes(raw)
    if kind in (None, "bytes"):
        return raw
    if kind == "none":
        raise MessageFormatError(f"body_type='none', but the body has {len(raw)} bytes")
    try:
        text = raw.decode()
        if kind == "text":
            return text
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageFormatError(f"the body is not valid as body_type={kind!r}: {error}") from error
    if not isinstance(found, dict if kind == "map" else list):
        shape = "a JSON object" if kind == "map" else "a JSON array"
        raise MessageFormatError(f"the body of a {kind} must be {shape}")
    return check_body(found)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
