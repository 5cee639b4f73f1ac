"""Segments that are gone, cut off or empty although Spark still needs them: found before a batch is planned with them.

The numbers of `receiver=driver` are a chain, so one that is missing shows by the next one. A part of a batch of
`receiver=executor` may be missing because its task never ran, but not if its ``.ok`` is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from redelivery.model.errors import JMSError
from redelivery.spark.log.names import SegmentName
from redelivery.spark.log.segments import Extent, segment_extent
from redelivery.spark.log.store.interface import DamagedError, Tombstone
from redelivery.spark.log.wal import Wal

__all__ = ["DataLossError", "Survey", "loss", "survey_batch", "survey_chain"]


class DataLossError(JMSError):
    """A segment that Spark asks for is gone or damaged; its messages were taken from the broker."""


class Survey:
    """The segments that are expected: ``found`` by number (or part), and ``lost``, with the problem of each.

    ``unmarked``: of all that were there, those whose session is not known to have committed.
    """

    def __init__(
        self, wal: Wal, names: Iterable[tuple[int, SegmentName]], unmarked: Sequence[SegmentName] = ()
    ) -> None:
        self.unmarked = unmarked
        self.found: dict[int, Extent] = {}
        self.lost: dict[int, str] = {}
        for number, name in names:
            problem = self._examine(wal, number, name)
            if problem:
                self.lost[number] = f"{wal.store.location}/{name.data} {problem}"

    def _examine(self, wal: Wal, number: int, name: SegmentName) -> str:
        try:
            reader = wal.reader(name.seq, name.part)
            if reader is None:
                return "is gone"
            self.found[number] = segment_extent(reader)
        except Tombstone:
            return "is empty"
        except DamagedError as error:
            return f"is damaged ({error})"
        return ""


def survey_chain(wal: Wal, seq: int) -> Survey:
    """The segments behind ``seq`` of receiver=driver. Raises StoreError where the store fails."""
    traces = wal.traces()
    last = max((each.seq for each in traces), default=0)
    names = ((number, SegmentName(number, 0)) for number in range(seq + 1, last + 1))
    return Survey(wal, names, [each for each in traces if not each.ok])


def survey_batch(wal: Wal, seq: int) -> Survey:
    """The parts of a batch of receiver=executor that was not committed. Raises StoreError where the store fails."""
    return Survey(wal, ((each.part, each) for each in wal.traces() if each.seq == seq))


def loss(lost: Mapping[int, str]) -> str:
    """In one sentence, with the first one's file."""
    first = lost[min(lost)]
    others = f", and {len(lost) - 1} more segments are gone or damaged" if len(lost) > 1 else ""
    return (
        f"{first}{others}; its messages are no longer at the broker: restore it from a copy, or set "
        "failOnDataLoss=false to go on without it"
    )
