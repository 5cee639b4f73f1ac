"""How long a connection waits before each attempt: the policy's delays, the first before the first attempt."""

from __future__ import annotations

import logging
import re
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON, eventually

import redelivery
from redelivery import ConnectError, Connection, ReconnectPolicy

DOUBLING = ReconnectPolicy(initial_delay=0.01, maximum_delay=0.07, jitter=0.0)


def connected(site: Site, opened: ExitStack, policy: ReconnectPolicy) -> Connection:
    """One that has lived for longer than the first delay."""
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=policy))
    sleep(1.5 * policy.initial_delay)
    return connection


def waits(caplog: pytest.LogCaptureFixture) -> list[float]:
    """What the log says that is waited after each failed attempt."""
    found = [re.search(r"the next attempt is in ([\d.e-]+) s", each.getMessage()) for each in caplog.records]
    return [float(each[1]) for each in found if each is not None]


def test_after_a_loss_the_second_attempt_waits_the_second_delay(
    site: Site, opened: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    connected(site, opened, DOUBLING)
    with caplog.at_level(logging.DEBUG, "redelivery"):
        site.gate.shut()
        eventually(lambda: len(waits(caplog)) >= 4)
    assert waits(caplog)[:4] == [0.02, 0.04, 0.07, 0.07]


def test_before_there_was_one_the_first_attempt_waits_for_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.gate.shut()
    policy = ReconnectPolicy(initial_delay=0.01, maximum_delay=0.07, jitter=0.0, startup_maximum_attempts=5)
    with caplog.at_level(logging.DEBUG, "redelivery"), pytest.raises(ConnectError):
        redelivery.connect(site.url, reconnect=policy)
    assert waits(caplog) == [0.01, 0.02, 0.04, 0.07]


def test_the_first_attempt_after_a_loss_waits_the_first_delay(site: Site, opened: ExitStack) -> None:
    policy = ReconnectPolicy(initial_delay=0.1, multiplier=100.0, maximum_delay=30.0, jitter=0.0)
    connection = connected(site, opened, policy)
    began = monotonic()
    site.gate.shut()
    site.gate.open()
    eventually(lambda: connection.epoch == 2)
    assert 0.1 <= monotonic() - began < SOON


def test_the_waits_before_each_attempt_are_those_of_the_policy(
    site: Site, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the flow itself, which says until when it waits."""
    connection = connected(site, opened, DOUBLING)
    now = [1000.0]
    monkeypatch.setattr("redelivery.client.connection.dialing.session_time", lambda: now[0])

    def refused(_url: str) -> Any:
        raise ConnectError("nobody listens")
        yield

    monkeypatch.setattr(connection._core.dialer, "dial", refused)
    flow: Any = connection._core.dialer.open(again=True)
    waited: list[float] = []
    while len(waited) < 5:
        until = next(flow).deadline
        waited.append(round(until - now[0], 6))
        now[0] = until
    assert waited == [0.01, 0.02, 0.04, 0.07, 0.07]


@pytest.mark.parametrize(
    ("policy", "lives", "expected"),
    [
        (DOUBLING, (0.0, 0.009, 0.019, 0.039, 1.0, 0.0), (0.01, 0.02, 0.04, 0.07, 0.01, 0.02)),
        (DOUBLING, (0.011, 0.011, 0.009), (0.01, 0.01, 0.02)),  # as long as was waited for it
        (ReconnectPolicy(initial_delay=40.0, maximum_delay=60.0, jitter=0.0), (31.0, 29.0, 31.0), (40.0, 60.0, 40.0)),
    ],
)
def test_a_connection_that_dies_young_is_waited_for_longer_the_next_time(
    site: Site,
    opened: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    policy: ReconnectPolicy,
    lives: tuple[float, ...],
    expected: tuple[float, ...],
) -> None:
    """A broker that closes each connection soon is not dialled without end; 30 s are long in any case."""
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=policy))
    now, dialer = [1000.0], connection._core.dialer
    monkeypatch.setattr("redelivery.client.connection.dialing.session_time", lambda: now[0])
    monkeypatch.setattr(dialer, "_waits", 0)
    waited = []
    for life in lives:
        dialer.adopted()
        now[0] += life
        dialer.lost()
        wish: Any = next(dialer.open(again=True))  # it waits first
        until = wish.deadline
        waited.append(round(until - now[0], 6))
        now[0] = until
    assert tuple(waited) == expected
