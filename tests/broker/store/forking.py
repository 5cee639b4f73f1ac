"""A program with a stored broker that forks in each way, confirms more, and kills itself: ``python forking.py STORE``.

It says what each child said, and at last what it has confirmed.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable

import redelivery
from redelivery.broker import EmbeddedBroker

warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork: that is what is tested
LARGE = "x" * (2 << 20)


class Parent:
    """What it has, and what its children try."""

    def __init__(self, store: str) -> None:
        self.broker = EmbeddedBroker("parent", store=store, stomp_port=0).start()
        self.connection = redelivery.connect(self.broker.vm_url)
        self.over_stomp = redelivery.connect(self.broker.stomp_url)
        self.own = redelivery.connect(f"vm://own?store={store}-own")  # started by its connection
        self.session = self.connection.session("transacted")
        self.producer = self.session.producer("q")
        self.session.producer("large").send(LARGE)
        self.session.commit()
        large = self.session.consumer("large").receive(timeout=5)
        assert large is not None
        self.large = large
        self.sent = 0

    def confirm(self) -> None:
        self.producer.send(str(self.sent))
        self.session.commit()
        with self.own.session() as session:
            session.producer("q").send(str(self.sent))
        self.sent += 1

    def tries(self) -> None:
        """Everything that a child can call: it must fail by an error that says why."""
        calls: list[Callable[[], object]] = [
            self.connection.session,
            self.own.session,
            self.over_stomp.session,
            lambda: self.session.consumer("other"),
            lambda: self.producer.send("of the child"),
            self.session.commit,
            lambda: self.large.body,
            lambda: self.broker.send("q", "of the child"),
            lambda: self.broker.messages("q"),
            lambda: redelivery.connect(f"vm://own?store={self.broker.store}-own"),
            lambda: EmbeddedBroker("second", store=self.broker.store).start(),
        ]
        for number, call in enumerate(calls):
            try:
                call()
            except redelivery.JMSError as error:
                if "the parent's" not in str(error) and "in use by another broker" not in str(error):
                    print("child:", number, error, flush=True)
            else:
                print("child:", number, "could", flush=True)
        with redelivery.connect(self.broker.stomp_url) as mine, mine.session() as session:  # its own
            session.producer("fromchild").send("x")

    def closes(self) -> None:
        """As a with statement does that the child leaves, too."""
        self.session.close()
        self.connection.close()
        self.own.close()
        self.over_stomp.close()
        self.broker.close()


def forked(child: Callable[[], object]) -> None:
    pid = os.fork()
    if not pid:
        child()
        sys.exit()
    os.waitpid(pid, 0)


def in_a_thread(child: Callable[[], object]) -> None:
    thread = threading.Thread(target=forked, args=(child,))
    thread.start()
    thread.join()


def collects(parent: Parent) -> None:
    vars(parent).clear()
    gc.collect()


def main(store: str) -> None:
    parent = Parent(store)
    parent.confirm()
    context = multiprocessing.get_context("fork")
    ways: list[Callable[[], object]] = [
        lambda: forked(lambda: os._exit(0)),
        lambda: forked(lambda: None),
        lambda: forked(parent.tries),
        lambda: forked(parent.closes),
        lambda: forked(lambda: atexit.register(parent.closes)),
        lambda: forked(lambda: collects(parent)),
        lambda: in_a_thread(parent.tries),
        lambda: forked(lambda: forked(parent.tries)),
        lambda: os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ), 0),
    ]
    for way in ways:
        way()
        parent.confirm()
    for target in (parent.tries, parent.closes):
        process = context.Process(target=target)
        process.start()
        process.join()
        parent.confirm()
    if not os.fork():  # it outlives its parent, and holds nothing of it
        signal.pause()
    parent.confirm()
    print("confirmed", parent.sent, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
