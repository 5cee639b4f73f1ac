"""Every public coroutine is cancelled in each of its waits; afterwards ledgers, wire and broker are as they should be.

Enumerated: the calls by `rows.ROWS`, which a test compares with the classes, and the waits by counting them.
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.aio.cancellation.checks import watched
from tests.client.aio.cancellation.rows import ROWS
from tests.client.aio.cancellation.scenes import Row, congest, lose, play
from tests.client.gated import Site

from redelivery import aio
from redelivery.broker import EmbeddedBroker
from redelivery.client.aio.made import Made

long_form = pytest.mark.long_form
AWAITED = ("Made[", "AsyncIterator[", "Awaitable[", "Coroutine[")
EVERY = pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
_FIRST = ("receive", "receive_nowait", "listen", "commit-TRANSACTED", "send", "close_session")  # in the short form
FEW = pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.id, marks=[] if row.id in _FIRST else long_form) for row in ROWS]
)


def public_coroutines() -> set[str]:
    """Of what `redelivery.aio` shows, whatever is to be awaited, iterated or entered; by where it is defined."""
    found: set[str] = set()
    for thing in (*(getattr(aio, name) for name in aio.__all__), Made):
        functions = [thing] if inspect.isfunction(thing) else [each for _, each in inspect.getmembers(thing, _callable)]
        found.update(function.__qualname__ for function in map(inspect.unwrap, functions) if _awaited(function))
    return found


def _callable(thing: Any) -> bool:
    return inspect.isfunction(thing) and (not thing.__name__.startswith("_") or thing.__name__.startswith("__a"))


def _awaited(function: Callable[..., Any]) -> bool:
    returned = str(inspect.unwrap(function).__annotations__.get("return", ""))
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or returned.startswith(AWAITED)
        or function.__name__ == "__await__"
    )


def test_every_public_coroutine_has_a_row() -> None:
    assert {name for row in ROWS for name in row.names} == public_coroutines()


def run(site: Site | EmbeddedBroker, url: str, row: Row, **options: Any) -> int:
    broker = site.broker if isinstance(site, Site) else site
    with watched() as wrong, asyncio.Runner(debug=True) as runner:
        waits = runner.run(play(broker, url, row, **options))
    assert wrong == []
    return waits


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"cancelled-{uuid.uuid4().hex}") as broker:
        yield broker


@EVERY
def test_a_call_that_is_cancelled_loses_nothing(broker: EmbeddedBroker, row: Row) -> None:
    run(broker, broker.vm_url, row)


@pytest.fixture(scope="module", params=["stomp", pytest.param("amqp", marks=long_form)])
def gated(request: pytest.FixtureRequest) -> Iterator[Site]:
    if request.param == "amqp":
        pytest.importorskip("proton")
    with ExitStack() as opened:
        yield Site(request.param, opened)


@FEW
def test_nor_over_a_wire(gated: Site, row: Row) -> None:
    run(gated, gated.url, row)


@long_form
@EVERY
@pytest.mark.parametrize("by", ["vm", "wire"])
def test_nor_with_a_prefetch_of_0(broker: EmbeddedBroker, gated: Site, by: str, row: Row) -> None:
    site, url = (broker, broker.vm_url) if by == "vm" else (gated, gated.url)
    run(site, url, row, prefetch=0)


@FEW
def test_nor_while_the_connection_is_away(gated: Site, row: Row) -> None:
    run(gated, gated.url, row, gate=gated.gate, trouble=lose)


@long_form
@EVERY
def test_nor_while_the_peer_takes_nothing(gated: Site, row: Row) -> None:
    run(gated, gated.url, row, trouble=congest)
