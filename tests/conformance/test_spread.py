"""A container's workers share what is there: one that is busy holds nothing that another could handle."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from tests.conformance.blocking import Shell
from tests.conformance.stage import QUICK, SOON, Stage, numbered

from redelivery import Message, RedeliveryPolicy, Session

WORKERS, BACKLOG = 4, 40
NO_WINDOW = "stomp-hornetq"  # no client can set it: a consumer is sent 10 KiB ahead
LARGE = 12_000  # bytes: more than that


class Work:
    """All workers meet at their first message, and one of them keeps its own until all others are handled."""

    def __init__(self, stage: Stage, messages: int = BACKLOG, *, to: str | None = None, late: bool = False) -> None:
        self._stage = stage
        self._to = to
        self._messages = messages
        self._small = stage.pair.kind.name != NO_WINDOW
        self._late = late
        self.mode = "transacted" if stage.pair.can("transactions") else "client"
        self.others = messages - 1
        self.handled: list[str] = []
        self.spread = False  # the one that was kept could wait for all others
        if not self._late:
            self._send()

    def _send(self) -> None:
        padding = "" if self._small else "-" * LARGE
        self._stage.send(*[number + padding for number in numbered(self._messages)], queue=self._to)

    def started(self) -> None:
        """The workers consume."""
        if self._late:
            self._send()

    @property
    def done(self) -> bool:
        return len(self.handled) > self.others


def play(
    stage: Stage,
    shell: Shell,
    work: Work,
    *,
    containers: int = 1,
    concurrency: int = 1,
    source: str | None = None,
    **options: Any,
) -> None:
    meet = threading.Barrier(containers * concurrency, timeout=SOON)
    first, rest, all_done = threading.Semaphore(1), threading.Event(), threading.Event()
    seen: set[Session] = set()  # one of each worker's

    def handle(message: Message, session: Session) -> None:
        if session not in seen:
            seen.add(session)
            meet.wait()
            if first.acquire(blocking=False):
                work.spread = rest.wait(SOON)
        work.handled.append(message.body.rstrip("-"))
        if len(work.handled) == work.others:
            rest.set()
        if work.done:
            all_done.set()

    with ExitStack() as opened:
        for _ in range(containers):
            own = {"redelivery_policy": QUICK}
            connection: Any = shell.connect(stage.pair.url, **own) if shell.tasks else stage.connect()
            options |= {"ack_mode": work.mode, "concurrency": concurrency}
            opened.enter_context(connection.listener_container(source or stage.queue, handle, **options))
        work.started()
        assert all_done.wait(2 * SOON), f"{len(work.handled)} were handled"


@pytest.fixture
def run(stage: Stage, shell: Shell) -> Any:
    return partial(play, stage, shell)


@pytest.mark.parametrize("options", [{}, {"prefetch": 0}], ids=["as it is", "prefetch=0"])
def test_a_backlog_is_spread_and_a_slow_message_holds_nobody(stage: Stage, run: Any, options: dict[str, int]) -> None:
    work = Work(stage)
    run(work, concurrency=WORKERS, **options)
    assert work.spread
    assert sorted(work.handled) == numbered(BACKLOG)
    assert stage.left() == []


def test_with_a_prefetch_of_0_one_worker_holds_the_message_that_it_handles_and_no_other(stage: Stage, run: Any) -> None:
    """Two containers of one worker each, as two processes would have; the order in which they begin is free."""
    work = Work(stage, 10)
    run(work, containers=2, prefetch=0)
    assert work.spread
    assert sorted(work.handled) == numbered(10)
    assert stage.left() == []


@pytest.mark.parametrize(("prefetch", "failing"), [(0, 5), (4, 8)])
def test_what_waits_for_its_redelivery_without_blocking_holds_nobody(stage: Stage, prefetch: int, failing: int) -> None:
    handled: list[str] = []
    all_done = threading.Event()
    policy = RedeliveryPolicy(initial_redelivery_delay=1.5, maximum_redeliveries=3)

    def handle(message: Message) -> None:
        handled.append(message.body.rstrip("-"))
        if len(handled) <= failing:
            raise ValueError("once more")
        if len(handled) == 20 + failing:
            all_done.set()

    work = Work(stage, 20)
    connection = stage.connect(redelivery_policy=policy, non_blocking_redelivery=True)
    with connection.listener_container(stage.queue, handle, ack_mode=work.mode, prefetch=prefetch, outage_after=None):
        work.started()
        assert all_done.wait(2 * SOON), handled
    assert handled == [*numbered(20), *numbered(failing)]
    assert stage.left() == []


def test_nothing_is_lost_where_handlers_are_so_quick_that_more_comes_ahead(stage: Stage, run: Any) -> None:
    work = Work(stage, 150)
    run(work, concurrency=2)
    assert sorted(work.handled) == numbered(150)
    assert stage.left() == []


@pytest.mark.needs("shared subscriptions")
@pytest.mark.parametrize("options", [{}, {"prefetch": 0}], ids=["as it is", "prefetch=0"])
def test_so_is_what_a_shared_subscription_of_a_topic_keeps(stage: Stage, run: Any, options: dict[str, int]) -> None:
    topic = f"topic://{stage.queue}"
    work = Work(stage, to=topic, late=True)
    run(work, concurrency=WORKERS, source=topic, subscription="billing", shared=True, durable=False, **options)
    assert work.spread
    assert sorted(work.handled) == numbered(BACKLOG)


@pytest.mark.needs("queue patterns")
def test_so_are_the_queues_of_a_pattern(stage: Stage, run: Any) -> None:
    work = Work(stage, to=f"{stage.queue}.one")
    run(work, concurrency=WORKERS, source=f"{stage.queue}.>")
    assert work.spread
    assert sorted(work.handled) == numbered(BACKLOG)
    assert stage.left(f"{stage.queue}.one") == []
