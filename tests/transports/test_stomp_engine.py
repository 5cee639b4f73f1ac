"""The engine, with a clock of the test's: heart-beats both ways."""

from __future__ import annotations

import pytest

from redelivery.model.errors import ConnectionLostError
from redelivery.transports.stomp.connection.engine import HEARTBEAT, StompEngine


def engine(ours: float, theirs: str) -> StompEngine:
    engine = StompEngine("host", ours, 1000)
    engine.connect(None, None, None)
    rest = engine.connected(f"CONNECTED\nversion:1.2\nheart-beat:{theirs}\n\n\0".encode(), 100.0)
    assert rest == []
    return engine


@pytest.mark.parametrize(
    ("ours", "theirs", "every"),
    [
        (10.0, "10000,10000", 10.0),
        (10.0, "1000,30000", 10.0),  # each way the slower; the faster of the two ways sets the pace
        (1.0, "0,5000", 5.0),
        (1.0, "5000,0", 5.0),
        (10.0, "0,0", None),
        (0.0, "1000,1000", None),
    ],
)
def test_the_intervals_are_agreed_on(ours: float, theirs: str, every: float | None) -> None:
    due = engine(ours, theirs).next_deadline(100.0)
    if every is None:
        assert due is None
    else:
        assert due == pytest.approx(100.0 + every / 3)


def test_connect_offers_what_we_want() -> None:
    assert b"\nheart-beat:10000,10000\n" in StompEngine("h", 10.0, 1).connect(None, None, None)
    assert b"\nheart-beat:0,0\n" in StompEngine("h", 0.0, 1).connect(None, None, None)


def test_the_peer_hears_of_us_before_an_interval_is_over() -> None:
    ticking = engine(3.0, "0,3000")
    wrote, now, last, longest = True, 100.0, 100.0, 0.0
    for at in range(60):
        now += 1.0
        if at % 7 == 3:
            wrote = True  # something else just before the tick
            longest, last = max(longest, now - last), now
        if ticking.tick(now, heard=False, wrote=wrote) == HEARTBEAT:
            longest, last = max(longest, now - last), now
        wrote = False
    assert longest < 3.0


def silent_from(last: float) -> float:
    """When the engine says that a peer is gone which promised a beat every 3 s, and sent bytes until ``last``."""
    ticking, before = engine(3.0, "3000,3000"), 100.0
    for _ in range(100):
        now = ticking.next_deadline(before)
        assert now is not None
        assert now > before
        try:
            ticking.tick(now, heard=before < last, wrote=False)
        except ConnectionLostError:
            return now
        before = now
    raise AssertionError("it was never noticed")


def test_a_peer_that_is_silent_from_the_start_is_gone_after_two_and_a_half_intervals() -> None:
    assert silent_from(100.0) == pytest.approx(107.5)


@pytest.mark.parametrize("after", [0.01, 0.5, 0.99, 1.01, 1.99, 5.7, 29.9])
def test_a_peer_that_falls_silent_is_gone_within_three_intervals(after: float) -> None:
    assert 7.5 <= silent_from(100.0 + after) - (100.0 + after) < 9.0


def test_a_first_beat_that_takes_two_intervals_and_is_late_is_no_silence() -> None:
    ticking, now = engine(3.0, "3000,0"), 100.0  # ActiveMQ Classic's takes up to 2
    while now < 107.0:
        ticking.tick(now, heard=False, wrote=False)
        now += 0.01
    ticking.tick(now, heard=True, wrote=False)
    with pytest.raises(ConnectionLostError, match=r"nothing came for 8.0 s, where .* every 3 s"):
        ticking.tick(now + 8.0, heard=False, wrote=False)


def test_whatever_came_counts_as_a_sign_of_life_also_after_a_pause_of_ours() -> None:
    ticking = engine(3.0, "3000,0")
    assert ticking.tick(1000.0, heard=True, wrote=False) == b""


def test_a_server_that_promises_nothing_is_never_blamed() -> None:
    ticking = engine(3.0, "0,3000")
    ticking.tick(9999.0, heard=False, wrote=True)


def test_what_follows_connected_is_not_lost() -> None:
    engine = StompEngine("h", 0.0, 1000)
    assert engine.connected(b"CONNECTED\nversion", 0.0) is None
    assert engine.connected(b":1.2\n\n\0\nMESSAGE\na:b\n\nx\0", 0.0) == [(b"MESSAGE\na:b\n", b"x")]
