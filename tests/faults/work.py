"""Work that goes on over connections that come back, while something is done to them; and what it amounts to.

A feeder, whom nothing is done to, fills a queue. The program sends messages to one queue, each confirmed; and moves
those of the feeder to another, in transactions, or with each output confirmed before its input is acknowledged.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

from tests.conformance import blocking
from tests.conformance.pairs import Pair
from tests.conformance.stage import NOTHING, NOTHING_EMBEDDED, SOON

import redelivery
from redelivery import InDoubtError, JMSError, RedeliveryPolicy, TransactionRolledBackError
from redelivery.events import Reconnected

PAUSE: Final = 0.004  # seconds between two messages
QUICK: Final = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.01, redelivery_delay=0.01)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many messages: ``sent`` and ``moved`` were confirmed; of each, how many are there twice, or in doubt."""

    sent: int
    moved: int
    lost: int
    sent_twice: int
    moved_twice: int
    sent_in_doubt: int
    moved_in_doubt: int
    unexplained: int  # twice, and nothing of it was in doubt
    reconnected: int
    hidden: int  # that the broker delivered to nobody, until the connection was closed or it was started again


class Work:
    """See above. ``url``: with which the program connects; ``pair``: the broker itself.

    ``restless``: it rolls back now and then, and closes its consumer for another one. ``aio``: it uses asyncio.
    ``refused``: the broker may refuse what it asks for; then it asks again. Else that is a failure.
    """

    def __init__(
        self,
        pair: Pair,
        url: str,
        opened: ExitStack,
        *,
        restless: bool = False,
        aio: bool = False,
        refused: bool = False,
        **options: Any,
    ) -> None:
        self.pair, self._restless = pair, restless
        self._refused: type[JMSError] | tuple[()] = JMSError if refused else ()
        name = f"faults.failover.{uuid.uuid4().hex[:12]}"
        self._source, self._moved, self._sent = f"{name}.in", f"{name}.out", f"{name}.sent"
        self._stopping, self._fed = threading.Event(), threading.Event()
        self._nothing = NOTHING if pair.real else NOTHING_EMBEDDED
        # looks in vain before nothing is left; Classic may deliver what a torn connection had after more than a second
        self._patience = 10 if pair.real else 2
        self.reconnected = 0
        self.refusals = 0  # that the program has heard of
        self._count = Counter[str]()
        self._doubts: dict[str, set[str]] = {"sent": set(), "moved": set()}
        self._confirmed: set[str] = set()
        self._inputs: set[str] = set()
        self._errors: list[BaseException] = []
        options = {"redelivery_policy": QUICK, "request_timeout": 10.0, "close_timeout": 5.0, **options}
        self._make_queues()
        connect: Callable[..., Any] = redelivery.connect
        if aio:
            loop = blocking.Loop()
            opened.callback(loop.end)
            connect = partial(blocking.connect, loop)
        self._connection = opened.enter_context(connect(url, observer=self._observe, **options))
        opened.callback(self._stopping.set)
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._feed, self._send, self._move)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def transacted(self) -> bool:
        return self.pair.can("transactions")

    def goes_on(self, messages: int = 10) -> None:
        """Return when it has sent and moved so many more."""
        sent, moved = self._count["sent"] + messages, self._count["moved"] + messages
        self.until(lambda: self._count["sent"] >= sent and self._count["moved"] >= moved)

    def until(self, done: Callable[[], bool]) -> None:
        """Return when it is so."""
        end = monotonic() + 60
        while not done() and not self._errors:
            assert monotonic() < end, f"it stands still: {self._count}"
            self._stopping.wait(0.01)
        if self._errors:
            raise AssertionError(self._errors) from self._errors[0]

    def finish(self, start_again: Callable[[], None] | None = None) -> Outcome:
        """Stop feeding and sending, move what is left, and count. ``start_again``: of a broker that hides messages."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "it hangs"
        assert not self._errors, self._errors
        self._connection.close()  # what the broker has pushed to it goes back to the broker
        sent = self._take(self._sent, self._confirmed)
        moved = self._take(self._moved, self._inputs)
        missing = len(self._confirmed - sent.keys()) + len(self._inputs - moved.keys())
        for start in (None, start_again):
            if self._confirmed <= sent.keys() and self._inputs <= moved.keys():
                break
            if start is not None:
                start()
                sent += self._take(self._sent, self._confirmed - sent.keys())
                moved += self._take(self._moved, set())
            moved += self._take(self._source, self._inputs - moved.keys())
        hidden = missing - len(self._confirmed - sent.keys()) - len(self._inputs - moved.keys())
        twice = {body for body, count in sent.items() if count > 1}
        again = {body for body, count in moved.items() if count > 1}
        return Outcome(
            sent=len(self._confirmed),
            moved=len(self._inputs),
            lost=len(self._confirmed - sent.keys()) + len(self._inputs - moved.keys()),
            sent_twice=len(twice),
            moved_twice=len(again),
            sent_in_doubt=len(self._doubts["sent"]),
            moved_in_doubt=len(self._doubts["moved"]),
            unexplained=len(twice - self._doubts["sent"]) + len(again - self._doubts["moved"]),
            reconnected=self.reconnected,
            hidden=hidden,
        )

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # `finish` fails with it
            self._errors.append(error)
            self._fed.set()

    def _feed(self) -> None:
        try:
            with redelivery.connect(self.pair.url, reconnect=redelivery.ReconnectPolicy(maximum_delay=0.2)) as broker:
                producer, number = broker.session().producer(self._source), 0
                while not self._stopping.wait(PAUSE):
                    number += 1
                    try:
                        producer.send(str(number))
                    except InDoubtError:  # where the broker is killed
                        continue
                    except self._refused:
                        continue
                    self._inputs.add(str(number))
        finally:
            self._fed.set()

    def _send(self) -> None:
        producer, number = self._connection.session().producer(self._sent), 1
        while not self._stopping.wait(PAUSE):
            try:
                producer.send(str(number))
            except InDoubtError:
                self._doubts["sent"].add(str(number))
            except self._refused:
                self.refusals += 1
                continue  # the same again: had it been sent, it would be there twice
            else:
                self._confirmed.add(str(number))
                self._count["sent"] += 1
            number += 1

    def _move(self) -> None:
        session = self._connection.session("transacted" if self.transacted else "client")
        consumer, producer = session.consumer(self._source), session.producer(self._moved)
        quiet = turns = 0
        while quiet < self._patience:
            turns += 1
            if self._restless and turns % 5 == 0:
                consumer.close()
                consumer = session.consumer(self._source)
            try:
                batch = consumer.receive_many(3, timeout=self._nothing)
            except self._refused:  # when it came back: it has ended
                self.refusals += 1
                consumer = self._another(session)
                continue
            quiet = quiet + 1 if not batch and self._fed.is_set() else 0
            bodies = {str(each.body) for each in batch}
            self._move_on(session, producer, bodies, undo=self._restless and turns % 3 == 0)

    def _move_on(self, session: Any, producer: Any, bodies: set[str], *, undo: bool) -> None:
        try:
            if undo:
                self._undo(session, producer, bodies)
                return
            for body in bodies:
                producer.send(body)
            session.commit() if session.transacted else session.acknowledge()
        except TransactionRolledBackError:
            pass
        except InDoubtError:
            self._doubts["moved"] |= bodies
            if not session.transacted:
                session.recover()
        except self._refused:
            self._undo(session, producer, set())
        else:
            self._count["moved"] += len(bodies)
            if not session.transacted:
                self._doubts["moved"] |= bodies  # nobody confirms an acknowledgement

    def _another(self, session: Any) -> Any:
        while True:
            try:
                return session.consumer(self._source)
            except self._refused:
                self.refusals += 1

    def _undo(self, session: Any, producer: Any, bodies: set[str]) -> None:
        if session.transacted:
            for body in bodies:
                producer.send(body)
            session.rollback()
        else:
            session.recover()

    def _observe(self, event: object) -> None:
        if isinstance(event, Reconnected):
            self.reconnected += 1

    def _make_queues(self) -> None:
        with redelivery.connect(self.pair.url) as connection, connection.session() as session:
            for name in (self._source, self._moved, self._sent):
                session.producer(name).send("to make it")
                assert session.consumer(name).receive(timeout=SOON) is not None

    def _take(self, queue: str, expected: set[str]) -> Counter[str]:
        found, end = Counter[str](), monotonic() + SOON
        with redelivery.connect(self.pair.url) as connection, connection.session() as session:
            consumer = session.consumer(queue)
            while True:
                complete = expected <= found.keys()
                message = consumer.receive(timeout=self._nothing if complete else max(self._nothing, end - monotonic()))
                if message is not None:
                    found[str(message.body)] += 1
                elif complete or monotonic() > end:
                    return found
