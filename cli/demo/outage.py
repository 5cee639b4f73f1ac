"""The demo of an outage: a worker and a sender, and a broker that is killed under them and starts again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, Final, NamedTuple

import redelivery
from redelivery import ConnectError, InDoubtError, JMSError, Publisher, ReconnectPolicy, RedeliveryPolicy
from redelivery.cli.demo.story import Order, Shows, Story, StoryStep

_END: Final = 5.0  # seconds
QUEUE: Final = "orders"
_COMES_BACK: Final = ReconnectPolicy(initial_delay=0.1, maximum_delay=0.8)
# The command line, in a process that ends when its standard input does: so it does not outlive us, however we end.
_PROGRAM: Final = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
from redelivery.cli.main import main
main()
"""
_CODE: Final = """\
connection = redelivery.connect(url, reconnect=ReconnectPolicy())
container = connection.listener_container("orders", handle)
publisher.send(order, "orders")       # waits while the broker is away"""


class OutageScript(NamedTuple):
    """The script that is played; times in seconds."""

    orders: tuple[str, ...] = tuple(map(str, range(1001, 1025)))
    pace: float = 0.12  # between two sends
    work: float = 0.15  # of the handler
    killed_after: int = 8  # orders that are processed before
    away: float = 2.5  # how long the broker is dead
    limit: float = 40.0  # when the demo gives up


DEFAULT: Final = OutageScript()


class BrokerProcess(ExitStack):
    """``redelivery broker`` with a store, which ends with this context.

    ``pid``: of the process that runs, or was killed last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.url, self._port, self.pid = "", "0", 0
        self._process: subprocess.Popen[str] | None = None
        self._folder = self.enter_context(TemporaryDirectory("", "redelivery-demo-", ignore_cleanup_errors=True))
        self.callback(self.kill)

    def start(self) -> None:
        """Start it, on the port that it had. Raises ConnectError: it does not start; the text is what it said."""
        command = ["broker", "--json", "--store", f"{self._folder}/broker.db", "--stomp", self._port]
        process = self._process = subprocess.Popen(  # noqa: S603  # ourselves
            [sys.executable, "-c", _PROGRAM, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
        assert process.stdout is not None
        self.pid = process.pid
        line = process.stdout.readline()
        if not line:
            raise ConnectError(f"the broker did not start: {process.communicate(timeout=_END)[1].strip()}")
        self.url = json.loads(line)["stomp"]
        self._port = self.url.rpartition(":")[2]

    def kill(self) -> None:
        """Kill it, as ``kill -9`` does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.communicate(timeout=_END)


class DemoOutage:
    """One run, reported in steps by the thread that calls `run`."""

    def __init__(self, show: Shows, script: OutageScript = DEFAULT) -> None:
        self._show, self._script = show, script
        self._story = Story(show, self._script.orders, QUEUE, RedeliveryPolicy())
        self._ends = threading.Event()

    def run(self) -> Mapping[str, Any]:
        """Play it on a broker of its own. Returns the summary.

        Raises:
            JMSError: the broker does not start, or the connection does not come back.
        """
        script, observer = self._script, self._story.observe
        with ExitStack() as stack:
            broker = stack.enter_context(BrokerProcess())
            broker.start()
            connection = redelivery.connect(broker.url, reconnect=_COMES_BACK, observer=observer, close_timeout=3)
            stack.enter_context(connection)
            text = (
                f"embedded broker, process {broker.pid}, {broker.url}, which keeps its messages in a file; "
                f"{len(script.orders)} orders are sent while a worker processes them. Then the broker is killed."
            )
            fields: dict[str, Any] = {"broker": "embedded broker", "pid": broker.pid, "url": broker.url, "queue": QUEUE}
            fields["orders"] = list(script.orders)
            title = "redelivery demo --outage"
            self._show(StoryStep("outage_started", fields, text, now="● connected", title=title, code=_CODE))
            sender = threading.Thread(target=self._send, args=(connection.publisher(),), name="sender", daemon=True)
            with connection.listener_container(QUEUE, lambda _: sleep(script.work), prefetch=3):
                sender.start()
                try:
                    self._play(broker, self._story.began + script.limit)
                finally:
                    self._ends.set()
            with suppress(JMSError):
                connection.close()  # a send that waits for the broker waits no more
            sender.join(3)
        return self._summary()

    def _play(self, broker: BrokerProcess, until: float) -> None:
        orders, script = self._story.orders, self._script
        self._wait(lambda: sum(order.processed > 0 for order in orders.values()) >= script.killed_after, until)
        self._show(StoryStep("broker_killed", {"pid": broker.pid}, f"broker {broker.pid} killed", "bold red"))
        broker.kill()
        self._wait(lambda: False, monotonic() + script.away)
        broker.start()
        text = f"broker {broker.pid} started, with what its store has kept"
        self._show(StoryStep("broker_restarted", {"pid": broker.pid}, text, "bold green"))
        self._wait(lambda: all(order.processed for order in orders.values()), until)
        self._wait(lambda: False, min(until, monotonic() + 0.5))  # what would be processed once more comes now

    def _wait(self, holds: Callable[[], bool], until: float) -> None:
        """Report what happens until it holds, or the time has passed."""
        while not holds() and monotonic() < until:
            self._story.report(0.05)

    def _send(self, publisher: Publisher) -> None:
        for order in self._script.orders:
            while not self._ends.is_set():
                try:
                    publisher.send(order, QUEUE)  # while the broker is away this waits
                except InDoubtError:
                    continue  # it may be there: sent again, it may be there twice
                except JMSError:
                    return  # the demo ends
                break
            self._ends.wait(self._script.pace)

    def _summary(self) -> Mapping[str, Any]:
        orders = self._story.orders.values()
        counts = {
            "sent": sum(order.sent > 0 for order in orders),
            "processed": sum(order.processed > 0 for order in orders),
            "redelivered": sum(len(order.deliveries[1:]) for order in orders),
            "in_doubt": sum(order.doubts > 0 for order in orders),
            "doubled": sum(order.processed > 1 for order in orders),
            "away": self._story.away,
        }
        text = (
            "{sent} orders sent, {processed} processed, {redelivered} of them delivered again\n"
            "{in_doubt} in doubt, {doubled} processed twice because of that; the broker was away for {away:.1f} s"
        )
        self._story.problems += losses(self._story.orders)
        return self._story.end("outage_summary", counts, text, "none lost, and none twice but what was in doubt")


def losses(orders: Mapping[str, Order]) -> list[str]:
    """The orders that were lost, or processed twice without a reason."""
    found = [f"order {name} was lost" for name, order in orders.items() if not order.processed]
    twice = [name for name, order in orders.items() if order.processed > 1 and not order.doubts]
    return found + [f"order {name} was processed twice, though nothing was in doubt" for name in twice]
