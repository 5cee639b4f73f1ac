"""Signals while a connection of threads is there: where they end a call, and what they leave behind."""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, Bench, eventually, receive
from tests.run.forms import brief

import redelivery
from redelivery import ConfigError, RedeliveryPolicy
from redelivery.events import ConnectionLost, Event, Sent
from redelivery.transports.wire.threads import guard
from redelivery.transports.wire.threads.guard import uninterruptible

SHOTS: Final = 100 if brief() else 5000
AT_ONCE: Final = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0, redelivery_delay=0)


@contextmanager
def handled(number: int, handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def leave(*_: object) -> None:
    sys.exit(3)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No connection that a fixture of another file still holds in this process has a part in it."""
    monkeypatch.setattr(guard, "_users", weakref.WeakSet[object]())
    with handled(signal.SIGINT, signal.default_int_handler):
        yield


def test_the_handlers_are_back_when_the_last_connection_is_closed(bench: Bench) -> None:
    with handled(signal.SIGUSR1, leave):
        first, second = bench.connect(), bench.connect()
        assert signal.getsignal(signal.SIGUSR1) is not leave
        first.close()
        assert signal.getsignal(signal.SIGUSR1) is not leave
        second.close()
        assert signal.getsignal(signal.SIGUSR1) is leave
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_set_meanwhile_stays(bench: Bench) -> None:
    connection = bench.connect()
    with handled(signal.SIGINT, leave):
        connection.close()
        assert signal.getsignal(signal.SIGINT) is leave
    # what `handled` has put back is the guard of a connection that is closed: it hands each signal on
    with bench.connect(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_interrupts_signals_are_left_alone(bench: Bench) -> None:
    with redelivery.connect(bench.broker.vm_url, interrupts=False) as connection, connection.session():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(ConfigError, match="interrupts"):
        redelivery.connect(bench.broker.vm_url, interrupts="no")  # type: ignore[arg-type]  # that is the test


def test_a_handler_that_was_set_before_ends_a_wait(bench: Bench) -> None:
    with handled(signal.SIGTERM, leave):
        _, consumer = bench.consuming()
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(SystemExit):
            consumer.receive(SOON)
        bench.send("after")
        assert receive(consumer).body == "after"


def test_what_comes_in_the_midst_of_a_step_is_raised_when_it_has_ended(bench: Bench) -> None:
    bench.connect()
    steps: list[str] = []

    def work() -> str:
        signal.raise_signal(signal.SIGINT)
        steps.append("all of it")
        return "done"

    with pytest.raises(KeyboardInterrupt):
        uninterruptible(work)()
    assert steps == ["all of it"]
    assert uninterruptible(lambda: "the next one")() == "the next one"


def test_a_signal_that_comes_while_another_is_noted_waits_as_well(bench: Bench) -> None:
    bench.connect()
    done: list[str] = []

    def signal_again(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is guard._protects.__code__:
            sys.setprofile(None)
            _thread.interrupt_main()

    def step() -> None:
        sys.setprofile(signal_again)
        signal.raise_signal(signal.SIGINT)
        done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        uninterruptible(step)()
    assert sys.getprofile() is None, "no second signal has come"
    assert done == ["whole"]
    assert uninterruptible(lambda: "once")() == "once", "two of a kind that wait are one, as Python has it"


def test_a_handler_that_was_set_later_ends_the_connection_and_tears_nothing(site: Site, opened: ExitStack) -> None:
    lost: list[Event] = []
    armed = [False]

    def observer(event: Event) -> None:
        if isinstance(event, ConnectionLost):
            lost.append(event)

    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=observer))
    session = connection.session()
    producer = session.producer("orders")
    producer.send("before")
    channel = session._core.epoch.channel
    send = type(channel).send

    def interrupted(*given: Any, **more: Any) -> None:
        send(*given, **more)
        if armed[0]:
            armed[0] = False
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch, handled(signal.SIGTERM, leave):
        patch.setattr(type(channel), "send", interrupted)
        armed[0] = True
        with pytest.raises(SystemExit):
            producer.send("interrupted")
    eventually(lambda: bool(lost))
    assert "signal handler" in str(lost[0])
    producer.send("after")
    bodies = [str(message.body) for message in site.broker.messages("orders")]
    assert bodies in (["before", "after"], ["before", "interrupted", "after"])


def test_an_observer_that_hangs_can_be_interrupted_and_what_it_looks_at_is_done(bench: Bench) -> None:
    def hangs(event: Event) -> None:
        if isinstance(event, Sent):
            threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
            time.sleep(SOON)

    main = threading.get_ident()
    with redelivery.connect(bench.broker.vm_url, observer=hangs) as connection:
        producer = connection.session().producer(bench.queue)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            producer.send("it is there")
        assert time.monotonic() - began < SOON / 2
    assert bench.left == ["it is there"]


def test_asyncio_beside_a_connection_of_threads_is_interrupted(bench: Bench) -> None:
    """asyncio's runner cancels its task only where the handler is Python's own: with ours it raises where it waits."""
    ended: list[str] = []

    async def waits() -> None:
        try:
            asyncio.get_running_loop().call_later(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
            await asyncio.sleep(SOON)
        finally:
            ended.append("cleaned up")

    with bench.connect() as connection:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(waits())
        assert time.monotonic() - began < SOON / 2
        assert ended == ["cleaned up"]
        connection.session().producer(bench.queue).send("goes on")
    assert bench.left == ["goes on"]
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(waits())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_connection_that_a_task_has_made_leaves_the_runner_its_handler(bench: Bench) -> None:
    async def program() -> None:
        with bench.connect() as connection:
            connection.session().producer(bench.queue).send("one")
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(SOON)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(program())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_child_after_fork_is_interrupted_as_ever() -> None:
    program = """
import os, signal, redelivery
from redelivery.broker import EmbeddedBroker
with EmbeddedBroker("fork-guard") as broker, redelivery.connect(broker.vm_url):
    child = os.fork()
    if not child:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603  # ours
    assert done.stdout.strip() == "7"


class Shooter:
    """A real SIGINT about every millisecond, which raises where this thread is `armed`, once."""

    def __init__(self) -> None:
        self.armed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._shoot)

    def handle(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def interrupts(self, call: Callable[[], object]) -> bool:
        """Whether the call was interrupted."""
        try:
            self.armed = True
            call()
            self.armed = False
        except KeyboardInterrupt:
            return True
        return False

    def __enter__(self) -> Shooter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _shoot(self) -> None:
        while not self._stop.wait(0.001):
            os.kill(os.getpid(), signal.SIGINT)


def test_hundreds_of_real_signals_tear_nothing(site: Site, opened: ExitStack) -> None:
    """A session that sends and receives in transactions, each call of which may be interrupted."""
    shooter = Shooter()
    opened.enter_context(handled(signal.SIGINT, shooter.handle))
    connection = opened.enter_context(redelivery.connect(site.url, redelivery_policy=AT_ONCE))
    session = connection.session("transacted")
    producer, consumer = session.producer("orders"), session.consumer("orders")
    came, numbers = 0, iter(range(1_000_000))
    committed: set[str] = set()
    received: list[str] = []
    doubted: set[str] = set()
    with shooter:
        while came < SHOTS:
            body, got = f"m{next(numbers)}", list[str]()

            def unit(body: str = body, got: list[str] = got) -> None:
                producer.send(body)
                message = consumer.receive(0.01)
                got += [] if message is None else [str(message.body)]
                session.commit()

            if shooter.interrupts(unit):
                came += 1
                doubted |= {body, *got}
                while shooter.interrupts(session.rollback):
                    came += 1
            else:
                committed.add(body)
                received += got
    while (message := consumer.receive(0.3)) is not None:
        received.append(str(message.body))
    session.commit()
    assert len(received) == len(set(received)), "received and committed twice"
    assert committed - doubted <= set(received)
