"""When a message is redelivered: as the policy says, or when its handler has said, which at once is too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.client.shell import eventually
from tests.conformance.blocking import Shell

from redelivery import RedeliveryPolicy, Retry
from redelivery.broker import EmbeddedBroker
from redelivery.testing import fast_forward

HOUR = 3600.0
PATIENT = RedeliveryPolicy(initial_redelivery_delay=HOUR, redelivery_delay=HOUR, maximum_redeliveries=5)


class Works:
    """A container whose handler asks for a retry at the first delivery."""

    def __init__(self, broker: EmbeddedBroker, url: str, shell: Shell) -> None:
        self.broker, self.url, self.shell = broker, url, shell
        self.counts: list[int] = []
        self._options: dict[str, Any] = {"redelivery_policy": PATIENT}

    def _handle(self, message: Any, outcome: Retry, *, returned: bool) -> Retry | None:
        self.counts.append(message.delivery_count)
        if message.delivery_count > 1:
            return None
        if not returned:
            raise outcome
        return outcome

    def play(self, outcome: Retry, script: Callable[[], None], *, returned: bool) -> None:
        """Run the script while the container runs."""
        self.broker.send("orders", "once more")
        with (
            self.shell.connect(self.url) as connection,
            connection.listener_container(
                "orders", lambda message: self._handle(message, outcome, returned=returned), **self._options
            ),
        ):
            script()

    def handled(self) -> None:
        eventually(lambda: self.counts == [1, 2])
        eventually(lambda: self.broker.queue_depth("orders") == 0)

    def waits(self) -> None:
        eventually(lambda: self.counts == [1])
        assert not threading.Event().wait(0.1)
        assert self.counts == [1]


@pytest.fixture
def works(served: tuple[EmbeddedBroker, str], shell: Shell) -> Works:
    return Works(*served, shell)


@pytest.mark.parametrize("returned", [False, True], ids=["raised", "returned"])
@pytest.mark.parametrize("after", [0, 0.0, timedelta(0)])
def test_after_0_is_at_once(works: Works, after: float | timedelta, returned: bool) -> None:
    works.play(Retry("not yet", after=after), works.handled, returned=returned)


def test_without_a_time_it_is_as_the_policy_says(works: Works) -> None:
    with fast_forward(works.broker) as clock:

        def script() -> None:
            works.waits()
            clock.advance(HOUR)
            works.handled()

        works.play(Retry("not yet"), script, returned=False)


def test_after_a_time_it_is_then_and_not_as_the_policy_says(works: Works) -> None:
    with fast_forward(works.broker) as clock:

        def script() -> None:
            works.waits()
            clock.advance(60)
            works.handled()

        works.play(Retry("not yet", after=timedelta(minutes=1)), script, returned=False)
