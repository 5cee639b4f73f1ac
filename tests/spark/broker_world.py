"""A queue that gives its messages back when a session dies, and the steps of an attempt that makes them a segment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tests.spark.wal_world import data, ids_of

from redelivery.spark.store import Tombstone
from redelivery.spark.wal import FencedError, Wal


class Queue:
    """Messages are only ids. What a closed session held comes again, first in the queue and flagged as redelivered.

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
        """What was delivered and may be delivered again."""
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


def fresh_ids(wal: Wal, session: Session, most: int) -> list[str]:
    """Receive, and drop what stands in a segment already."""
    messages = session.receive(most)
    doubt = wal.in_doubt_ids() if any(redelivered for _, redelivered in messages) else frozenset()
    return [each for each, redelivered in messages if not (redelivered and each in doubt)]


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


def receive_on(wal: Wal, queue: Queue, head: int, epoch: int, pause: Callable[[], None]) -> None:
    """A runner's receiver (receiver=driver), until the queue is empty. Raises FencedError."""
    while True:
        session = queue.session()
        try:
            pause()
            ids = fresh_ids(wal, session, 2)
            if not ids and not queue.waiting and not session.holds:
                return
            pause()
            if ids:
                content = data(f"segment-{next(_names)}", *ids)
                head += 1
                while not wal.publish(head, 0, content):
                    head += 1
                pause()
                wal.check_epoch(epoch)
            pause()
            session.commit()
            pause()
            if ids:
                wal.confirm(head, 0)
        finally:
            session.close()
