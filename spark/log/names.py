"""The files under walLocation, and their names. Each is created once and never changed, until it is deleted.

_wal.json                        {"v", "wal"}: the identity that every offset names
seg/<seq>-<part>.arrow           a segment; an empty one is a tombstone
seg/<seq>-<part>.<rows>-<bytes>-<length>.ok
                                 the session that received the segment is known to have committed; its rows, their
                                 bytes and those of its file stand in the name, so that a listing says what is pending
seg/<seq>-<part>.ok              the same of receiver=executor, {"attempt", "rows"}; version 2: empty, of both
heads/<seq>-<part>.head          a session is about to commit the segment: it was there, whatever becomes of its files
lost/<seq>-<part>                a task has gone on without the segment (failOnDataLoss=false)
doubt/<seq>-<part>.json          {"since", "keys"}: messages of a committed batch that the broker may redeliver; a
                                 key is [message id or null, digest]. Version 1 had {"since", "ids"}
commits/<seq>.json               the batch is committed; {part: attempt}: the segments that it was made of
plans/<seq>                      a query of receiver=executor has planned the batch, or begins behind it
epochs/<epoch>.json              {"owner", …}: which query has taken the location, the highest number rules
epochs/<epoch>.left              that query has ended
attempts/<seq>-<number>          Spark has planned the batch once more
quarantine/<seq>                 the batch's messages are dead letters
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from redelivery.spark.log.store.interface import SegmentStore, StoreError

IDENTITY: Final = "_wal.json"
SEGMENTS: Final = "seg"
HEADS: Final = "heads"
LOST: Final = "lost"
IN_DOUBT: Final = "doubt"
COMMITS: Final = "commits"
PLANS: Final = "plans"
EPOCHS: Final = "epochs"
ATTEMPTS: Final = "attempts"
QUARANTINE: Final = "quarantine"
FOLDERS: Final = (SEGMENTS, HEADS, LOST, IN_DOUBT, COMMITS, PLANS, EPOCHS, ATTEMPTS, QUARANTINE)

_KEY: Final = re.compile(r"\d+-\d+")
_SAID: Final = re.compile(r"(\d+)-(\d+)-(\d+)\.ok")


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a segment: rows, and their bytes before compression. ``length``: of its file; 0: not known."""

    rows: int = 0
    size: int = 0
    length: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """A segment (or tombstone); ``ok``: its session is known to have committed.

    ``extent``: None where its mark does not say it. ``length``: of the file as it was listed; None: it is not there.
    """

    seq: int
    part: int
    ok: bool = False
    extent: Extent | None = field(default=None, compare=False)
    length: int | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The part that its files' names have in common; sorts as the numbers do."""
        return f"{self.seq:012d}-{self.part:04d}"

    @property
    def data(self) -> str:
        """The file with the rows."""
        return f"{SEGMENTS}/{self.key}.arrow"

    @property
    def head(self) -> str:
        """The file that says that it was there."""
        return f"{HEADS}/{self.key}.head"

    @property
    def mark(self) -> str:
        """The file that says ``ok``."""
        said = "" if self.extent is None else f".{self.extent.rows}-{self.extent.size}-{self.extent.length}"
        return f"{SEGMENTS}/{self.key}{said}.ok"


def segment_names(files: Iterable[str] | Mapping[str, int], *, lost: bool = False) -> list[SegmentName]:
    """The segments of a listing, in order; ``lost``: with those of which only the ``.ok`` or ``.head`` is there.

    ``files``: names in the folder; a mapping has the bytes of each.
    """
    sizes = files if isinstance(files, Mapping) else dict.fromkeys(files, -1)
    lengths: dict[str, int] = {}
    marks: dict[str, str] = {}
    heads: set[str] = set()
    for name, size in sizes.items():
        key, _, rest = name.partition(".")
        if rest == "arrow":
            lengths[key] = size
        elif rest.endswith("ok"):
            marks[key] = max(rest, marks.get(key, ""))
        elif rest == "head":
            heads.add(key)
    names = []
    for key in sorted(lengths.keys() | marks.keys() | heads if lost else lengths):
        if _KEY.fullmatch(key):
            seq, _, part = key.partition("-")
            names.append(SegmentName(int(seq), int(part), key in marks, _extent(marks.get(key)), lengths.get(key)))
    return names


def _extent(mark: str | None) -> Extent | None:
    """As a mark's name says it after the key; None: it does not."""
    found = _SAID.fullmatch(mark) if mark and mark != "ok" else None
    return Extent(*map(int, found.groups())) if found else None


def unconfirmed(files: Collection[str]) -> list[str]:
    """The files of segments, in a listing, that have no ``.ok``: usually very few of very many."""
    marked = {f"{name.partition('.')[0]}.arrow" for name in files if name.endswith(".ok")}
    return [name for name in files if name.endswith(".arrow") and name not in marked]


def numbers_of(key: str) -> tuple[int, int]:
    """The batch and the part of `SegmentName.key`."""
    seq, _, part = key.partition("-")
    return int(seq), int(part)


def prefix_of(first: int, last: int) -> str:
    """The beginning that the names of all batches from ``first`` to ``last`` have in common."""
    names = zip(batch_name(first), batch_name(last), strict=False)
    return "".join(one for one, _ in takewhile(lambda each: each[0] == each[1], names))


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
