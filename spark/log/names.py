"""The files under walLocation, and their names. Each is created once and never changed, until it is deleted.

_wal.json                        {"v", "wal"}: the identity that every offset names
seg/<seq>-<part>.arrow           a segment; an empty one is a tombstone
seg/<seq>-<part>.ok              the session that received the segment is known to have committed
doubt/<seq>-<part>.json          {"since", "keys"}: messages of a committed batch that the broker may redeliver; a
                                 key is [message id or null, digest]. Version 1 had {"since", "ids"}
commits/<seq>.json               the batch is committed; {part: attempt}: the segments that it was made of
epochs/<epoch>.json              {"owner", …}: which query has taken the location, the highest number rules
epochs/<epoch>.left              that query has ended
attempts/<seq>-<number>          Spark has planned the batch once more
quarantine/<seq>                 the batch's messages are dead letters
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from redelivery.spark.log.store.interface import SegmentStore, StoreError

__all__ = [
    "ATTEMPTS",
    "COMMITS",
    "EPOCHS",
    "IDENTITY",
    "IN_DOUBT",
    "QUARANTINE",
    "SEGMENTS",
    "SegmentName",
    "batch_name",
    "leading_number",
    "read_json",
    "segment_names",
    "to_json",
    "unconfirmed",
]

IDENTITY: Final = "_wal.json"
SEGMENTS: Final = "seg"
IN_DOUBT: Final = "doubt"
COMMITS: Final = "commits"
EPOCHS: Final = "epochs"
ATTEMPTS: Final = "attempts"
QUARANTINE: Final = "quarantine"

_SEGMENT: Final = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """A segment (or tombstone); ``ok``: its session is known to have committed."""

    seq: int
    part: int
    ok: bool = False

    @property
    def key(self) -> str:
        """The part that its files' names have in common; sorts as the numbers do."""
        return f"{self.seq:012d}-{self.part:04d}"

    @property
    def data(self) -> str:
        """The file with the rows."""
        return f"{SEGMENTS}/{self.key}.arrow"

    @property
    def mark(self) -> str:
        """The file that says ``ok``."""
        return f"{SEGMENTS}/{self.key}.ok"


def segment_names(files: list[str], *, lost: bool = False) -> list[SegmentName]:
    """The segments of a listing, in order; ``lost``: with those of which only the ``.ok`` is there."""
    confirmed = {name.removesuffix(".ok") for name in files if name.endswith(".ok")}
    there = {name.removesuffix(".arrow") for name in files if name.endswith(".arrow")}
    found = [match for match in map(_SEGMENT.fullmatch, there | confirmed if lost else there) if match]
    return sorted(SegmentName(int(m[1]), int(m[2]), m.string in confirmed) for m in found)


def unconfirmed(files: list[str]) -> list[str]:
    """The files of segments, in a listing, that have no ``.ok``: usually very few of very many."""
    marked = {f"{name[:-3]}.arrow" for name in files if name.endswith(".ok")}
    return [name for name in files if name.endswith(".arrow") and name not in marked]


def batch_name(seq: int) -> str:
    """Sorts as the numbers do."""
    return f"{seq:012d}"


def leading_number(name: str) -> int:
    """The batch or epoch that a file belongs to; -1 for a name that is not ours."""
    digits = re.match(r"\d+", name)
    return int(digits.group()) if digits else -1


def to_json(value: Any) -> bytes:
    """Encode a value as the small files are written."""
    return json.dumps(value, separators=(",", ":")).encode()


def read_json(store: SegmentStore, name: str) -> Any:
    """The content of a small file, None if it is not there. Raises StoreError, naming the file, for anything else."""
    content = store.get(name)
    if content is None:
        return None
    try:
        value = json.loads(content)
    except ValueError as error:
        raise StoreError(f"{store.location}/{name} is damaged: {error}; restore walLocation from a copy") from error
    if not isinstance(value, dict):
        raise StoreError(f"{store.location}/{name} is damaged: {content[:40]!r}; restore walLocation from a copy")
    return value
