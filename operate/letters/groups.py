"""Letters that failed alike: the same origin, and the same exception but for its numbers and names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from redelivery.model.messages import Message

# What differs from letter to letter of one failure: the policy's fields, quoted names, ids, numbers.
_DIFFERS: Final = (
    (re.compile(r"\{[^{}]*\}"), "{}"),
    (re.compile(r"'[^']*'|\"[^\"]*\""), "''"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "#"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE), "#"),
    (re.compile(r"\d+"), "#"),
)
_LENGTH: Final = 12  # hexadecimal digits of a fingerprint


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one fingerprint.

    ``cause``, ``exception``: of its first letter. ``first``, ``last``: when the earliest and latest of them was sent.
    """

    fingerprint: str
    count: int
    origin: str | None
    cause: str | None
    exception: str | None
    first: datetime | None
    last: datetime | None


def fingerprint(message: Message) -> str:
    """The same of letters that failed alike."""
    letter = message.dead_letter
    origin = None if letter is None else letter.origin
    said = None if letter is None else letter.exception or letter.cause
    for pattern, instead in _DIFFERS:
        said = None if said is None else pattern.sub(instead, said)
    return hashlib.sha256(f"{origin}\n{said}".encode()).hexdigest()[:_LENGTH]


def group(messages: Iterable[Message]) -> list[Group]:
    """The groups, the largest first."""
    found: dict[str, list[tuple[Message, datetime | None]]] = {}
    for message in messages:
        found.setdefault(fingerprint(message), []).append((message, message.timestamp))
    groups = [_group(name, members) for name, members in found.items()]
    return sorted(groups, key=lambda each: (-each.count, each.fingerprint))


def _group(name: str, members: list[tuple[Message, datetime | None]]) -> Group:
    letter = members[0][0].dead_letter
    times = [at for _, at in members if at is not None]
    return Group(
        fingerprint=name,
        count=len(members),
        origin=None if letter is None or letter.origin is None else str(letter.origin),
        cause=None if letter is None else letter.cause,
        exception=None if letter is None else letter.exception,
        first=min(times, default=None),
        last=max(times, default=None),
    )
