"""The page, the table and the plot say what the numbers say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import plot, report
from benchmarks.results import BARE, Comparison, Curve, Measure, Profile, Results, Stored, Timing

OURS = Timing("redelivery", 30_000, 29_000, 31_000, 20.5)
RAW = Timing("raw", 10_000, 9_000, 11_000, 90.0)
JAVA = Timing("Java", 60_000, 50_000, 70_000)


def results(target: float) -> Results:
    compared = Comparison("amqp/artemis", "AMQP, Artemis", "auto", "AUTO", OURS, (JAVA, RAW), {"raw": target})
    return Results(
        machine={"cores": "2"},
        settings={"rounds": 5, "scale": 1},
        comparisons=(compared,),
        measures=(Measure("late", "late", 25, "ms", 20), Measure("fast", "fast", 250, "MB/s", 200, at_most=False)),
        profiles=(Profile("AMQP, Artemis", "AUTO", "Java", 0.5, 0.25, (("socket.send", 0.4), ("read", 0.1))),),
        notes=("Without something.",),
        failures=("amqp/qpid/auto failed: it broke off",),
    )


@pytest.mark.parametrize(("target", "verdict"), [(3, "yes"), (3.1, "**no**")])
def test_the_page_has_each_ratio_its_target_and_the_verdict(target: float, verdict: str) -> None:
    page = report.markdown(results(target), "plot.png")
    assert f"| AUTO | 20.5 | 30,000 | raw | 90.0 | 10,000 | 4.39 |  | 3.00 | ≥ {target:g} | {verdict} |  |" in page
    assert "| AUTO | 20.5 | 30,000 | Java |  | 60,000 |  |  | 0.50 |  |  |  |" in page
    assert "![" in page
    assert "plot.png" in page


@pytest.mark.parametrize(("cpu_target", "verdict"), [(4.3, "yes"), (4.4, "**no**")])
def test_a_target_of_processor_time_has_to_be_reached_too(cpu_target: float, verdict: str) -> None:
    (compared,) = results(3).comparisons
    page = report.markdown(replace(results(3), comparisons=(replace(compared, cpu_targets={"raw": cpu_target}),)), None)
    assert f"| 4.39 | ≥ {cpu_target:g} | 3.00 | ≥ 3 | {verdict} |  |" in page


@pytest.mark.parametrize(("target", "verdict"), [(2, "yes"), (2.1, "**no**")])
def test_the_page_has_the_broker_with_a_store_beside_classic(target: float, verdict: str) -> None:
    step = Stored("amqp", "AUTO, send", 1_000.4, 2_000.8, (1.9, 2.0, 2.2), target)
    page = report.markdown(replace(results(3), stored=(step,)), None, "curves.png")
    _, _, section = page.partition("## The embedded broker with a store, beside ActiveMQ Classic")
    assert f"| AMQP | AUTO, send | 1,000 | 2,001 | 2.00 | 15% | ≥ {target:g} | {verdict} |" in section
    assert "KahaDB" in section
    assert "curves.png" not in section


def test_the_page_says_what_is_late_what_is_fast_enough_and_what_was_not_there() -> None:
    page = report.markdown(results(3), None)
    assert "| late | 25.00 ms | ≤ 20 | **no** |" in page
    assert "| fast | 250.00 MB/s | ≥ 200 | yes |" in page
    assert "- Without something." in page
    assert "- amqp/qpid/auto failed: it broke off" in page
    assert "![" not in page


def test_the_page_says_why_a_java_client_is_ahead() -> None:
    page = report.markdown(results(3), None)
    assert "| AMQP, Artemis | AUTO | Java | 0.50 | 25% | socket.send 40%, read 10% |" in page


def test_the_json_has_the_ratios(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "results.json"
    report.write_json(results(3), file)
    (written,) = json.loads(file.read_text(encoding="utf-8"))["comparisons"]
    assert written["ratios"] == {"Java": 0.5, "raw": 3.0}


def test_the_terminal_has_the_same_rows() -> None:
    text = report.terminal(results(3.1))
    assert "≥ 3.1" in text
    assert "socket.send 40%" in text
    assert "it broke off" in text
    assert "**" not in text


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "plot.png"
    assert plot.write(results(3), file)
    assert file.read_bytes().startswith(b"\x89PNG")


def with_spark() -> Results:
    measure = Measure("spark-fake", "2 partitions", 160_000, "rows/s", 150_000, at_most=False, group="Spark source")
    curve = Curve("one", "1 partition", ((1_000, 5_000.0), (10_000, 40_000.0)))
    whole = results(3)
    return replace(whole, measures=(*whole.measures, measure), curves=(curve,))


def test_spark_has_a_table_of_its_own_with_what_was_measured_and_a_picture() -> None:
    page = report.markdown(with_spark(), None, "curves.png")
    _, _, section = page.partition("## Spark source")
    assert "outside Spark" in section
    assert "| 2 partitions | 160,000.00 rows/s | ≥ 150000 | yes |" in section
    assert "(curves.png)" in section
    assert "2 partitions" not in page.partition("## Spark source")[0]


def test_without_curves_there_is_no_second_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "curves.png"
    assert plot.write_curves(with_spark(), file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert not plot.write_curves(results(3), tmp_path / "nothing.png")
    assert not (tmp_path / "nothing.png").exists()


@pytest.mark.parametrize(("rate", "remark"), [(38_000, "peer-bound"), (40_000, "no client")])
def test_a_bare_socket_that_is_hardly_faster_says_that_the_peer_sets_the_pace(rate: float, remark: str) -> None:
    bare = Timing(BARE, rate, rate, rate, 8.0, "no client")
    compared = Comparison("stomp/fake", "STOMP, fake peer", "auto", "AUTO", OURS, (RAW, bare), {})
    page = report.markdown(replace(results(3), comparisons=(compared,)), None)
    assert (
        f"| AUTO | 20.5 | 30,000 | bare socket | 8.0 | {rate:,} | 0.39 |  | {30_000 / rate:.2f} |  |  | {remark} |"
        in page
    )


def test_a_contender_that_came_later_has_a_row_without_numbers() -> None:
    compared = Comparison("amqp/fake", "AMQP, fake peer", "auto", "AUTO", OURS, (RAW,), {}, unmeasured=(BARE,))
    page = report.markdown(replace(results(3), comparisons=(compared,)), None)
    row = "| AUTO | 20.5 | 30,000 | bare socket |  |  |  |  |  |  |  | not measured yet |"
    assert row in page
    assert row.count("|") == page.splitlines()[page.splitlines().index(row) - 1].count("|")


def test_the_picture_answers_three_questions() -> None:
    nagle = Timing("raw, Nagle", 20, 20, 20, 500.0, "waits for Nagle's algorithm")
    bare = Timing(BARE, 60_000, 60_000, 60_000, 8.0, "no client")
    fake = Comparison("stomp/fake", "STOMP, fake peer", "auto", "AUTO", OURS, (nagle, RAW, bare), {"raw": 4})
    both = replace(results(3), comparisons=(fake, *results(3).comparisons))
    assert list(plot.against_raw(both)) == [("STOMP: AUTO", 3.0, 4)]
    assert plot.against_java(both) == {"AUTO": [("amqp", "artemis", 0.5)]}
    assert list(plot.against_limit(both)) == [("STOMP: AUTO", 0.5, None)]


def test_without_an_answer_there_is_no_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert not plot.write(replace(results(3), comparisons=()), tmp_path / "plot.png")
