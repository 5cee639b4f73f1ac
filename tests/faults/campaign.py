"""A run of one broker: the programs of its pairs are killed, then it is killed itself, and all is counted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Self, TypeAlias

from tests.conformance.pairs import Kind, Pair
from tests.conformance.stage import NOTHING, Stage
from tests.faults.account import Account, Killed, Verdict
from tests.faults.promises import MODES, QUORUM, promise_of
from tests.faults.stored import started
from tests.run.forked import Forked

import redelivery
from redelivery.testing.brokers.real import RealBroker

# Programs killed, of each pair; brokers half as often. `make nightly` kills 20, and of a pair with a store 200: there
# each mode of acknowledgement but the transacted one has a tenth of them.
KILLS = int(os.environ.get("REDELIVERY_KILLS", "2"))
STORED_KILLS = int(os.environ.get("REDELIVERY_STORED_KILLS", str(KILLS)))

_SCRIPT = Path(__file__).with_name("victim.py")
_END_SECONDS = 150.0  # a program that says nothing for so long stands still; one that is only slow may go on
_QUIET_SECONDS = 5.0  # a program that says nothing for so long has nothing to do: then it is killed waiting
_BACK_SECONDS = 60.0  # a broker that was started again answers
_PATIENCE = 10.0  # for what must be there: a broker that has just started is slow with its first messages


class Victim:
    """One program; its lines are read by a thread of its own. Leaving kills it."""

    def __init__(self, run: Run, *, stays: bool) -> None:
        """``stays``: it goes on until `end`; otherwise until nothing comes any more."""
        seed = next(run.seeds)
        code = f"import runpy; runpy.run_path({str(_SCRIPT)!r}, run_name='__main__')"
        command = [sys.executable, "-c", code, run.pair.url, run.source, run.target, run.mode, str(seed)]
        if seed % 2:  # every second one
            command.append("asyncio")
        stdin = subprocess.PIPE if stays else subprocess.DEVNULL
        self._process = Forked[str](command, stdin=stdin, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ended = False
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def wait_for(self, lines: int, verb: str = "", *, since: int = 0, timeout: float = _END_SECONDS) -> None:
        """Until it has said so many lines that begin with ``verb`` since its ``since``-th, has ended, or time is up."""

        def heard() -> bool:
            return self._ended or sum(line.partition(" ")[2].startswith(verb) for line in self.lines[since:]) >= lines

        with self._said:
            self._said.wait_for(heard, timeout)

    def kill(self) -> None:
        """kill -9; afterwards `lines` is all that it ever said."""
        self._process.kill()
        self._finish()

    def end(self, patience: float = _END_SECONDS) -> None:
        """Have it end when nothing comes any more. Where it says nothing for so long, it is killed, with its stacks.

        How long it takes altogether is the machine's affair: beside others it may have a hundredth of a processor.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        with self._said:
            said = -1
            while not self._ended and said < len(self.lines):
                said = len(self.lines)
                self._said.wait_for(lambda: self._ended or len(self.lines) > said, patience)  # noqa: B023  # at once
            if not self._ended:
                self._process.send_signal(signal.SIGABRT)  # faulthandler has the stack of each thread on its stderr
        self._finish()

    @property
    def ended_well(self) -> bool:
        """Whether it ended by itself, with everything done."""
        return self._process.wait() == 0 and self.lines[-1].endswith(" end")

    def _finish(self) -> None:
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._said:
                self.lines.append(line.strip())
                self._said.notify_all()
        with self._said:
            self._ended = True
            self._said.notify_all()


