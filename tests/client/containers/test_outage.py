"""An outage of what handlers need: by threads and by tasks, on the embedded broker by each protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from tests.client.shell import SOON, eventually
from tests.conformance.blocking import Shell

from redelivery import Message, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

DEAD = "dead"
DOWN = "the database is down"
OPTIONS: dict[str, Any] = {
    "redelivery_policy": RedeliveryPolicy(initial_redelivery_delay=0.0, redelivery_delay=0.0, maximum_redeliveries=3),
    "dead_letter_strategy": SharedDeadLetterStrategy(dead_letter_queue=DEAD),
}


class Works:
    """A container whose handler's calls return or raise when the test says so."""

    def __init__(self, broker: EmbeddedBroker, url: str, shell: Shell) -> None:
        self.broker, self.url, self.shell = broker, url, shell
        self.calls: list[tuple[Message, Future[None]]] = []
        self.asked = 0  # how often workers have asked whether they may take a message
        self.healed = False
        self.lock = threading.Lock()  # guards `calls` and `healed`
        self.container: Any

    def handle(self, message: Message) -> None:
        self._call(message).result(SOON)

    def _call(self, message: Message) -> Future[None]:
        ended: Future[None] = Future()
        with self.lock:
            self.calls.append((message, ended))
            if self.healed:
                ended.set_result(None)
        return ended

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.broker.send("orders", body)

    def entered(self, calls: int) -> None:
        """So many calls, and no more, however often the other workers ask."""
        eventually(lambda: len(self.calls) >= calls)
        asked = self.asked
        eventually(lambda: self.asked >= asked + 10)
        assert len(self.calls) == calls

    def fail(self, *calls: int) -> None:
        for number in calls:
            self.calls[number][1].set_exception(OSError(DOWN))

    def succeed(self, *calls: int) -> None:
        for number in calls:
            self.calls[number][1].set_result(None)

    def in_flight(self, number: int) -> None:
        eventually(lambda: self.container.counters.in_flight == number)

    def heal(self) -> None:
        """From now on every call returns at once."""
        with self.lock:
            self.healed = True
            for _, ended in self.calls:
                if not ended.done():
                    ended.set_result(None)

    def counts(self) -> dict[Any, list[int]]:
        """The delivery counts of each message, in order."""
        found: dict[Any, list[int]] = {}
        for message, _ in self.calls:
            found.setdefault(message.body, []).append(message.delivery_count)
        return found

    def done(self) -> None:
        eventually(lambda: self.broker.queue_depth("orders") == 0)
        assert self.broker.messages(DEAD) == []

    def done_but_for_dead(self, letters: int) -> None:
        eventually(lambda: len(self.broker.messages(DEAD)) == letters and self.broker.queue_depth("orders") == 0)

    def play_at_once(self, script: Callable[[], None], fails: Callable[[Any], bool], **options: Any) -> None:
        """`play`, where a call fails or returns at once, by its body."""
        answer = self._call

        def answered(message: Message) -> Future[None]:
            ended = answer(message)
            if not ended.done():
                if fails(message.body):
                    ended.set_exception(OSError(DOWN))
                else:
                    ended.set_result(None)
            return ended

        self._call = answered  # type: ignore[method-assign]  # for this play
        self.play(script, **options)

    def play(self, script: Callable[[], None], **options: Any) -> None:
        """Run the script while the container runs."""
        with self.shell.connect(self.url, **OPTIONS) as connection:
            container = connection.listener_container("orders", self.handle, **options)
            self._watch(container)
            with container:
                try:
                    script()
                finally:
                    self.heal()

    def _watch(self, container: Any) -> None:
        self.container = container
        permit = container._plan.permit

        def watched(now: float, worker: Any) -> Any:
            self.asked += 1
            return permit(now, worker)

        container._plan.permit = watched


@pytest.fixture
def works(served: tuple[EmbeddedBroker, str], shell: Shell) -> Works:
    return Works(*served, shell)


def test_the_consuming_stops_and_no_message_is_burnt(works: Works, caplog: pytest.LogCaptureFixture) -> None:
    def script() -> None:
        for call in range(30):
            eventually(lambda call=call: len(works.calls) > call)  # type: ignore[misc]  # its default is an int
            works.fail(call)
        eventually(lambda: len(works.calls) > 30)
        assert not works.container.healthy
        outage = works.container.outage
        assert (outage.failures, str(outage.cause)) == (3, DOWN)
        assert outage.since.tzinfo is not None
        works.heal()
        works.done()
        eventually(lambda: works.container.healthy)
        assert works.container.outage is None

    works.send(*"abcde")
    works.play(script, outage_after=3, probe_interval=0.01, outage_on=OSError)
    probed = [message.body for message, _ in works.calls[9:30]]
    assert probed[:5] == list("deabc")  # another one each time, in turn
    assert max(max(counts) for counts in works.counts().values()) <= 4  # of three redeliveries: none is counted beyond
    said = [each.getMessage() for each in caplog.records if "outage since" in each.getMessage()]
    assert [each.levelname for each in caplog.records if "outage since" in each.getMessage()] == ["WARNING"]
    assert f"3 messages in a row failed, the last by OSError: {DOWN}; one is tried every 0.01 s" in said[0]


