"""A handler that hangs is logged with its stack, and seen from outside, in both shells."""

from __future__ import annotations

import asyncio
import logging
import threading
from uuid import uuid4

import pytest
from tests.client.shell import SOON, eventually

import redelivery
from redelivery import ConfigError, Message
from redelivery.broker import EmbeddedBroker

QUICK = 0.02  # seconds


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [each for each in caplog.records if "the handler has had" in each.getMessage()]


def test_a_handler_that_hangs_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    released = threading.Event()

    def waits_for_what_does_not_come() -> None:
        released.wait(SOON)

    def handle(message: Message) -> None:
        if message.body == "bad":
            waits_for_what_does_not_come()

    with EmbeddedBroker(f"watch-{uuid4().hex}") as broker, redelivery.connect(broker.vm_url) as connection:
        container = connection.listener_container("orders", handle, concurrency=2, handler_warning_after=QUICK)
        with container:
            broker.send("orders", "bad")
            eventually(lambda: len(warnings(caplog)) == 1)
            broker.send("orders", "good")
            eventually(lambda: container.counters.succeeded == 1)
            (work,) = container.in_progress
            assert work.worker.startswith("redelivery-container-")
            assert container.healthy
            released.set()
            eventually(lambda: container.counters.succeeded == 2)
        assert not container.in_progress
        eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith("redelivery-watch")])
    (record,) = warnings(caplog)  # once for each message
    assert "in waits_for_what_does_not_come" in record.getMessage()
    assert record.levelno == logging.WARNING
    assert vars(record)["message_id"] == work.message_id


def test_a_coroutine_that_hangs_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        released = asyncio.Event()

        async def waits_for_what_does_not_come() -> None:
            await released.wait()

        async def handle(_: Message) -> None:
            await waits_for_what_does_not_come()

        async with redelivery.aio.connect(broker.vm_url) as connection:
            container = connection.listener_container("orders", handle, handler_warning_after=QUICK)
            async with container, asyncio.timeout(SOON):
                broker.send("orders", "bad")
                while not warnings(caplog):
                    await asyncio.sleep(QUICK)
                assert len(container.in_progress) == 1
                released.set()
            assert not container.in_progress
            assert len(asyncio.all_tasks()) == 1

    with EmbeddedBroker(f"watch-{uuid4().hex}") as broker:
        asyncio.run(main())
    (record,) = warnings(caplog)
    assert "in waits_for_what_does_not_come" in record.getMessage()


def test_it_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker(f"watch-{uuid4().hex}") as broker, redelivery.connect(broker.vm_url) as connection:
        with connection.listener_container("orders", lambda _: None, handler_warning_after=None):
            assert not [each for each in threading.enumerate() if each.name.startswith("redelivery-watch")]
        for wrong in (0, -1, "soon"):
            with pytest.raises(ConfigError, match="handler_warning_after"):
                connection.listener_container("orders", print, handler_warning_after=wrong)  # type: ignore[arg-type]
    assert not warnings(caplog)