@dataclass
class Run:
    """One pair under one kind of kills: its queues, what was sent, what the programs said."""

    pair: Pair
    killed: Killed
    mode: str
    source: str
    chance: random.Random
    quorum: str = ""  # the broker's URL over AMQP 0-9-1, where the queues are quorum queues
    sent: list[str] = field(default_factory=list)
    kills: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    verdict: Verdict = field(default_factory=lambda: Verdict(0))

    def __post_init__(self) -> None:
        self.target = f"{self.source}.target"
        self.account = Account(promise_of(self.pair.kind, self.mode), self.killed)
        self.seeds = iter(range(self.chance.randrange(1 << 20), 1 << 30))

    @property
    def name(self) -> str:
        """The pair, and the mode where it has a row of its own."""
        kind = self.pair.kind
        own = self.mode.upper() if kind.stored and self.mode in MODES else "quorum queues" if self.quorum else ""
        return ", ".join(filter(None, (kind.title, own)))

    def feed(self, count: int) -> None:
        """Send so many more messages, confirmed."""
        bodies = [f"m{number:04}" for number in range(len(self.sent) + 1, len(self.sent) + count + 1)]
        with ExitStack() as opened:
            Stage(self.pair, self.source, opened).send(*bodies)
        self.sent += bodies

    def make_queues(self) -> None:
        """By use, or as another program makes a quorum queue, before anything counts."""
        if self.quorum:
            import pika

            with pika.BlockingConnection(pika.URLParameters(self.quorum)) as client:
                for name in (self.source, self.target):
                    client.channel().queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
        with redelivery.connect(self.pair.url) as connection, connection.session() as session:
            for name in (self.source, self.target):
                session.producer(name).send("to make it")
                assert session.consumer(name).receive(timeout=_PATIENCE) is not None

    def kill_clients(self, kills: int) -> None:
        """Programs one after the other, each killed at a random moment; half of them while they commit."""
        self.feed(60 * kills)
        for _ in range(kills):
            with Victim(self, stays=False) as victim:
                victim.wait_for(1, "got")
                if self.chance.random() < 0.5:
                    victim.wait_for(self.chance.randrange(1, 5), "commit", timeout=_QUIET_SECONDS)
                    sleep(self.chance.choice((0.0, 0.0003, 0.001)))
                else:
                    victim.wait_for(self.chance.randrange(1, 120), timeout=_QUIET_SECONDS)
                victim.kill()
                self.account.read(victim.lines)
                self.kills += 1

    def finish(self) -> None:
        """Programs that nobody kills move the rest; then the queues are looked at. What is late is not lost."""
        before = len(self.moved)
        for _ in range(3):
            with Victim(self, stays=False) as victim:
                victim.end()
                self.account.read(victim.lines)
                assert victim.ended_well, victim.lines[-3:]
            self._take()
            if len(self.moved) >= len(self.sent):
                break
        hidden = len(self.moved) - before if before else 0
        self.verdict = replace(self.account.verdict(self.sent, self.moved), hidden=hidden)

    def _take(self) -> None:
        moved, until = self.moved, monotonic() + _PATIENCE
        with redelivery.connect(self.pair.url) as connection, connection.session() as session:
            consumer = session.consumer(self.target)
            while True:
                complete = len(moved) >= len(self.sent)
                message = consumer.receive(timeout=NOTHING if complete else max(NOTHING, until - monotonic()))
                if message is not None:
                    moved[message.body] += 1
                elif complete or monotonic() > until:
                    return


# The second: a mode, or QUORUM; "" for a random mode of those without a row of its own, and for usual queues.
Case: TypeAlias = tuple[Kind, str, Killed]
Runs: TypeAlias = dict[tuple[str, str, Killed], Run | None]


def kill_clients(runs: Sequence[Run], kills: int) -> None:
    """All pairs of one broker side by side."""
    with ThreadPoolExecutor(len(runs)) as pool:
        for each in [pool.submit(_kill_clients, run, kills) for run in runs]:
            each.result()


def _kill_clients(run: Run, kills: int) -> None:
    if run.quorum:
        run.make_queues()
    run.kill_clients(kills)
    run.finish()


def look_again(broker: RealBroker, runs: Sequence[Run]) -> None:
    """Where a broker hides messages, those that are missing come when it is started again, and are not lost."""
    hiding = [run for run in runs if run.verdict.lost and run.account.promise.hides]
    if hiding and broker.provider is not None:
        kill_and_restart(broker, *(run.pair.url for run in hiding))
        for run in hiding:
            run.finish()
    _put_back([run for run in runs if run.verdict.lost and run.pair.kind.own_dead_letters])


