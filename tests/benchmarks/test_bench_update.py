"""Cases that were run again stand in the place of those of the complete run, and the page says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import report, update
from benchmarks.cases import Case, Contender
from benchmarks.places import Place
from benchmarks.results import BenchmarkError, Comparison, Curve, Measure, Profile, Results, Stored, Timing
from benchmarks.stopwatch import Spent

NAMES = ("stomp/fake/auto", "stomp/rabbitmq/auto", "amqp/rabbitmq/auto", "amqp/rabbitmq/send")
TITLES = {"auto": "AUTO", "send": "send, one by one"}


def compared(name: str, rate: float) -> Comparison:
    protocol, broker, key = name.split("/")
    place = f"{protocol}/{broker}"
    raw = Timing("raw", 1_000, 900, 1_100, 90.0)
    return Comparison(place, place, key, TITLES[key], Timing("redelivery", rate, rate, rate, 20.0), (raw,), {"raw": 2})


def results(*comparisons: Comparison, date: str = "2026-01-01") -> Results:
    ran = tuple(f"{each.place}/{each.key}" for each in comparisons)
    return Results({"cores": "2", "date": date}, {"rounds": 5, "scale": 1}, comparisons, (), (), (), (), ran=ran)


def old() -> Results:
    profiles = tuple(Profile("amqp/rabbitmq", title, "Java", 0.5, 0.2, (("x", 0.4),)) for title in TITLES.values())
    return replace(
        results(*(compared(name, 1_000) for name in NAMES)),
        measures=(Measure("late", "late", 25, "ms", 20), Measure("idle", "idle", 1, "ms", 2)),
        profiles=profiles,
        notes=("Without hornetq: no Java.", "Without rabbitmq: it did not start."),
        failures=("amqp/rabbitmq/auto without the Java client failed: x", "stomp/rabbitmq/auto failed: x"),
        stored=(Stored("stomp", "AUTO, send", 10.0, 20.0, (1.9, 2.1), 0.5),),
        curves=(Curve("one", "1 partition", ((1_000, 10.5), (10_000, 20.0))),),
    )


def test_the_chosen_case_is_replaced_where_it_stood_and_the_others_stay() -> None:
    new = results(compared("amqp/rabbitmq/auto", 5_000))
    merged = update.merged(old(), new, NAMES)
    assert [f"{each.place}/{each.key}" for each in merged.comparisons] == list(NAMES)
    assert [each.mine.median for each in merged.comparisons] == [1_000, 1_000, 5_000, 1_000]


def test_its_failures_profiles_and_notes_are_those_of_the_later_run() -> None:
    merged = update.merged(old(), replace(results(compared("amqp/rabbitmq/auto", 5_000)), notes=("New.",)), NAMES)
    assert merged.failures == ("stomp/rabbitmq/auto failed: x",)
    assert [each.title for each in merged.profiles] == [TITLES["send"]]
    assert merged.notes == ("Without hornetq: no Java.", "New.")


def test_a_case_that_fails_now_has_no_row() -> None:
    failed = replace(results(), ran=("stomp/fake/auto",), failures=("stomp/fake/auto failed: x",))
    merged = update.merged(old(), failed, NAMES)
    assert "stomp/fake/auto" not in [f"{each.place}/{each.key}" for each in merged.comparisons]
    assert merged.failures[0] == "stomp/fake/auto failed: x"


def test_a_case_that_was_given_up_leaves_nothing() -> None:
    merged = update.merged(old(), results(compared("stomp/fake/auto", 5_000)), [*NAMES[:1], *NAMES[2:]])
    assert "stomp/rabbitmq" not in [each.place for each in merged.comparisons]
    assert merged.failures == ("amqp/rabbitmq/auto without the Java client failed: x",)


def test_numbers_and_curves_are_replaced_one_by_one() -> None:
    later = replace(
        results(),
        ran=("timers",),
        measures=(Measure("late", "late", 5, "ms", 20),),
        curves=(Curve("two", "2 partitions", ((1_000, 11.0),)),),
    )
    merged = update.merged(old(), later, NAMES)
    assert [(each.key, each.value) for each in merged.measures] == [("late", 5), ("idle", 1)]
    assert [each.key for each in merged.curves] == ["one", "two"]


def test_a_step_of_the_stored_broker_is_replaced_by_its_protocol_and_title() -> None:
    later = (Stored("stomp", "AUTO, send", 10.0, 30.0, (3.0,), 0.5), Stored("amqp", "AUTO, send", 1.0, 2.0, (2.0,), 1))
    merged = update.merged(old(), replace(results(), ran=("stored/stomp",), stored=later), NAMES)
    assert merged.stored == later


def test_an_old_run_is_judged_by_the_targets_of_today() -> None:
    def case(target: float) -> Case:
        rival = Contender("raw", _never, {"stomp/fake": target}, cpu_targets={"stomp/fake": 4.5})
        return Case("auto", TITLES["auto"], (Contender("redelivery", _never), rival), None)

    judged = update.judged(results(compared("stomp/fake/auto", 3_000)), {"stomp": [case(3)], "amqp": [case(9)]})
    (row,) = judged.comparisons
    assert (row.targets["raw"], row.cpu_targets) == (3, {"raw": 4.5})
    assert row.reached(row.others[0]), "3 times as fast, 4.5 times as cheap"
    (later,) = update.judged(judged, {"stomp": [case(3.1)]}).comparisons
    assert not later.reached(later.others[0])


def _never(_place: Place, _queue: str, _count: int) -> Spent:
    raise AssertionError("nothing is measured")


def test_the_page_says_what_was_run_again_and_when() -> None:
    first = update.merged(old(), results(compared(NAMES[2], 5_000), date="2026-01-02"), NAMES)
    second = update.merged(first, results(compared(NAMES[0], 5_000), date="2026-01-03"), NAMES)
    head, _, _ = report.markdown(second, None).partition("## ")
    assert "Run again later, on 2026-01-02" in head
    assert "another run than the others: amqp/rabbitmq/auto." in head
    assert "another run than the others: stomp/fake/auto." in head
    assert "date 2026-01-01" in head


def test_the_page_of_a_complete_run_says_nothing_of_it() -> None:
    assert "Run again" not in report.markdown(old(), None)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    first, *rest = old().comparisons
    later = replace(first, unmeasured=("bare socket",))
    whole = replace(old(), comparisons=(later, *rest), again={"stomp/fake/auto": "2026-01-02"})
    report.write_json(whole, file)
    assert update.read(file) == whole


def test_a_file_that_is_not_there_or_is_another_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="complete run"):
        update.read(tmp_path / "nothing.json")
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"machine": {}}), encoding="utf-8")
    with pytest.raises(BenchmarkError, match="complete run of this release"):
        update.read(other)


@pytest.mark.parametrize(("cores", "scale", "named"), [("4", 1, "cores 2"), ("2", 0.1, "scale 1")])
def test_another_machine_or_a_shorter_run_does_not_belong_on_the_page(cores: str, scale: float, named: str) -> None:
    with pytest.raises(BenchmarkError, match=named):
        update.check(old(), {"cores": cores, "date": "2026-02-02"}, {"rounds": 5, "scale": scale})


def test_another_date_does() -> None:
    update.check(old(), {"cores": "2", "date": "2026-02-02", "extra": "1"}, {"rounds": 5, "scale": 1})
