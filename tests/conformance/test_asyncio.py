"""The suite once more over `redelivery.aio`: the same tests, whose stage opens connections of an event loop.

The short form has each rule once, on one of the pairs without a real broker, in one of its modes and on one kind of
event loop, in turns: the pages of both shells have one source. The long form has all.
"""

from __future__ import annotations

from typing import Final

import pytest
from tests.conformance.blocking import AsyncioStage
from tests.conformance.copies import again, originals
from tests.conformance.stage import Stage
from tests.run.loops import kinds, use

# All but those that open no connection by their stage, speak of connecting itself, or need `send_async` (volume).
SUITE: Final = (
    *("ack_modes", "batches", "big_bodies", "browser", "close", "counts", "dead_letters", "destinations", "events"),
    *("dead_letter_record", "declaring"),
    *(
        "composite",
        "epochs",
        "exclusive",
        "exhaustion",
        "first_delivery",
        "groups",
        "java_faults",
        "kinds",
        "limit_over_losses",
        "listeners",
        "order",
        "priority",
        "publisher",
        "receive_body",
        "reconnect",
        "recover",
        "repeated_sends",
        "request",
        "rollback",
    ),
    *(
        "same_result",
        "selectors",
        "sessions_apart",
        "shared_subscriptions",
        "subscriptions",
        "temporary",
        "threads",
        "timing",
        "transactions",
        "undone_sends",
    ),
)
pytestmark = pytest.mark.in_turns()
LONG: Final = ("batches", "big_bodies", "order", "timing")  # what they are about lies below both shells


@pytest.fixture(autouse=True, params=kinds("asyncio", marks=pytest.mark.long_form(but="stomp-embedded")))
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test on each kind of event loop."""
    use(request.param, monkeypatch)


@pytest.fixture
def stage_class() -> type[Stage]:
    return AsyncioStage


for _name in SUITE:
    _mark = pytest.mark.long_form() if _name in LONG else pytest.mark.everywhere_in_long_form
    _module, _tests = originals(_name)
    for _test, _function in _tests.items():
        globals()[f"test_{_name}__{_test.removeprefix('test_')}"] = again(_function, _module, _mark)
