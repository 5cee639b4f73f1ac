"""A queue that releases its messages when a session dies, and the steps of an attempt that makes them a segment."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tests.spark.wal_world import data, ids_of, keys

from redelivery.spark.log.chain import SegmentChain
from redelivery.spark.log.store.interface import Tombstone
from redelivery.spark.log.wal import FencedError, SegmentName, Wal
from redelivery.spark.read.receiving.duplicates import Duplicates, SegmentsInDoubt
from redelivery.spark.rows.digests import Key


class Queue:
    """Messages are only ids. What a closed session held is redelivered, first in the queue and flagged as redelivered.

    ``late``: only after `notice`, as from a broker that learns by a missing heartbeat that a client is gone.
    """

    def __init__(self, messages: int, *, late: bool = False) -> None:
        self.late = late
        self.unnoticed: list[str] = []
        self.all = [f"m{number}" for number in range(messages)]
        self.waiting = list(self.all)
        self.seen: set[str] = set()
        self.held: list[str] = []
        self.published: dict[str, list[str]] = {}  # by attempt

    def notice(self) -> None:
        self.waiting, self.unnoticed = self.unnoticed + self.waiting, []

    def session(self) -> Session:
        return Session(self)

    @property
    def unsettled(self) -> set[str]:
        """What was delivered and may be redelivered."""
        return {*self.waiting, *self.held, *self.unnoticed} & self.seen


class Session:
    """Transacted."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._held: list[str] = []

    def receive(self, most: int) -> list[tuple[str, bool]]:
        """(id, redelivered)"""
        queue = self._queue
        taken, queue.waiting = queue.waiting[:most], queue.waiting[most:]
        found = [(each, each in queue.seen) for each in taken]
        queue.seen.update(taken)
        queue.held += taken
        self._held += taken
        return found

    @property
    def holds(self) -> int:
        return len(self._held)

    def commit(self) -> None:
        for each in self._held:
            self._queue.held.remove(each)
        self._held = []

    def close(self) -> None:
        held = self._held
        self.commit()
        self._queue.unnoticed += held
        if not self._queue.late:
            self._queue.notice()


_names = itertools.count()


class _Known:
    """As a task asks the log."""

    def __init__(self, wal: Wal) -> None:
        self.in_doubt: Callable[[], Mapping[str, Sequence[Key]]] = lambda: {
            name: each.keys for name, each in wal.in_doubt().items()
        }
        self.confirmed = wal.confirmed


def fresh_ids(wal: Wal, session: Session, most: int, known: SegmentsInDoubt | None = None) -> list[str]:
    """Receive, and drop what stands in a segment already."""
    ids = [each for each, _ in session.receive(most)]
    places = Duplicates(known or _Known(wal), threading.Event(), patience=0).places(keys(*ids))
    return [each for place, each in enumerate(ids) if place not in places]


def attempt(
    wal: Wal, queue: Queue, seq: int, part: int, most: int, answer: Callable[[], bool] = lambda: True
) -> Iterator[list[str] | None]:
    """A task's attempt at one part (receiver=executor): None between its steps, at last the rows, unless it is fenced.

    ``answer``: whether the answer to the session's commit arrives.
    """
    try:
        if wal.reader(seq, part) is None:
            session = queue.session()
            try:
                yield None
                ids = fresh_ids(wal, session, most)
                name = f"attempt-{next(_names)}"
                queue.published[name] = ids
                yield None
                if wal.publish(seq, part, data(name, *ids)):
                    yield None
                    wal.check_published(seq, part, name)
                    yield None
                    session.commit()
                    yield None
                    if answer():
                        wal.confirm(seq, part)
            finally:
                session.close()
        yield None
        yield ids_of(wal, seq, part)
    except (FencedError, Tombstone):
        return


Beginning: TypeAlias = tuple[int, Sequence[SegmentName]]
"""The highest number of a segment, and those that have no mark."""


def beginning(wal: Wal, seq: int = 0) -> Beginning:
    """As a runner finds the log when it has taken its epoch."""
    segments = wal.segments()
    return max([seq, *(each.seq for each in segments), wal.watermark()]), [each for each in segments if not each.ok]


def receive_on(
    wal: Wal,
    queue: Queue,
    found: Beginning,
    epoch: int,
    pause: Callable[[], None],
    *,
    answer: Callable[[], bool] = lambda: True,
    batches: int = 10_000,
) -> None:
    """A runner's receiver (receiver=driver), until the queue is empty. Raises FencedError."""
    head, unmarked = found
    chain = SegmentChain(wal, head, check=lambda: wal.check_epoch(epoch), unmarked=unmarked)
    for _ in range(batches):
        session = queue.session()
        try:
            pause()
            ids = fresh_ids(wal, session, 2, chain)
            if not ids and not queue.waiting and not session.holds:
                return
            pause()
            number = 0
            if ids:
                published = chain.publish(data(f"segment-{next(_names)}", *ids), keys(*ids))
                if published is None:
                    continue
                number = published
                pause()
                wal.check_epoch(epoch)
            pause()
            session.commit()
            pause()
            if ids and answer():
                chain.confirm(number)
        finally:
            session.close()
