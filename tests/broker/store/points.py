"""A workload of a broker with a store, killed by a shim before its n-th statement, for each n.

``python points.py FOLDER EVERY``: it prints as JSON what a store holds after each step; then the statements that were
met; then, for every EVERY-th n, how many steps had been answered before the kill, and what the store held after it.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.broker.engine.bench import Bench, Box
from tests.policies.readers.documents import address_settings, read

from redelivery.broker.core import Core
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.store.bodies import LARGE
from redelivery.broker.store.schema import PLACE
from redelivery.broker.store.sqlite import PURGED, SqliteStore
from redelivery.model.destinations import Queue, SubscriptionName, Topic

State: TypeAlias = dict[str, Any]

WAITS: Final = "waits"
LETTERS: Final[Mapping[str, object]] = {
    "dead_letter_address": "DLA",
    "auto_create_dead_letter_resources": "true",
    "expiry_address": "expired",
    "auto_create_expiry_resources": "true",
}
RULES: Final = address_settings(**{"#": LETTERS, WAITS: {"redelivery_delay": 1000}})


class Shim:
    """A connection to a database that ends the process at its n-th statement."""

    def __init__(self, database: sqlite3.Connection, at: int) -> None:
        self.statements: list[str] = []
        self._database = database
        self._at = at

    def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
        self._point(statement)
        return self._database.execute(statement, parameters)

    def executemany(self, statement: str, rows: Iterable[Any]) -> None:
        for row in rows:
            self._point(statement)
            self._database.execute(statement, row)

    def close(self) -> None:
        self._database.close()

    def _point(self, statement: str) -> None:
        if not statement.startswith(("SELECT", "PRAGMA")):
            self.statements.append(statement)
            if len(self.statements) == self._at:
                end()


class Workload:
    """Its steps, each of which is answered when it returns."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.bench = Bench()
        self.box = Box()
        self.consumer = Subscription(Queue("q"), self.box, prefetch=10)

    def steps(self) -> list[Callable[[], None]]:
        return [
            *(self.send, self.subscribe, self.commit, self.count, self.poison, self.large, self.delay, self.publish),
            *(
                self.publish,
                self.publish,
                self.consume_large,
                self.forget,
                self.wait,
                self.fail,
                self.expiring,
                self.expire,
            ),
            *(self.due, self.unsubscribe),
        ]

    def send(self) -> None:
        self._commit(Transaction(), "q", "a", "b", "c")

    def subscribe(self) -> None:
        named = SubscriptionName("all", durable=True, shared=True)
        durable = Subscription(Topic("news"), Box(), prefetch=1, named=named)
        self.core.call(lambda engine, _: engine.subscribe(durable))
        self.core.call(lambda engine, now: engine.unsubscribe(durable, now, all_seen=False))

    def commit(self) -> None:
        self._consume()
        transaction = Transaction()
        self.core.call(lambda engine, now: engine.enlist(transaction, [self.box[0]], now))
        self._commit(transaction, "p", "d", "e")

    def count(self) -> None:
        lost = Manner.LOST
        self.core.call(lambda engine, now: engine.unsubscribe(self.consumer, now, all_seen=True, manner=lost))

    def poison(self) -> None:
        self._consume()
        self.core.call(lambda engine, now: engine.poison(self.box[0], "cause", now))

    def large(self) -> None:
        message = replace(self.bench.message("x" * LARGE, "p"), size=LARGE + 1)
        self.core.call(lambda engine, now: engine.send(message, now))

    def delay(self) -> None:
        later = self.bench.message("later", delivery_time=1 << 50)
        self.core.call(lambda engine, now: engine.send(later, now))

    def publish(self) -> None:
        self.core.call(lambda engine, now: engine.send(self.bench.message("news", "topic://news"), now))

    def consume_large(self) -> None:
        self._consume("p")
        large = [each for each in self.box if each.message.size > LARGE]
        self.core.call(lambda engine, now: engine.acknowledge(large, now))

    def forget(self) -> None:
        """Its pieces go with the next write after nobody can read it any more."""
        self.core.call(lambda engine, now: engine.acknowledge(self.box[:1], now))

    def wait(self) -> None:
        waiting = self.bench.message("again", WAITS)
        self.core.call(lambda engine, now: engine.send(waiting, now))

    def fail(self) -> None:
        self._consume(WAITS)
        self.box[0].seen = True
        self.core.call(lambda engine, _: engine.release(self.box, 1 << 47, Manner.FAILED))

    def expiring(self) -> None:
        short = self.bench.message("short", "brief", expiration=1 << 48)
        self.core.call(lambda engine, now: engine.send(short, now))

    def expire(self) -> None:
        self.core.call(lambda engine, _: engine.tick(1 << 48))

    def due(self) -> None:
        self.core.call(lambda engine, _: engine.tick(1 << 50))

    def unsubscribe(self) -> None:
        """What is not in memory goes as a range."""
        self.core.call(lambda engine, _: engine.remove_subscription("all", None))

    def _consume(self, queue: str = "q") -> None:
        self.box.clear()
        self.consumer = Subscription(Queue(queue), self.box, prefetch=10)
        self.core.call(lambda engine, _: engine.subscribe(self.consumer))
        self.core.call(lambda engine, now: engine.start(self.consumer, now))

    def _commit(self, transaction: Transaction, queue: str, *sent: str) -> None:
        def finish(engine: Engine, now: int) -> None:
            for body in sent:
                engine.enlist_send(transaction, self.bench.message(body, queue))
            engine.commit(transaction, now)

        self.core.call(finish)


