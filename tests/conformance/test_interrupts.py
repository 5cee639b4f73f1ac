"""Ctrl-C at random moments of public calls, again and again: each session goes on, and nothing is lost.

`tests/client/test_session_interrupts_everywhere.py` has every place of a call in turn, on the embedded broker; here a
timer decides, so that waits, writes and answers of each broker are met as well.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from types import FrameType
from typing import Any, Final, TypeVar

import pytest
from tests.conformance.outage import Counted
from tests.conformance.stage import Stage
from tests.run.forms import brief

from redelivery import AckMode, ConnectionLostError, Message, RedeliveryPolicy, Session

INTERRUPTS: Final = 10 if brief() else 400
A_SESSION: Final = 40  # interrupts, and then another one
SEED: Final = 3
pytestmark = [pytest.mark.everywhere_in_long_form, pytest.mark.timeout(240, method="thread")]  # the other has our timer
T = TypeVar("T")
FOR_EVER: Final = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0, redelivery_delay=0)
# How often the connection may be lost in 400: brokers whose AMQP is proton-j answer a drain that a close did not wait
# for when the session has ended, on a channel that does not exist (65535), which ends the connection.
MAY_BE_LOST: Final = {"amqp-activemq": 3, "amqp-activemq6": 3, "amqp-artemis": 3}


class Timer:
    """Raises KeyboardInterrupt within a call, at a moment of the time that it takes by experience."""

    def __init__(self) -> None:
        self._rng = random.Random(SEED)  # noqa: S311  # no secret
        self._armed = False
        self._took: dict[str, float] = {}
        self.came: Counter[str] = Counter()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise KeyboardInterrupt

    @property
    def total(self) -> int:
        return sum(self.came.values())

    def chance(self, of: float) -> bool:
        return self._rng.random() < of

    def ends(self, name: str, call: Callable[[], T]) -> tuple[bool, T | None]:
        """Whether the call has returned, and what; if not, it was interrupted."""
        began = perf_counter()
        try:
            self._armed = True
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, self._rng.uniform(0, 1.3 * self._took.get(name, 0.001))))
            result = call()
            self._armed = False
        except KeyboardInterrupt:
            self.came[name] += 1
            return False, None
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._took[name] = (3 * self._took.get(name, 0.001) + min(perf_counter() - began, 0.01)) / 4
        return True, result


@pytest.fixture
def timer() -> Iterator[Timer]:
    made = Timer()
    before = signal.signal(signal.SIGALRM, made)
    try:
        yield made
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Account:
    """What became of each body, as far as the program was told."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.doubted: set[str] = set()  # the call that would have told was interrupted
        self.received: Counter[str] = Counter()  # and committed or acknowledged
        self.in_hand: set[str] = set()  # received, and neither


def work(session: Session, queue: str, timer: Timer, account: Account, numbers: Iterator[int]) -> None:
    """Units of work, the calls of which are interrupted; whatever else they raise fails the test."""
    producer, consumer = session.producer(queue), session.consumer(queue, prefetch=20)
    undo = session.rollback if session.transacted else session.recover
    end = session.commit if session.transacted else session.acknowledge
    until = min(timer.total + A_SESSION, INTERRUPTS)
    while timer.total < until:
        sent: set[str] = set()
        for body in (f"u{next(numbers)}" for _ in range(3)):
            ended, _ = timer.ends("send", lambda body=body: producer.send(body))  # type: ignore[misc]  # bound at once
            (sent if ended else account.doubted).add(body)
        held: list[Message] = []
        for _ in range(4):
            _, message = timer.ends("receive", lambda: consumer.receive(0.02))
            held += [message] if message is not None else []
            account.in_hand.update([str(message.body)] if message is not None else [])
        bodies = [str(message.body) for message in held]
        if session.ack_mode is AckMode.AUTO:
            account.sent |= sent
            account.received.update(bodies)
        elif timer.chance(0.3):
            ended, _ = timer.ends("undo", undo)
            if not ended:
                undo()
            (account.doubted if session.transacted else account.sent).update(sent)
        else:
            ended, _ = timer.ends("end", end)
            if ended:
                account.sent |= sent
                account.received.update(bodies)
            else:
                account.doubted |= sent | set(bodies)
                undo()
        account.in_hand.clear()
    if session.ack_mode is AckMode.AUTO:  # what an interrupted receive has acknowledged is this session's next
        while (kept := consumer.receive(0.05)) is not None:
            account.received[str(kept.body)] += 1


def closes(timer: Timer, close: Callable[[], None]) -> None:
    """An interrupted close can be made once more."""
    if not timer.ends("close", close)[0]:
        close()


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.AUTO], ids=lambda mode: mode.name)
def test_each_session_goes_on_and_nothing_is_lost(
    stage: Stage, timer: Timer, mode: AckMode, record_property: Callable[[str, object], None]
) -> None:
    # no `Lives`: an interrupt may end a call between what happens and its event
    options: dict[str, Any] = {"observer": Counted(), "redelivery_policy": FOR_EVER}
    connection, lost = None, 0
    account, numbers = Account(), iter(range(1_000_000))
    while timer.total < INTERRUPTS:
        connection = connection or stage.connect(request_timeout=5.0, close_timeout=4.0, **options)
        try:
            session = connection.session(mode)
            work(session, stage.queue, timer, account, numbers)
            closes(timer, session.close)
        except ConnectionLostError as error:
            account.doubted |= account.in_hand
            connection, lost = None, lost + 1
            print(error)
    assert lost <= MAY_BE_LOST.get(stage.pair.kind.name, 0), "interrupts ended the connection"
    if connection is not None:
        connection.close()
    expected = account.sent - account.doubted - account.received.keys()
    left = set(map(str, stage.left_bodies(at_least=len(expected))))
    text = f"{timer.total} interrupts {dict(timer.came)}, {lost} connections lost: "
    text += f"{len(account.sent)} sent, {len(account.received)} received"
    record_property("interrupts", text)
    assert expected <= left, text
    if session.transacted:
        assert not left & account.received.keys(), text
        assert set(account.received.values()) <= {1}, text
