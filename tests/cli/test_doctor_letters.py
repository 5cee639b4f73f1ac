"""`redelivery doctor` names a queue of dead letters as such, on every pair, whatever the queue is called."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.cli.brokers import HIDDEN, LOOKED_AT, bodies, fail, run, url

__all__ = ["url"]


@pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
def test_a_queue_of_dead_letters_is_called_so(url: str) -> None:
    queue, letters = f"doctor.{uuid4().hex}", f"doctor.{uuid4().hex}.failed"
    fail(url, queue, letters, *[ValueError("x")] * 3)
    said = run(url, "doctor", "--queue", letters, "--watch", "0").output
    assert f"3 dead letters are in {letters}" in said
    assert f"messages are in {letters}" not in said
    assert bodies(url, letters) == ["0", "1", "2"]


@pytest.mark.parametrize("url", HIDDEN, indirect=True)
def test_where_nobody_can_look_it_is_called_so_too(url: str) -> None:
    letters = f"doctor.{uuid4().hex}.DLQ"
    said = run(url, "doctor", "--queue", letters, "--watch", "0").output
    assert f"not checked: the depths of queues (of them {letters}, where dead letters are): " in said
