"""How many files a message passes, whose reader looks for what happens to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON

import redelivery


@contextmanager
def passed(found: set[str]) -> Iterator[None]:
    """Add the files of ours whose functions are called."""

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and "/redelivery/" in path:
            found.add(path.rpartition("/redelivery/")[2])

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(
    ("protocol", "mode", "most"),
    [("stomp", "auto", 12), ("stomp", "individual", 12), ("amqp", "individual", 12), ("amqp", "auto", 14)],
)  # AMQP's AUTO writes for each: proton is asked for the bytes, and the socket takes them
def test_a_message_that_has_come_passes_few_files(protocol: str, mode: str, most: int) -> None:
    """Received, read and acknowledged; but for where a read from the socket falls between."""
    least = set(map(str, range(100)))
    with ExitStack() as opened:
        site = Site(protocol, opened)
        broker, connection = site.broker, opened.enter_context(redelivery.connect(site.url))
        session = connection.session(mode)
        consumer = session.consumer("q")
        for number in range(40):
            broker.send("q", f"m{number}")
        for _ in range(40):
            found = set[str]()
            with passed(found):
                message = consumer.receive(SOON)
                assert message is not None
                assert message.body
                if mode == "individual":
                    message.acknowledge()
            least = min(least, found, key=len)
    assert len(least) <= most, sorted(least)
