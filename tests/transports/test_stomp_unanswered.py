"""Asynchronous sends that the broker never answers: the session's close ends them, in time."""

from __future__ import annotations

import threading
import time

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, ScriptedBroker

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
