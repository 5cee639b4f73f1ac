"""A program to be killed: ``python program.py STORE MODE [CONFIG]``; it says `done` for each line that it is given.

Each line is a Python expression over ``session``, ``producer``, ``consumer`` and ``broker``.
"""

from __future__ import annotations

import sys
from typing import Any

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.engine import Engine


def main(store: str, mode: str, config: str | None = None) -> None:
    with (
        EmbeddedBroker("program", store=store, config=config) as broker,
        redelivery.connect(broker.vm_url) as connection,
        connection.session(mode) as session,
    ):
        names: dict[str, Any] = {"broker": broker, "session": session, "producer": session.producer("q")}
        names["consume"] = lambda: names.setdefault("consumer", session.consumer("q")).receive(timeout=5)
        names["fail"] = lambda: broker.core.call(fail)
        print("ready", flush=True)
        for line in sys.stdin:
            print("done", eval(line, names), flush=True)  # noqa: S307  # what the test wrote


def fail(engine: Engine, now: int) -> None:
    """What a client that fails over AMQP does with all that it has seen."""
    held = [each for consumer in engine.queues["q"].consumers for each in consumer.in_flight.values()]
    engine.release([dispatch for dispatch in held if dispatch.seen], now)


if __name__ == "__main__":
    main(*sys.argv[1:])