def test_what_is_not_named_is_poison_and_no_outage(works: Works) -> None:
    def script() -> None:
        works.done_but_for_dead(8)
        assert works.container.counters.failed == 8 * 4
        assert works.container.healthy

    works.send(*"abcdefgh", "good")
    works.play_at_once(script, lambda body: body != "good", outage_after=1, outage_on=KeyError)


@pytest.mark.parametrize("outage_on", [None, ConnectionError, lambda error: DOWN not in str(error)])
def test_without_a_word_of_it_there_is_no_outage(works: Works, outage_on: Any) -> None:
    works.send(*"abcdefgh", "good")
    works.play_at_once(lambda: works.done_but_for_dead(8), lambda body: body != "good", outage_on=outage_on)


@pytest.mark.parametrize("after", [1, 2, 10])
def test_one_that_always_fails_as_in_an_outage_holds_nobody_and_is_dead_in_the_end(works: Works, after: int) -> None:
    works.send("sick", *map(str, range(20)))
    works.play_at_once(
        lambda: works.done_but_for_dead(1),
        lambda body: body == "sick",
        outage_on=Exception,
        outage_after=after,
        probe_interval=0.01,
    )
    assert max(works.counts()["sick"]) == 4
    assert {body for body, counts in works.counts().items() if counts != [1]} == {"sick"}


def test_a_few_that_fail_as_in_an_outage_and_are_alone_are_dead_in_the_end(works: Works) -> None:
    works.send("sick", "ill")
    works.play_at_once(lambda: works.done_but_for_dead(2), lambda _: True, outage_on=Exception, outage_after=3)


def test_failures_of_one_message_count_once(works: Works) -> None:
    def script() -> None:
        for call in range(3):
            eventually(lambda call=call: len(works.calls) > call)  # type: ignore[misc]  # its default is an int
            works.fail(call)
        eventually(lambda: len(works.calls) == 4)
        assert works.container.healthy
        works.heal()
        works.done()

    works.send("a", "b")
    works.play(script, outage_after=2, outage_on=OSError)
    assert works.counts() == {"a": [1, 2, 3, 4], "b": [1]}


def test_of_many_workers_one_at_a_time_probes(works: Works) -> None:
    def script() -> None:
        eventually(lambda: len(works.calls) == 6)
        works.fail(0)
        eventually(lambda: len(works.calls) == 7)  # the probe
        works.fail(1, 2, 3)
        works.succeed(4, 5)
        works.in_flight(1)
        works.entered(7)  # what the others had in hand is no news of the probe
        assert not works.container.healthy
        works.fail(6)
        works.entered(8)
        works.fail(7)
        works.entered(9)
        works.succeed(8)
        eventually(lambda: works.container.healthy)
        works.heal()
        works.done()

    works.send(*map(str, range(12)))
    works.play(script, concurrency=6, prefetch=1, outage_after=1, probe_interval=0.01, outage_on=OSError)
    assert {tuple(set(counts)) for counts in works.counts().values()} == {(1,)}  # nothing has counted
    probes = [message.body for message, _ in works.calls[6:9]]
    assert len(set(probes)) == 3


def test_who_waits_for_a_message_when_it_begins_handles_none(works: Works) -> None:
    def script() -> None:
        eventually(lambda: works.asked >= 2)
        works.send("a")
        eventually(lambda: len(works.calls) == 1)
        works.fail(0)
        eventually(lambda: len(works.calls) == 2)  # the probe
        works.send("b")
        works.entered(2)
        works.succeed(1)
        works.heal()
        works.done()

    works.play(script, concurrency=2, prefetch=1, outage_after=1, probe_interval=0.01, outage_on=(KeyError, OSError))
    assert works.counts() == {"a": [1, 1], "b": [1]}


def test_a_deadline_does_not_end_in_an_outage(works: Works) -> None:
    def script() -> None:
        for call in range(10):
            eventually(lambda call=call: len(works.calls) > call)  # type: ignore[misc]  # its default is an int
            works.fail(call)
        eventually(lambda: len(works.calls) > 10)
        works.heal()
        works.done()

    works.send("a", "b")
    works.play(script, outage_after=1, probe_interval=0.01, outage_on=OSError, deadline=0.001)


def test_a_new_session_does_not_begin_the_turn_anew(works: Works) -> None:
    works.send("sick", *"abc")
    works.play_at_once(
        lambda: works.done_but_for_dead(1),
        lambda body: body == "sick",
        outage_on=Exception,
        outage_after=1,
        probe_interval=0.01,
        max_messages_per_task=1,
    )


def test_an_outage_on_that_raises_names_nothing(works: Works, caplog: pytest.LogCaptureFixture) -> None:
    def outage_on(error: Exception) -> bool:
        raise KeyError(error)

    works.send("sick", "good")
    works.play_at_once(
        lambda: works.done_but_for_dead(1), lambda body: body == "sick", outage_on=outage_on, outage_after=1
    )
    assert "outage_on raised" in caplog.text


def test_its_health_says_how_often_what_is_in_hand_was_tried(works: Works) -> None:
    def script() -> None:
        assert works.container.attempts == 0
        works.send("a")
        for call in range(3):
            eventually(lambda call=call: len(works.calls) > call)  # type: ignore[misc]  # its default is an int
            assert works.container.attempts == call + 1
            if call < 2:
                works.fail(call)
        works.heal()
        eventually(lambda: works.container.attempts == 0)

    works.play(script)
