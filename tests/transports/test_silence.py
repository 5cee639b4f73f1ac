"""A connection that is lost while this process was held: the error says so."""

from __future__ import annotations

import re
from contextlib import ExitStack

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON, eventually

import redelivery
from redelivery import JMSError
from redelivery.transports.wire import clock
from redelivery.transports.wire import connection as wire


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(("protocol", "seconds"), [("stomp", 6), ("amqp", 120)])  # a peer of AMQP says what it waits
def test_a_process_that_was_held_is_said_to_be_the_reason(
    protocol: str, seconds: int, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a call of C code that keeps the interpreter's lock does: the clock jumps between two ticks."""
    if protocol == "amqp":
        pytest.importorskip("proton")
    errors: list[JMSError] = []
    with ExitStack() as opened:
        site = Site(protocol, opened)
        with redelivery.connect(site.url, heartbeat=1.0, exception_listener=errors.append):
            real = clock.monotonic
            monkeypatch.setattr(wire, "monotonic", lambda: real() + (seconds if held else 0))
            site.gate.shut()
            eventually(lambda: errors, SOON)
    said = re.search(r"this process wrote no heart-beat for (\d+)\.\d s", str(errors[0]))
    assert (said is not None) is held
    assert said is None or int(said[1]) in (seconds, seconds + 1)
