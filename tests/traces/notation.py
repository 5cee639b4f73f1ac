"""Events, a line each, to write them in tables and to read them in reports.

4 receive m1 #1 @0            step 4 received m1, its first delivery, at once
8 receive m1 #2 @100          its second (JMSRedelivered set), after 100 ms
9 receive none @400           nothing came for 400 ms
- deliver m1 #1 to=k then=throw
13 commit error=IllegalStateError
"""

from __future__ import annotations

from typing import Any

from tests.traces.scenario import Event

_CONSTANTS = {"none": None, "true": True, "false": False}
_HIDDEN = frozenset(("step", "op", "body", "redelivered", "count", "ms", "ms_min", "ms_max", "setup", "error"))


def event(text: str) -> Event:
    """The event of a line."""
    step, op, *words = text.split()
    read: dict[str, Any] = {"op": op}
    if step != "-":
        read["step"] = step
    if op in ("receive", "receiveNoWait", "deliver") and not words[0].startswith("error="):
        body = words.pop(0)
        read["body"] = None if body == "none" else body
    for word in words:
        name, separator, value = word.partition("=")
        if word.startswith("#"):
            read["count"] = int(word[1:])
            read["redelivered"] = read["count"] > 1
        elif word.startswith("@"):
            read["ms"] = int(word[1:])
        elif name == "error":
            read["error"] = {"class": value}
        elif separator:
            read[name] = _CONSTANTS[value] if value in _CONSTANTS else int(value) if value.isdigit() else value
        else:
            raise ValueError(f"{text!r}: {word!r} is neither #count nor @ms nor name=value")
    return read


def line(happened: Event) -> str:
    """The line of an event."""
    words = [happened.get("step", "-"), happened["op"]]
    if "body" in happened:
        words.append(happened["body"] or "none")
    if "count" in happened:
        words.append(f"#{happened['count']}")
    if "ms" in happened:
        words.append(f"@{happened['ms']:.0f}")
    words += [f"{name}={_text(value)}" for name, value in happened.items() if name not in _HIDDEN]
    if "error" in happened:
        words.append(f"error={happened['error']['class']}")
    return " ".join(words)


def _text(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
