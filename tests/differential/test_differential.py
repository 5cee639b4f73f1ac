"""Each scenario on the real broker and on the embedded one, both with the same file: they do the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.differential.compare import differences
from tests.differential.files import NAMES, spec_of, text_of
from tests.differential.scenario import Played, Scenario
from tests.differential.scenarios import SCENARIOS

from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.native import NativeBroker

promise = pytest.mark.promise

ROOT = Path(__file__).parents[2]
REPORT = "REDELIVERY_DIFFERENTIAL_REPORT"  # a file that gets a line of JSON for each scenario
_PORTS = {"amqp": 1, "stomp": 2, "openwire": 3}  # in the text for the embedded broker, which skips them


@pytest.fixture(scope="module", params=NAMES)
def real(request: pytest.FixtureRequest) -> Iterator[tuple[str, NativeBroker]]:
    with closing(NativeBroker(spec_of(request.param))) as broker:
        broker.start()
        yield request.param, broker


@promise("artemis-example-1")
@promise("artemis-example-dead-letter")
@promise("seen-artemis-delays")
@promise("seen-artemis-total")
@promise("seen-artemis-maximum")
@promise("seen-artemis-merge")
@promise("seen-artemis-order")
@promise("seen-artemis-unbound")
@promise("seen-artemis-suffix")
@promise("seen-artemis-again")
@promise("seen-classic-plugin-count")
@promise("seen-classic-gone")
@promise("seen-classic-whole-name")
@promise("seen-broker-j-maximum")
@promise("seen-broker-j-levels")
@promise("seen-broker-j-discarded")
@promise("seen-broker-j-closing")
@promise("artemis-redelivery-defaults")
@promise("artemis-two-remedies")
@promise("artemis-wildcards")
@promise("artemis-overtaking")
@promise("artemis-growth")
@promise("artemis-attempts-default")
@promise("artemis-removal")
@promise("artemis-endless-address")
@promise("artemis-properties")
@promise("artemis-auto-create")
@promise("artemis-example-auto-create")
@promise("hornetq-dead-letter")
@promise("hornetq-properties")
@promise("hornetq-example-growth")
@promise("classic-poison")
@promise("classic-individual")
@promise("classic-expired")
@promise("classic-non-persistent")
@promise("classic-discarding")
@promise("classic-broker-redelivery")
@promise("classic-fallback")
@promise("classic-exceeded")
@promise("seen-classic-topic")
@promise("seen-classic-loop")
@promise("seen-classic-plugin-endless")
@promise("seen-classic-plugin-exponential")
@promise("seen-classic-plugin-expired")
@promise("classic-order")
@promise("seen-hornetq-expiry")
@promise("seen-broker-j-this-name")
@promise("qpid-maximum")
@promise("qpid-levels")
@pytest.mark.long_form
@pytest.mark.timeout(600)
def test_both_do_the_same_with_the_same_file(real: tuple[str, NativeBroker], tmp_path: Path) -> None:
    pytest.importorskip("proton")
    from tests.differential.player import Place, play

    file, broker = real
    ports = {name: f"{name}://{broker.host}:{port}" for name, port in broker.ports.items()}
    prefix, topics = {"artemis": ("", ""), "hornetq": ("jms.queue.", "jms.topic.")}.get(file, ("/queue/", "/topic/"))
    amqp = None if file == "hornetq" else ports["amqp"]  # its AMQP cannot acknowledge
    there = Place(amqp, ports.get("stomp"), prefix=prefix, topics=topics, anycast=file == "artemis")
    config = tmp_path / NAMES[file][1]
    config.write_text(text_of(file, broker.host, _PORTS), encoding="utf-8")

    def both(scenario: Scenario) -> tuple[Played, Played, list[str]]:
        with EmbeddedBroker("differential", config=config, stomp_port=0, amqp_port=0) as embedded:
            here = replace(there, amqp=amqp and embedded.amqp_url, stomp=embedded.stomp_url)
            with ThreadPoolExecutor(1) as thread:
                ours = thread.submit(play, scenario, here)
                theirs = play(scenario, there)
                return theirs, ours.result(), differences(scenario, theirs, ours.result())

    wrong = []
    for scenario in (each for each in SCENARIOS if each.file == file):
        theirs, ours, found = both(scenario)
        if found and not scenario.differs:  # once more: a machine that does other things delays what is timed
            theirs, ours, found = both(scenario)
        _report(scenario, theirs, ours, found)
        if bool(found) != bool(scenario.differs):
            wrong.append(f"{scenario.name}: {'; '.join(found) or 'the difference that was expected is gone'}")
    assert wrong == []


def _report(scenario: Scenario, theirs: Played, ours: Played, found: list[str]) -> None:
    if REPORT in os.environ:
        row = {"scenario": asdict(scenario), "real": asdict(theirs), "embedded": asdict(ours), "differences": found}
        with Path(os.environ[REPORT]).open("a", encoding="utf-8") as output:
            output.write(json.dumps(row) + "\n")


def test_there_are_sixty_scenarios_of_names_of_their_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 60
    assert {scenario.file for scenario in SCENARIOS} == set(NAMES)


def test_the_page_has_each_scenario() -> None:
    page = (ROOT / "docs" / "differential.md").read_text(encoding="utf-8")
    missing = [each.name for each in SCENARIOS if f"| {each.name} |" not in page]
    assert missing == [], "run scripts/differential-report"


@pytest.mark.parametrize("file", NAMES)
def test_each_file_is_understood(file: str, tmp_path: Path) -> None:
    config = tmp_path / NAMES[file][1]
    config.write_text(text_of(file, "127.0.0.1", _PORTS), encoding="utf-8")
    assert EmbeddedBroker("differential", config=config).core.config.rules is not None
