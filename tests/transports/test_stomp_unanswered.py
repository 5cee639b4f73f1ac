"""What the broker never answers: sends whose session is closed, in time, and a commit."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, ScriptedBroker, with_messages

import redelivery
from redelivery import InDoubtError


@pytest.mark.parametrize("mode", ["auto", "transacted"])
def test_they_are_in_doubt_when_the_session_is_closed(mode: str) -> None:
    ended = threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in()
        ended.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        connection = redelivery.connect(f"stomp://127.0.0.1:{broker.port}", close_timeout=0.3, request_timeout=0.3)
        session = connection.session(mode)
        futures = [session.producer("orders").send_async(f"m{number}") for number in range(3)]
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < TIMEOUT / 2
        assert [future.done() for future in futures] == [True] * 3
        for future in futures:
            with pytest.raises(
                InDoubtError, match=r"may or may not have been delivered: .*before the broker's answer came"
            ):
                future.result(0)
        ended.set()
        connection.close()


@pytest.mark.parametrize("cause", ["time-out", "interrupt"])
def test_what_rabbitmq_would_have_acknowledged_after_a_commit_in_doubt_is_redelivered(cause: str) -> None:
    """Its ACKs leave when the commit is answered; nobody else would acknowledge the message, nor have it again."""

    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("SEND"), end.take("COMMIT")
        if cause == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        end.answer(end.take("ACK"))

    broker = ScriptedBroker(with_messages(1, then, server="RabbitMQ/3.10.8"))
    patience = 0.3 if cause == "time-out" else 20.0
    ended: type[BaseException] = InDoubtError if cause == "time-out" else KeyboardInterrupt
    with broker, redelivery.connect(f"stomp://127.0.0.1:{broker.port}", request_timeout=patience) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("q")
        assert consumer.receive(5) is not None
        session.producer("out").send("sent with it")
        with pytest.raises(ended):
            session.commit()
        again = consumer.receive(5)
        assert again is not None
        assert again.redelivered
        session.commit()
