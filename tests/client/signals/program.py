"""Closes in a signal handler what its own thread is busy with: ``program.py <url> <what> <call>``; see test_closing."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import redelivery
from redelivery import JMSError


def main(url: str, what: str, call: str) -> None:
    connection = redelivery.connect(url, close_timeout=20, request_timeout=20)
    session = connection.session("client" if call == "acknowledge" else "auto")
    consumer, producer, publisher = session.consumer("in"), session.producer("in"), connection.publisher()
    browser = session.browser("in")
    closing: dict[str, Any] = {"connection": connection, "session": session, "browser": browser}
    closing |= {"consumer": consumer, "publisher": publisher}
    closed: list[str] = []

    came: list[float] = []

    def handle(*_: object) -> None:
        came.append(time.monotonic())
        closing[what].close()
        closed.append(what)

    signal.signal(signal.SIGUSR1, handle)
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    for _ in range(20):
        producer.send("x", persistent=False)

    begun = threading.Event()

    def send() -> None:
        begun.wait()
        signal.pthread_kill(main_thread, signal.SIGUSR1)

    threading.Thread(target=send, daemon=True).start()

    def acknowledge() -> bool:
        message = consumer.receive()
        if message is not None:
            message.acknowledge()
            producer.send("more", persistent=False)
        return message is not None

    steps: dict[str, Callable[[], bool]] = {  # False: it has ended as by another's close
        "receive": lambda: consumer.receive() is not None,
        "send": lambda: bool(producer.send(b"x" * 10_000)),
        "browse": lambda: len(list(browser)) >= 0,
        "publish": lambda: bool(publisher.send(b"x" * 10_000, "in")),
        "acknowledge": acknowledge,
        "wait": lambda: not connection.wait(),
    }
    outcome = "ended"
    try:
        for number in count():
            if number == 5 or call in ("receive", "wait"):
                begun.set()
            if not steps[call]():
                break
    except JMSError as error:
        outcome = f"{type(error).__name__}: {error}"
    connection.close()
    print(closed, outcome, f"{time.monotonic() - came[0]:.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
