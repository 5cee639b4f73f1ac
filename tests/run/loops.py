"""The event loops that the asyncio suites run on: asyncio's own, and uvloop's (the extra loop-test, in CI)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.run import forms


def kinds(*others: str, marks: pytest.MarkDecorator | tuple[()] = ()) -> list[Any]:
    """Parameters: these, and uvloop, of which the first form has nothing."""
    return [*others] if forms.form() == forms.FIRST else [*others, pytest.param("uvloop", marks=marks)]


LOOPS: Final = kinds("asyncio")


def use(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the test's loops be of this kind, those of `asyncio.run` too; skips where it is not installed."""
    if kind == "asyncio":
        return
    made = _uvloop()
    monkeypatch.setattr(asyncio, "new_event_loop", made)
    monkeypatch.setattr(asyncio.events, "new_event_loop", made)


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        assert not os.environ.get("CI"), "not installed: uvloop; the extra `loop-test` has it"
        pytest.skip("not installed: uvloop (the extra loop-test)")
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make
