"""The benchmark of the embedded broker with a store: its code, at a small size and against itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import stored

from redelivery.broker import EmbeddedBroker


def test_each_step_moves_what_the_step_before_it_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "WARM_UP", 1)
    with (
        EmbeddedBroker("bench-memory", stomp_port=0) as theirs,
        EmbeddedBroker("bench-stored", stomp_port=0, store=tmp_path / "store.db") as ours,
    ):
        found = list(stored.compare(theirs.stomp_url, ours.stomp_url, 2))
        assert [title for title, _, _ in found] == list(stored.STEPS)
        assert all(their_speed > 0 and our_speed > 0 for _, their_speed, our_speed in found)
        assert [ours.core.call(lambda engine, _: len(engine.queues))] == [0], "all was received"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_store_is_filled_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored.fill(tmp_path / "store.db", 1500)
    said = capsys.readouterr().out
    assert "browse of the first 100: " in said
    assert "start: " in said
