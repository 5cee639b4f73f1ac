"""`Passport`, and its form on the wire: an object of JSON in ASCII, of at most `MOST` bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

MOST: Final = 4096  # bytes
VERSION: Final = 1  # that is written
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{12}")
_TEXTS: Final = ("exception", "message", "fingerprint", "frame", "policy", "client", "application", "consumer")
_INT_MAX: Final = (1 << 31) - 1
_ELLIPSIS: Final = "…"
_SENSELESS: Final = 16  # characters, of which no part says anything


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One delivery that failed.

    ``number``: JMSXDeliveryCount of that delivery, 1 for the first. ``at``: when it failed, aware, UTC, to the
    millisecond. ``host``: where. Raises TypeError, ValueError: a value is of another type, or the time is not aware.
    """

    number: int
    at: datetime
    host: str

    def __post_init__(self) -> None:
        if not isinstance(self.number, int) or isinstance(self.number, bool) or not isinstance(self.at, datetime):
            raise TypeError(f"an attempt has a number and a time, not {self.number!r} and {self.at!r}")
        if self.at.tzinfo is None or not 0 <= self.number <= _INT_MAX:
            raise ValueError(f"an attempt has an aware time and a number of at most 31 bits: {self.number}, {self.at}")
        at = self.at.astimezone(UTC)
        object.__setattr__(self, "at", at.replace(microsecond=at.microsecond // 1000 * 1000))
        object.__setattr__(self, "host", _text("host", self.host))


@dataclass(frozen=True, slots=True)
class Passport:
    """The facts that the client which dead-lettered a message has written on it: `DeadLetterInfo.passport`.

    None, or nothing, stands for what is not known. Texts have no control characters but line ends and tabs.

    Attributes:
        version: of the form in which it was read; 1 in what is made here.
        exception: the class of the application's last exception with the message: ``shop.errors.OrderError``,
            ``ValueError``.
        message: its text, without what was recognized as a secret.
        fingerprint: 12 hexadecimal digits, the same for failures of one class from one place: see `failures`.
        frame: this place, the innermost function of the application: ``shop.orders:Order.place``.
        stack: its functions, the outermost first: ``shop.orders:Order.place, line 41``, and those of its causes.
        attempts: with it that have failed, the oldest first, as far as this client had them in its hands. Those
            before, at another client or before a restart, are in no list: ``DeadLetterInfo.count`` counts them too.
        policy: the entry of the policies that counted, and its rule.
        client: this library, with its version.
        application: as ``connect(application="shop 2.4")`` names it; by custom its release is the last word.
        consumer: of which connection, and of what.

    Raises:
        TypeError, ValueError: a value is of another type.
    """

    version: int = VERSION
    exception: str | None = None
    message: str | None = None
    fingerprint: str | None = None
    frame: str | None = None
    stack: tuple[str, ...] = ()
    attempts: tuple[FailedAttempt, ...] = ()
    policy: str | None = None
    client: str = ""
    application: str | None = None
    consumer: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not isinstance(self.version, int) or isinstance(self.version, bool) or not 1 <= self.version <= _INT_MAX:
            raise ValueError(f"version={self.version!r} is no version of a passport")
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None or name == "client":
                put(self, name, _text(name, value) or (value if name == "client" else None))
        if self.fingerprint is not None and not _FINGERPRINT.fullmatch(self.fingerprint):
            raise ValueError(f"fingerprint={self.fingerprint!r}: must be 12 hexadecimal digits")
        put(self, "stack", tuple(_text("stack", each) for each in self.stack))
        put(self, "attempts", tuple(self.attempts))
        if not all(isinstance(each, FailedAttempt) for each in self.attempts):
            raise TypeError("attempts must be a sequence of FailedAttempt")


def write_passport(passport: Passport, most: int = MOST) -> str:
    """Return its JSON, of at most ``most`` bytes, which must have room for the fingerprint: 64 at least.

    What is too long is cut: each time the longest part, a str at its end, the stack and the attempts in the middle.
    """
    written = _written(passport)
    while len(written) > most:
        passport = _shorter(passport)
        written = _written(passport)
    return written


def read_passport(value: object) -> Passport | None:
    """The passport that a property holds; None: it is none, or too damaged. Never raises.

    A part that is not as it should be is left out, and so is what a later version has added.
    """
    if not isinstance(value, str) or len(value) > MOST:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or (version := _number(found.get("v"), 1)) is None:
        return None
    texts = {name: text for name in _TEXTS if isinstance(text := found.get(name), str)}
    if not _FINGERPRINT.fullmatch(texts.get("fingerprint", "")):
        texts.pop("fingerprint", None)
    stack, attempts = (each if isinstance(each := found.get(name), list) else [] for name in ("stack", "attempts"))
    return Passport(
        version,
        stack=tuple(each for each in stack if isinstance(each, str)),
        attempts=tuple(attempt for each in attempts if (attempt := _read_attempt(each)) is not None),
        **texts,
    )


def clean(text: str) -> str:
    """The text without what is no character or would act on a terminal; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else _instead(each) for each in text)


def cut(text: str, most: int) -> str:
    """The first ``most`` characters, of which the last says that there were more."""
    return text if len(text) <= most else text[: max(0, most - 1)] + _ELLIPSIS[:most]


def _instead(character: str) -> str:
    return "\ufffd" if "\ud800" <= character <= "\udfff" else " "


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: must be a str")
    return clean(value)


def passport_record(passport: Passport) -> dict[str, object]:
    """The object of JSON that it is, without what is not known."""
    said: dict[str, object] = {"v": passport.version}
    for field in fields(passport)[1:]:
        value = getattr(passport, field.name)
        if field.name == "attempts":
            value = [{"number": each.number, "at": _iso(each.at), "host": each.host} for each in value]
        if value:
            said[field.name] = list(value) if isinstance(value, tuple) else value
    return said


def _written(passport: Passport) -> str:
    return _json(passport_record(passport))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read_attempt(value: object) -> FailedAttempt | None:
    if not isinstance(value, dict) or (number := _number(value.get("number"), 0)) is None:
        return None
    at, host = value.get("at"), value.get("host", "")
    if not isinstance(at, str) or not isinstance(host, str):
        return None
    try:
        return FailedAttempt(number, datetime.fromisoformat(at), host)
    except (ValueError, OverflowError):
        return None


def _number(value: object, least: int) -> int | None:
    return value if type(value) is int and least <= value <= _INT_MAX else None


_Shorten: TypeAlias = Callable[[Any], Any]


def _shorter_text(text: str) -> str:
    return cut(text, len(text) * 3 // 4) if len(text) > _SENSELESS else ""


def _inner(stack: tuple[str, ...]) -> tuple[str, ...]:
    """The end: the innermost functions, and their causes."""
    return (_ELLIPSIS, *stack[-(len(stack) * 3 // 4 - 1) :]) if len(stack) > 3 else ()


def _first_and_last(attempts: tuple[FailedAttempt, ...]) -> tuple[FailedAttempt, ...]:
    return (*attempts[:1], *attempts[2:]) if len(attempts) > 1 else ()


_SHORTEN: Final[Mapping[str, _Shorten]] = {
    **dict.fromkeys((name for name in _TEXTS if name != "fingerprint"), _shorter_text),
    "stack": _inner,
    "attempts": _first_and_last,
}


def _shorter(passport: Passport) -> Passport:
    longest = max(_SHORTEN, key=lambda name: _length(passport, name))
    return replace(passport, **{longest: _SHORTEN[longest](getattr(passport, longest))})


def _length(passport: Passport, name: str) -> int:
    """Bytes; of what cannot be shorter 0."""
    value = getattr(passport, name)
    if name == "attempts":
        return sum(len(_json(each.host)) + 50 for each in value)
    return len(_json(value)) if value else 0
