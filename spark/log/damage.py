"""Segments that are gone, cut off or empty although Spark still needs them: found before a batch is planned with them.

The numbers of `receiver=driver` are a chain, so one that is missing shows by the next one. A part of a batch of
`receiver=executor` may be missing because its task never ran, but not if its ``.ok`` is there. The last one, or a part,
may be gone with its ``.ok``: that it was there stands in ``heads/`` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from redelivery.model.errors import JMSError
from redelivery.spark.log.names import SegmentName
from redelivery.spark.log.segments import Extent, segment_extent
from redelivery.spark.log.store.interface import DamagedError, Tombstone
from redelivery.spark.log.wal import Wal


class DataLossError(JMSError):
    """A segment that Spark asks for is gone or damaged; its messages were taken from the broker."""


class Survey:
    """The segments that are expected: ``found`` by number (or part), and ``lost`` by name, with the problem of each.

    ``unmarked``: of all that were there, those whose session is not known to have committed.
    """

    def __init__(
        self, wal: Wal, names: Iterable[tuple[int, SegmentName]], unmarked: Sequence[SegmentName] = ()
    ) -> None:
        self.unmarked = unmarked
        self.found: dict[int, Extent] = {}
        self.lost: dict[SegmentName, str] = {}
        for number, name in names:
            problem = self._examine(wal, number, name)
            if problem:
                self.lost[name] = f"{wal.store.location}/{name.data} {problem}"

    def _examine(self, wal: Wal, number: int, name: SegmentName) -> str:
        """The problem of a segment; only one whose mark does not say what it holds is opened."""
        said = name.extent
        if said is not None and name.length in (said.length, -1):
            self.found[number] = said
            return ""
        try:
            reader = None if name.length is None else wal.reader(name.seq, name.part)
            if reader is None:
                return "is gone"
            if said is not None:
                return f"is damaged (it has {name.length} bytes, and {said.length} were written)"
            self.found[number] = segment_extent(reader)
        except Tombstone:
            return "is empty"
        except DamagedError as error:
            return f"is damaged ({error})"
        return ""


def survey_chain(wal: Wal, seq: int, listed: Iterable[SegmentName] | None = None) -> Survey:
    """The segments behind ``seq`` of receiver=driver.

    ``listed``: by `Wal.survey`, as the query began; None: now. Raises StoreError where the store fails.
    """
    there = {each.seq: each for each in (wal.survey() if listed is None else listed)}
    numbers = range(seq + 1, max(there, default=0) + 1)
    names = ((number, there.get(number) or SegmentName(number, 0)) for number in numbers)
    return Survey(wal, names, [each for each in there.values() if not each.ok])


def survey_batch(wal: Wal, seq: int, listed: Iterable[SegmentName]) -> Survey:
    """The parts of a batch of receiver=executor that was not committed. See `survey_chain`."""
    return Survey(wal, ((each.part, each) for each in listed if each.seq == seq))


def older_copy(wal: Wal, seq: int, parts: int, last: int) -> dict[SegmentName, str]:
    """The problem of each part of a batch that the checkpoint names, where the log ends with the batch ``last``."""
    why = f"the checkpoint names batch {seq}, and the log ends with {last}, so walLocation is an older copy"
    names = [SegmentName(seq, part) for part in range(max(parts, 1))]
    return {name: f"{wal.store.location}/{name.data} is gone ({why})" for name in names}


def loss(lost: Mapping[SegmentName, str]) -> str:
    """In one sentence, with the first one's file."""
    first = lost[min(lost)]
    others = f", and {len(lost) - 1} more segments are gone or damaged" if len(lost) > 1 else ""
    return (
        f"{first}{others}; its messages are no longer at the broker: restore it from a copy, or set "
        "failOnDataLoss=false to go on without it"
    )
