"""The suite once more where addresses and queues have other names, which the broker's own configuration has made.

`named.py` says by which names. The long form has the whole files, the short form a few of their tests, in turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conformance.copies import again, originals
from tests.conformance.named import PLACES, Place, broker_xml, embedded_xml, hornetq_xml, parameters
from tests.conformance.pairs import Pair
from tests.conformance.stage import Stage
from tests.promises.real.started import ARTEMIS, HORNETQ, running
from tests.run import forms

from redelivery.broker import EmbeddedBroker

pytestmark = [pytest.mark.short_form, pytest.mark.timeout(180)]

SAMPLE: Final = (
    "test_r7_rollback_again_and_again_keeps_the_order",
    "test_everything_of_one_session_commits_as_one",
    "test_the_shared_strategy_reports_origin_cause_and_count",
    "test_a_commit_whose_answer_is_lost_is_a_commit",
)
# All but those about topics, about connecting itself, about making queues, and about what no name has a part in.
FILES: Final = (
    *("ack_modes", "batches", "browser", "close", "container_outages", "counts", "dead_letter_record", "dead_letters"),
    *("epochs", "events", "exhaustion", "first_delivery", "groups", "kinds", "limit_over_losses", "listeners", "order"),
    *("priority", "publisher", "receive_body", "reconnect", "recover", "repeated_sends", "request", "rollback"),
    *("same_result", "selectors", "sessions_apart", "threads", "timing", "transactions", "undone_sends"),
)
CLOSED: Final = "test_close__deferred_close_a_rollback_after_it_gives_the_messages_back"
_brokers: Final = count()
_queues: Final = {each.name: each.queues() for each in PLACES}


@pytest.fixture(scope="module")
def artemis() -> Iterator[dict[str, str]]:
    """The URLs of a real Artemis that is started with the file when a test first asks."""
    with running(ARTEMIS, broker_xml) as broker:
        yield {each: f"{each}://{broker.host}:{broker.ports[each]}" for each in ("stomp", "amqp")}


@pytest.fixture(scope="module")
def hornetq() -> Iterator[dict[str, str]]:
    """The same of HornetQ, whose queues are called otherwise than their addresses."""
    with running(HORNETQ, hornetq_xml) as broker:
        yield {"stomp": f"stomp://{broker.host}:{broker.ports['stomp']}"}


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    return request.param  # type: ignore[no-any-return]  # pytest's


@pytest.fixture
def pair(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[Pair]:
    kind = place.kind
    if kind.protocol == "amqp":
        pytest.importorskip("proton")
    if kind.broker is not None:
        yield Pair(kind, request.getfixturevalue(kind.broker)[kind.protocol])
        return
    file = tmp_path / ("hornetq-configuration.xml" if place.file == "hornetq" else "broker.xml")
    file.write_text(embedded_xml(place), encoding="utf-8")
    ports: dict[str, Any] = {f"{kind.protocol}_port": 0} if kind.remote else {}
    with EmbeddedBroker(name=f"addresses-{next(_brokers)}", config=str(file), **ports) as broker:
        yield Pair(kind, getattr(broker, f"{kind.protocol}_url"), broker)


@pytest.fixture(autouse=True)
def _possible(request: pytest.FixtureRequest, place: Place) -> None:
    if place.pair == "vm" and request.node.originalname == CLOSED:
        pytest.skip(place.kind.cannot["redelivered after a close"])


@pytest.fixture
def stage(pair: Pair, place: Place) -> Iterator[Stage]:
    queues = _queues[place.name] if pair.real else place.queues()
    with ExitStack() as opened:
        yield Stage(pair, next(queues), opened, queues, place.said)


for _file in FILES:
    _module, _tests = originals(_file)
    for _name, _test in _tests.items():
        if _test.__annotations__.keys().isdisjoint(("desk", "own")):  # which are about topics, and about making queues
            _marks = [] if _name in SAMPLE else [pytest.mark.long_form]
            _places = parameters(SAMPLE.index(_name) if _name in SAMPLE and forms.brief() else None)
            _marks.append(pytest.mark.parametrize("place", _places, indirect=True))
            globals()[f"test_{_file}__{_name.removeprefix('test_')}"] = again(_test, _module, *_marks)
