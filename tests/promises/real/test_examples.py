"""The documents' own examples, by their own numbers, on the real Artemis and HornetQ.

All queues of a broker are played at once, since each waits for half a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from tests.differential.scenario import Manner, Played, Scenario
from tests.promises.real.started import ARTEMIS, HORNETQ, artemis_with, hornetq_with, running, setting

promise = pytest.mark.promise
pytestmark = [pytest.mark.long_form, pytest.mark.timeout(200)]
SLOW: Final = 1500  # milliseconds that a delivery may come late on a machine that does other things
EXAMPLE_1: Final = {"redelivery_delay": 5000, "redelivery_delay_multiplier": 2, "max_redelivery_delay": 15000}
EXAMPLE_2: Final = {
    "redelivery_delay": 1000,
    "redelivery_delay_multiplier": 1,
    "max_redelivery_delay": 15000,
    "redelivery_collision_avoidance_factor": 0.5,
}
SETTING: Final = {"redelivery_delay_multiplier": 1.5, "redelivery_delay": 5000, "max_redelivery_delay": 50000}


def scenario(queue: str, most: int, manner: Manner = "modified-failed", dead: tuple[str, ...] = ()) -> Scenario:
    return Scenario(queue, "", queue, manner, most=most, patience=18.0, dead=dead)


@pytest.fixture(scope="module")
def on_artemis() -> Iterator[Mapping[str, Played]]:
    pytest.importorskip("proton")
    from tests.differential.player import Place, play

    queues = ("example1", "example2", "capped", "exampleQueue", "deadLetterAddress")
    settings = (
        setting("example1", **EXAMPLE_1),
        setting("example2", **EXAMPLE_2),
        setting("capped", redelivery_delay=3000, max_redelivery_delay=3000, redelivery_collision_avoidance_factor=1.0),
        setting(
            "exampleQueue",
            **SETTING,
            redelivery_collision_avoidance_factor=0.15,
            dead_letter_address="deadLetterAddress",
            max_delivery_attempts=3,
        ),
    )
    played = (
        scenario("example1", 4),
        scenario("example2", 9),
        scenario("capped", 9),
        scenario("exampleQueue", 4, dead=("deadLetterAddress",)),
    )
    with running(ARTEMIS, artemis_with("".join(settings), *queues)) as broker:
        place = Place(f"amqp://{broker.host}:{broker.ports['amqp']}", None)
        with ThreadPoolExecutor(len(played)) as threads:
            results = threads.map(lambda each: play(each, place), played)
            yield {each.queue: result for each, result in zip(played, results, strict=True)}


@pytest.fixture(scope="module")
def on_hornetq() -> Iterator[Mapping[str, Played]]:
    pytest.importorskip("proton")
    from tests.differential.player import Place, play

    queues = ("example", "exampleQueue")
    settings = setting("jms.queue.example", **EXAMPLE_1) + setting("jms.queue.exampleQueue", **SETTING)
    text = hornetq_with(settings, *(f"jms.queue.{each}" for each in queues))
    with running(HORNETQ, text) as broker:
        place = Place(None, f"stomp://{broker.host}:{broker.ports['stomp']}", prefix="jms.queue.")
        with ThreadPoolExecutor(len(queues)) as threads:
            played = [scenario("example", 4, "stomp-disconnect"), scenario("exampleQueue", 3, "stomp-disconnect")]
            results = threads.map(lambda each: play(each, place), played)
            yield {each.queue: result for each, result in zip(played, results, strict=True)}


def assert_waits(played: Played, *bands: tuple[float, float]) -> None:
    assert len(played.waits) == len(bands), played
    for wait, (least, most) in zip(played.waits, bands, strict=True):
        assert least - 20 <= wait <= most + SLOW, played.waits


def exactly(*milliseconds: int) -> list[tuple[float, float]]:
    return [(each, each) for each in milliseconds]


@promise("artemis-growth")
@promise("artemis-example-1")
@pytest.mark.together("examples on artemis")
def test_example_1_of_artemis(on_artemis: Mapping[str, Played]) -> None:
    assert_waits(on_artemis["example1"], *exactly(5000, 10000, 15000))


@promise("artemis-example-2")
@pytest.mark.together("examples on artemis")
def test_example_2_of_artemis_draws_within_its_band(on_artemis: Mapping[str, Played]) -> None:
    """The document's own draws (875, 1375, 975) are in that band; a real broker draws randomly."""
    waits = on_artemis["example2"].waits
    assert_waits(on_artemis["example2"], *[(500, 1500)] * 8)
    assert max(waits) - min(waits) > 50, "nothing was drawn"


@promise("seen-artemis-cap")
@pytest.mark.together("examples on artemis")
def test_the_maximum_of_artemis_comes_after_collision_avoidance(on_artemis: Mapping[str, Played]) -> None:
    """Without that, a quarter of these delays would be above 4500."""
    assert_waits(on_artemis["capped"], *[(0, 3000)] * 8)


@promise("artemis-example-setting")
@promise("artemis-example-dead-letter")
@promise("artemis-two-remedies")
@pytest.mark.together("examples on artemis")
def test_the_example_setting_of_artemis(on_artemis: Mapping[str, Played]) -> None:
    played = on_artemis["exampleQueue"]
    assert [count for _, count in played.deliveries] == [0, 1, 2]
    assert_waits(played, *[(each * 0.85, each * 1.15) for each in (5000, 7500)])
    assert [(where, body) for where, body, _ in played.dead] == [("deadLetterAddress", "1")]


@promise("hornetq-example-growth")
@pytest.mark.together("examples on hornetq")
def test_the_example_of_hornetq(on_hornetq: Mapping[str, Played]) -> None:
    assert_waits(on_hornetq["example"], *exactly(5000, 10000, 15000))


@promise("hornetq-example-setting")
@pytest.mark.together("examples on hornetq")
def test_the_example_setting_of_hornetq(on_hornetq: Mapping[str, Played]) -> None:
    assert_waits(on_hornetq["exampleQueue"], *exactly(5000, 7500))