def _put_back(runs: Sequence[Run]) -> None:
    """Send again, as an operator would, what the broker itself has given up: it is in its dead-letter queue, not lost.

    Artemis counts what was prefetched when a connection dropped, randomly, up to its max-delivery-attempts of 10.
    """
    if not runs:
        return
    pair = runs[0].pair  # they share the queue
    with redelivery.connect(pair.url) as connection, connection.session() as session:
        consumer = session.consumer(str(pair.kind.own_dead_letters))
        taken = iter(lambda: consumer.receive(timeout=_QUIET_SECONDS), None)
        given_up = {(message.properties.get("ref"), message.body) for message in taken}
    for run in runs:
        again = [body for body in run.sent if body not in run.moved and (run.source, body) in given_up]
        print(f"{run.name}: {len(again)} put back from the broker's dead-letter queue")
        if again:
            with ExitStack() as opened:
                Stage(run.pair, run.source, opened).send(*again)
            hidden = run.verdict.hidden
            run.finish()
            run.verdict = replace(run.verdict, hidden=hidden)


def kill_broker(broker: RealBroker, runs: Sequence[Run], kills: int) -> None:
    """One program a pair, that connects anew each time; the broker is killed at a random moment of one of them."""
    for run in runs:
        run.make_queues()
    sleep(max(run.account.promise.young for run in runs))
    with ExitStack() as stack:
        victims = [stack.enter_context(Victim(run, stays=True)) for run in runs]
        for _ in range(kills):
            run, victim = runs[0].chance.choice(list(zip(runs, victims, strict=True)))
            since = len(victim.lines)
            with ThreadPoolExecutor(len(runs)) as pool:
                list(pool.map(lambda each: each.feed(60), runs))
            lines, verb = run.chance.choice(((run.chance.randrange(1, 4), "commit"), (run.chance.randrange(1, 60), "")))
            victim.wait_for(1, "got", since=since)
            victim.wait_for(lines, verb, since=since, timeout=_QUIET_SECONDS)
            kill_and_restart(broker, *(run.pair.url for run in runs))
            for each in runs:
                each.kills += 1
        for run, victim in zip(runs, victims, strict=True):
            victim.end()
            run.account.read(victim.lines)
            assert victim.ended_well, victim.lines[-3:]
            run.finish()


def kill_and_restart(broker: RealBroker, *urls: str) -> None:
    """Until it answers: one that listens may still cut its first clients off."""
    broker.kill()
    broker.restart()
    until = monotonic() + _BACK_SECONDS
    for url in urls:
        while True:
            try:
                redelivery.connect(url, connect_timeout=5).close()
                break
            except (redelivery.ConnectError, redelivery.ConnectionLostError):
                if monotonic() > until:
                    raise
                sleep(0.1)


def campaign(name: str, wanted: Sequence[Case]) -> Runs:
    """All of one broker, which is one of its own; what cannot be had is None: a broker that is not ours to kill."""
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"{name}: seed {seed}")
    chance = random.Random(seed)  # noqa: S311  # a test that can be repeated
    found: Runs = dict.fromkeys((kind.name, mode, killed) for kind, mode, killed in wanted)
    with started(name) as broker:
        kinds_of_kills: tuple[Killed, ...] = ("client", "broker") if broker.provider is not None else ("client",)
        for killed, own in product(kinds_of_kills, (False, True)):
            these = [each for each in wanted if each[2] == killed and bool(each[1]) == own]
            if not these:
                continue
            runs = [_run(broker, *each, chance) for each in these]
            kills = STORED_KILLS if these[0][0].stored else KILLS
            kills = max(1, kills // 10) if own and these[0][0].stored else kills
            if killed == "client":
                kill_clients(runs, kills)
            else:
                kill_broker(broker, runs, max(1, kills // 2))
            look_again(broker, runs)
            found.update({(kind.name, mode, killed): run for (kind, mode, _), run in zip(these, runs, strict=True)})
    return found


def _run(broker: RealBroker, kind: Kind, mode: str, killed: Killed, chance: random.Random) -> Run:
    pair = Pair(kind, getattr(broker, f"{kind.protocol}_url"))
    modes = ["transacted"] if pair.can("transactions") else ["client", "individual"]
    queue = f"faults.{kind.name}.{killed}.{chance.randrange(1 << 32):08x}"
    quorum = broker.amqp_url if mode == QUORUM else ""
    mode = mode if mode in MODES else chance.choice(modes)
    return Run(pair, killed, mode, queue, random.Random(chance.random()), quorum)  # noqa: S311  # as above