def held(path: Path) -> State:
    """What a store holds when it is opened again."""
    store = SqliteStore(path, synchronous="off")
    contents = store.restore()
    found: State = {
        name: [
            (len(str(each.message.body)), each.message.message_id, each.redeliveries, each.until) for each in entries
        ]
        for name, entries in ((name, store.page(name, 0, PLACE)) for name in contents.queues)
    }
    found["bindings"], found["delayed"] = len(contents.bindings), len(contents.delayed)
    found["pieces"] = store._database.execute("SELECT count(*) FROM piece").fetchone()[0]
    store.close()
    return found


def run(path: Path, at: int, answered: Callable[[], object]) -> list[str]:
    """The workload; the statements that it made, if it was not killed."""
    store = SqliteStore(path, synchronous="off", window=2)
    core = Core("points", BrokerConfig(rules=read(RULES).rules))
    core.keep_in(store)
    store._unpurged = PURGED - 2  # the file lets go of removed messages with the second of them
    shim = Shim(store._database, at)
    store._database = shim  # type: ignore[assignment]  # it does what the store needs
    for step in Workload(core).steps():
        step()
        answered()
    core.kill()
    core.close("the workload is done", 5)
    return shim.statements


def killed(path: Path, *, at: int = 0, steps: int = 0) -> tuple[int, State]:
    """How many steps were answered until the kill, at a statement or after so many steps, and what is there then."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        left = steps

        def answered() -> None:
            nonlocal left
            os.write(writer, b".")
            left -= 1
            if not left:
                end()

        run(path, at, answered)
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answers:
        return len(answers.read()), held(path)


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, every: str) -> None:
    held(Path(folder) / "empty.db")
    states: list[State] = [held(Path(folder) / "empty.db")]
    statements = run(Path(folder) / "whole.db", 0, lambda: states.append({}))
    for steps in range(1, len(states)):
        states[steps] = killed(Path(folder) / f"steps-{steps}.db", steps=steps)[1]
    print(json.dumps(states), flush=True)
    print(json.dumps(statements), flush=True)
    for at in range(1, len(statements) + 1, int(every)):
        print(json.dumps(killed(Path(folder) / f"killed-{at}.db", at=at)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
