"""Reads what RabbitMQ's management shows of a message: JSON, in which some values are not as they were sent."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

_DEATHS: Final = ("x-first-death-", "x-last-death-")
_MILLISECONDS: Final = 1000
_BOUNDS: Final = (-(1 << 63), 1 << 63)


def payload(shown: Mapping[str, Any]) -> bytes:
    """The body's bytes."""
    text = str(shown.get("payload", ""))
    return b64decode(text) if shown.get("payload_encoding") == "base64" else text.encode("utf-8", "surrogatepass")


def headers_of(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message's headers; a whole number that is none of 64 bits is a str."""
    found = shown["properties"].get("headers") or {}
    return {name: _value(value) for name, value in found.items()}


def deaths(shown: Mapping[str, Any]) -> Mapping[str, object]:
    """The broker's notes on a dead letter, as over AMQP: the header ``x-death``, times in milliseconds."""
    headers = headers_of(shown)
    noted: dict[str, object] = {name: value for name, value in headers.items() if name.startswith(_DEATHS)}
    if isinstance(died := headers.get("x-death"), list):
        died = [each for each in died if isinstance(each, dict)]
        noted["x-opt-deaths"] = [{**each, "last-time": _time(each)} for each in died]
        if died:  # the newest stands before
            for name in ("queue", "reason", "exchange"):
                noted.setdefault(f"x-first-death-{name}", died[-1].get(name))
                noted.setdefault(f"x-last-death-{name}", died[0].get(name))
    return noted


def _time(death: Mapping[str, Any]) -> int | None:
    seconds = death.get("time")
    return seconds * _MILLISECONDS if isinstance(seconds, int) else None


def _value(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not _BOUNDS[0] <= value < _BOUNDS[1]:
        return str(value)
    return value
