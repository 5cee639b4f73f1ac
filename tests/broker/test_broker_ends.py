"""A broker leaves nothing behind: no thread, no socket, no name."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import EmbeddedBroker


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files in /proc")
def test_after_close_threads_and_sockets_are_gone() -> None:
    files, threads = open_files(), set(threading.enumerate())  # some of an earlier test may end meanwhile
    for _ in range(5):
        with EmbeddedBroker("ends", stomp_port=0) as broker:
            clients = [Raw(broker.stomp_url) for _ in range(3)]
            later = round((datetime.now(UTC) + timedelta(hours=1)).timestamp() * 1000)
            clients[0].ok("SEND", b"x", destination="/queue/q", expires=str(later))
            clients[1].subscribe()
            clients[1].next()
            assert set(threading.enumerate()) - threads
        assert set(threading.enumerate()) <= threads
        for client in clients:
            assert client.closed()
            client.drop()
    assert open_files() == files


def test_an_idle_broker_without_a_port_has_no_thread() -> None:
    threads = set(threading.enumerate())
    with EmbeddedBroker("idle"):
        assert set(threading.enumerate()) <= threads


def test_close_from_many_threads_at_once_is_one_close() -> None:
    broker = EmbeddedBroker("closed-often", stomp_port=0).start()
    with Raw(broker.stomp_url) as client:
        threads = [threading.Thread(target=broker.close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert client.closed()
    EmbeddedBroker("closed-often").start().close()
