"""Ctrl-C while the housekeeping thread is asked for something: asked again, it does it."""

from __future__ import annotations

import threading

from tests.client.interrupts import interrupted, named, places
from tests.transports.scripted import TIMEOUT

from redelivery.transports.runtime import Task
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.threads.guard import uninterruptible
from redelivery.transports.wire.threads.housekeeping import Housekeeper


class Owned:
    """Who keeps the thread."""

    def orphan(self) -> None:
        """Nothing to forget."""


def test_a_task_is_called_though_the_first_request_was_interrupted() -> None:
    keeper, owner = Housekeeper(), Owned()
    keeper.enter(owner)
    keeper.at(monotonic(), lambda _: None)  # the thread is there

    @uninterruptible  # as all that asks it
    def request(task: threading.Event, seconds: float) -> None:
        def run(_: float) -> None:
            task.set()

        tasks[task] = tasks.get(task, run)
        keeper.at(monotonic() + seconds, tasks[task])

    tasks: dict[threading.Event, Task] = {}
    came = 0
    for place in places(lambda: request(threading.Event(), 0.0)):
        task = threading.Event()
        came += interrupted(place, lambda task=task: request(task, 0.0))  # type: ignore[misc]  # bound at once
        request(task, 0.001)  # later: what was noted of the first must not forbid it
        assert task.wait(TIMEOUT), f"not called after an interrupt at {named(place)}"
    assert came > 2  # Python 3.12 looks at fewer places than 3.11
    keeper.leave(owner, watches=())
