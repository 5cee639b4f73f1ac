"""The core of the suite where addresses and queues have other names, which the broker's own configuration has made.

Each test sends to an ANYCAST address, and consumes by the address' name; its queue is called otherwise. A MULTICAST one
is named with its queue. The short form has a few tests, on the real Artemis and on the embedded broker with the same
file; the longer ones have more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import pytest
from tests.conformance.pairs import DEAD_LETTERS, KINDS, Pair
from tests.conformance.stage import Stage
from tests.differential.files import text_of
from tests.promises.real.started import ARTEMIS, running

from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.spec import Site

pytestmark = [pytest.mark.short_form, pytest.mark.together("addresses"), pytest.mark.timeout(120)]

FILES: Final = ("rollback", "transactions", "exhaustion")
SAMPLE: Final = (
    "test_r7_rollback_destroys_what_was_sent_and_recovers_what_was_received",
    "test_r7_rollback_again_and_again_keeps_the_order",
    "test_everything_of_one_session_commits_as_one",
    "test_the_shared_strategy_reports_origin_cause_and_count",
)
LONG: Final = (
    "test_r7_commit_makes_sends_and_receives_one",
    "test_r7_nothing_sent_is_seen_before_commit",
    "test_r7_the_next_transaction_starts_at_once",
    "test_transaction_block_rolls_back_on_an_exception_and_raises_it",
    "test_two_sessions_of_one_connection_do_not_mix_their_transactions",
    "test_the_cause_is_the_exception_that_left_the_transaction_block",
    "test_each_message_is_poisoned_by_its_own_count_never_the_batch",
)
ADDRESSES: Final = 250  # of each kind, one for each test


@dataclass(frozen=True, slots=True)
class Place:
    """A pair, and the kind of its queues."""

    pair: str
    routing: str
    broker: str | None = None

    @property
    def name(self) -> str:
        """Of its tests."""
        return f"{self.pair}-{self.routing}"


PLACES: Final = (
    Place("stomp-artemis", "anycast", "artemis"),
    Place("stomp-artemis", "multicast", "artemis"),
    Place("amqp-artemis", "anycast", "artemis"),
    Place("vm", "anycast"),
    Place("stomp-embedded", "anycast"),
    Place("stomp-embedded", "multicast"),
    Place("amqp-embedded", "anycast"),
)
_numbers: Final = count()


def address(name: str, queue: str, routing: str) -> str:
    return f'<address name="{name}"><{routing}><queue name="{queue}"/></{routing}></address>'


def settings() -> str:
    """The part of broker.xml that both brokers get."""
    made = [address(DEAD_LETTERS, "of.all.dead.letters", "anycast")]
    for routing in ("anycast", "multicast"):
        made += [address(f"{routing}.{each}", f"queue.{routing}.{each}", routing) for each in range(ADDRESSES)]
    every = "<max-delivery-attempts>-1</max-delivery-attempts><auto-delete-queues>false</auto-delete-queues>"
    return (
        f'<address-settings><address-setting match="#">{every}</address-setting></address-settings>'
        f"<addresses>{''.join(made)}</addresses>"
    )


def broker_xml(site: Site) -> str:
    usual = text_of("artemis", site.host, site.ports)
    return usual[: usual.index("<address-settings>")] + settings() + usual[usual.index("</addresses>") + 12 :]


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """The URLs of a real Artemis that is started with the file when a test first asks."""
    with running(ARTEMIS, broker_xml) as broker:
        yield {each: f"{each}://{broker.host}:{broker.ports[each]}" for each in ("stomp", "amqp")}


@pytest.fixture(params=PLACES, ids=[each.name for each in PLACES])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    place: Place = request.param
    kind = KINDS[place.pair]
    if kind.protocol == "amqp":
        pytest.importorskip("proton")
    if kind.real:
        yield Pair(kind, request.getfixturevalue("urls")[kind.protocol])
        return
    file = tmp_path / "broker.xml"
    file.write_text(f"<configuration><core>{settings()}</core></configuration>")
    ports: dict[str, Any] = {f"{kind.protocol}_port": 0} if kind.remote else {}
    with EmbeddedBroker(name=f"addresses-{next(_numbers)}", config=str(file), **ports) as broker:
        yield Pair(kind, getattr(broker, f"{kind.protocol}_url"), broker)


@pytest.fixture
def stage(request: pytest.FixtureRequest, pair: Pair) -> Iterator[Stage]:
    place: Place = request.node.callspec.params["pair"]
    name = f"{place.routing}.{next(_numbers) % ADDRESSES}"
    if place.routing == "multicast":  # a consumer of the address alone would be one more subscriber
        name = f"{name}::queue.{name}"
    with ExitStack() as opened:
        yield Stage(pair, name, opened)


def copied(test: FunctionType, marks: list[pytest.Mark]) -> Callable[..., None]:
    """The test, of this module."""
    copy = FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    copy.__dict__.update(test.__dict__)
    copy.__annotations__ = test.__annotations__
    copy.pytestmark = [*getattr(test, "pytestmark", []), *marks]  # type: ignore[attr-defined]  # pytest's own
    return copy


for _file in FILES:
    _module = import_module(f"tests.conformance.test_{_file}")
    for _name, _test in list(vars(_module).items()):
        if _name in SAMPLE or _name in LONG:
            globals()[_name] = copied(_test, [] if _name in SAMPLE else [pytest.mark.long_form.mark])
