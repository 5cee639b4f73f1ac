"""The demo of an outage: a worker and a sender, and a broker that is killed under them and starts again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Final

import redelivery
from redelivery import (
    Connection,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    Message,
    Publisher,
    ReconnectPolicy,
    events,
)
from redelivery.cli.demo.broker_process import BrokerProcess
from redelivery.cli.demo.events import (
    Back,
    Delivered,
    Event,
    Gone,
    Killed,
    OutageStarted,
    OutageSummary,
    Processed,
    Redialled,
    Restarted,
    Sent,
    Uncertain,
)

QUEUE: Final = "orders"
_STEP: Final = 0.05  # seconds
_COMES_BACK: Final = ReconnectPolicy(initial_delay=0.1, maximum_delay=0.8)


@dataclass(frozen=True, slots=True)
class OutageScript:
    """What is played. Times are in seconds.

    ``pace``: between two sends. ``work``: how long the handler takes. ``killed_after``: orders that are processed
    before. ``away``: how long the broker is dead. ``limit``: when the demo gives up.
    """

    orders: tuple[str, ...] = tuple(str(number) for number in range(1001, 1025))
    pace: float = 0.12
    work: float = 0.15
    killed_after: int = 8
    away: float = 2.5
    limit: float = 40.0


class OutageTally:
    """What was sent and processed; what may be twice, as its send or commit was in doubt."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.processed: Counter[str] = Counter()
        self.uncertain: set[str] = set()
        self.delivered: Counter[str] = Counter()

    def add(self, event: Event) -> None:
        """Count one event."""
        match event:
            case Sent(order):
                self.sent[order] += 1
            case Processed(order):
                self.processed[order] += 1
            case Uncertain(order, _):
                self.uncertain.add(order)
            case Delivered(order):
                self.delivered[order] += 1

    def summary(self, orders: tuple[str, ...], away: float, seconds: float) -> OutageSummary:
        """The counts, and what does not add up."""
        lost = [order for order in orders if not self.processed[order]]
        doubled = [order for order in orders if self.processed[order] > 1]
        unexplained = [order for order in doubled if order not in self.uncertain]
        problems = [f"order {order} was lost" for order in lost]
        problems += [f"order {order} was processed twice, though nothing was in doubt" for order in unexplained]
        return OutageSummary(
            sent=len(self.sent),
            processed=len(orders) - len(lost),
            redelivered=self.delivered.total() - len(self.delivered),
            in_doubt=len(self.uncertain),
            doubled=len(doubled),
            away=away,
            seconds=seconds,
            problems=tuple(problems),
        )


class Outage:
    """One run; every step is reported as an event, by the thread that called `run`."""

    def __init__(self, report: Callable[[Event], None], script: OutageScript | None = None) -> None:
        self._show = report
        self._script = script or OutageScript()
        self._tally = OutageTally()
        self._reports: SimpleQueue[Event] = SimpleQueue()  # of all threads
        self._orders: dict[str, str] = {}  # by message id: an event names the message only
        self._lost_at = 0.0
        self._was_away = 0.0
        self._ends = threading.Event()

    def run(self) -> OutageSummary:
        """Play it on a broker of its own.

        Raises:
            JMSError: the broker does not start, or the connection does not come back.
        """
        script, began = self._script, monotonic()
        with (
            BrokerProcess() as broker,
            redelivery.connect(
                broker.url, reconnect=_COMES_BACK, observer=self._observe, close_timeout=3
            ) as connection,
        ):
            self._reports.put(OutageStarted("embedded broker", broker.pid, broker.url, QUEUE, script.orders))
            publisher = connection.publisher()
            sender = threading.Thread(target=self._send, args=(publisher,), name="sender", daemon=True)
            with connection.listener_container(QUEUE, self._handle, prefetch=3):
                sender.start()
                try:
                    self._play(broker, began + script.limit)
                finally:
                    self._ends.set()
            _end(connection, sender)
        summary = self._tally.summary(script.orders, self._was_away, monotonic() - began)
        self._show(summary)
        return summary

    def _play(self, broker: BrokerProcess, until: float) -> None:
        self._wait(lambda: len(self._tally.processed) >= self._script.killed_after, until)
        self._reports.put(Killed(broker.pid))
        broker.kill()
        back_at = monotonic() + self._script.away
        self._wait(lambda: monotonic() >= back_at, until)
        with ThreadPoolExecutor(1) as starts:  # what happens meanwhile is reported
            started = starts.submit(broker.start)
            self._wait(started.done, until)
            started.result()
        self._reports.put(Restarted(broker.pid))
        self._wait(lambda: all(self._tally.processed[order] for order in self._script.orders), until)
        self._wait(lambda: False, min(until, monotonic() + 0.5))  # what would be processed once more comes now

    def _wait(self, holds: Callable[[], bool], until: float) -> None:
        """Report what happens until it holds, or the time has passed."""
        while monotonic() < until:
            try:
                event = self._reports.get(timeout=_STEP)
            except Empty:
                if holds():
                    return
                continue
            self._tally.add(event)
            self._show(event)
            if holds():
                return

    # the application

    def _handle(self, message: Message) -> None:
        order = str(message.body)
        if message.message_id is not None:
            self._orders[message.message_id] = order
        self._reports.put(Delivered(order, message.delivery_count, message.redelivered, None, None))
        sleep(self._script.work)

    def _send(self, publisher: Publisher) -> None:
        for order in self._script.orders:
            while not self._ends.is_set():
                try:
                    publisher.send(order, QUEUE)  # while the broker is away this waits
                except InDoubtError:
                    self._reports.put(Uncertain(order, "send"))  # it may be there: sent again, it may be there twice
                    continue
                except JMSError:
                    return  # the demo ends
                self._reports.put(Sent(order))
                break
            self._ends.wait(self._script.pace)

    def _observe(self, event: events.Event) -> None:
        match event:
            case events.Acknowledged():
                self._reports.put(Processed(self._orders.get(event.message_id or "", "?")))
            case events.InDoubt(received=received):
                for message in received:
                    self._reports.put(Uncertain(str(message.body), "commit"))
            case events.ConnectionLost(error=error):
                self._lost_at = monotonic()
                self._reports.put(Gone(str(error)))
            case events.ReconnectFailed(error=error, attempt=attempt):
                self._reports.put(Redialled(attempt, str(error)))
            case events.Reconnected():
                self._was_away = monotonic() - self._lost_at
                self._reports.put(Back(self._was_away))


def _end(connection: Connection, sender: threading.Thread) -> None:
    """Let a send that waits for the broker wait no more."""
    with suppress(ConnectionLostError):
        connection.close()
    sender.join(3)
