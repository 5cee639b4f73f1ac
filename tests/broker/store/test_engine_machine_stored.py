"""The engine's machine with a store: what the journal holds is at each step what the engine holds, and it is the same
engine after a restart. Only two messages of a queue are kept in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.broker.engine.lives import DEAD
from tests.broker.test_engine_machine import QUEUES, EngineMachine
from tests.run import forms

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.store.schema import PLACE
from redelivery.broker.store.sqlite import PURGED, SqliteStore

IN_MEMORY = 2


class AtOnce(deque[tuple[int, Dispatch]]):
    """Lets consumers see what they are given without a sync, as the machine expects it."""

    def append(self, given: tuple[int, Dispatch]) -> None:
        dispatch = given[1]
        dispatch.subscription.undelivered -= 1
        dispatch.subscription.outbox.append(dispatch)


class StoredMachine(EngineMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self._open()

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    @rule()
    def sync(self) -> None:
        self.store.write(self.store.take())

    @rule()
    def purge(self) -> None:
        self.store._unpurged = PURGED
        self.sync()

    @precondition(lambda self: not self.live and not self.open)
    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            self.engine.count_seen()
        self.store.close()
        self._open()

    def _open(self) -> None:
        self.store = SqliteStore(self.folder / "store.db", synchronous="off", window=IN_MEMORY)
        self.engine = Engine(BrokerConfig(), None, self.store)
        self.engine._state.given = AtOnce()
        self.engine.restore(self.store.restore(), self.now)

    def the_observer_knows_where_each_is(self) -> None:
        """Instead: the journal does."""
        for name in (*QUEUES, DEAD):
            held = self.engine.entries(name)
            kept = self.store.page(name, 0, PLACE) if name in self.store._queues else []
            assert [entry.message for entry in kept] == [entry.message for entry in held]
            assert [entry.order for entry in kept] == [entry.order for entry in held]
            if not self.store._batch.counted:
                assert [entry.redeliveries for entry in kept] == [entry.redeliveries for entry in held]

    def every_message_is_in_one_place(self) -> None:
        """What is behind waits as well."""
        self._note_expired()
        for name in (*QUEUES, DEAD):
            here = sorted(int(entry.message.message_id.removeprefix("ID:")) for entry in self.engine.entries(name))
            assert here == sorted(number for number, home in self.home.items() if home == name)
            assert self.engine.depth(name) == len(here)

    def nobody_waits_in_vain(self) -> None:
        super().nobody_waits_in_vain()
        for consumer in self.live:
            if self.engine.queues[consumer.queue].on_disk:
                assert len(consumer.held.keys() - consumer.free) == consumer.prefetch

    def memory_is_what_is_there(self) -> None:
        """Only what is in memory counts."""
        queues = [self.engine.queues[name] for name in (*QUEUES, DEAD) if name in self.engine.queues]
        there = sum(entry.message.size for queue in queues for entry in queue.entries.values())
        assert self.engine.memory_used == there


StoredMachine.TestCase.settings = settings(max_examples=forms.examples(25), stateful_step_count=60, deadline=None)
TestStoredEngine = pytest.mark.timeout(300)(StoredMachine.TestCase)  # as the engine's machine
