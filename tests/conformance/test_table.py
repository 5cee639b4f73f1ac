from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.kept import with_asyncio, with_feature, with_pairs
from tests.conformance.pairs import FEATURES, KINDS, TABLED
from tests.conformance.record import ASYNCIO, AWAITED, FAILED, PASSED, SKIPPED, Line, read
from tests.conformance.table import (
    FAILS,
    NOT_RUN,
    PAGE,
    PASS,
    UNSUPPORTED,
    concerned,
    features_table,
    notes,
    page,
    stated,
    titles,
    wrong,
)

SCRIPT = PAGE.parents[1] / "scripts" / "conformance-table"


def test_the_page_says_what_the_table_of_pairs_says() -> None:
    """Where this fails: run the suite on all pairs with a record, and `scripts/conformance-table`.

    What failed in the run that made the page, and what could not be run because the pair lacks another feature, stands
    there as such.
    """
    written = PAGE.read_text(encoding="utf-8")
    found = {line.split(" | ")[0]: line for line in written.splitlines()}
    for row in features_table(stated).splitlines()[2:]:
        title, *cells = row.removesuffix(" |").split(" | ")
        reported = found.get(title, "").removesuffix(" |").split(" | ")[1:]
        for kind, here, there in zip(TABLED.values(), cells, reported, strict=True):
            lacks_another = here == PASS and there.startswith(UNSUPPORTED) and kind.cannot
            assert here == there or there in {FAILS, NOT_RUN} or lacks_another, (title, kind.name)
    assert notes() in written
    rows = {line.split(" | ")[0].removeprefix("| ") for line in written.splitlines() if line.startswith("| [")}
    assert rows <= set(titles().values())  # of a new file the next night's run tells
    assert rows


def test_every_feature_of_the_table_of_pairs_has_a_test() -> None:
    assert FEATURES - {feature for features in concerned().values() for feature in features} == set()


def passing() -> list[Line]:
    """A record in which each test passed on each pair."""
    everywhere = [Line(kind, f"{name}[{kind}]", PASSED, "") for kind in TABLED for name in concerned()]
    return [*everywhere, Line("", "test_refused.py::test_it", PASSED, "")]


def test_a_page_of_a_run_that_passed_states_what_the_table_of_pairs_states() -> None:
    assert features_table(stated) in page(passing())
    assert FAILS not in page(passing())
    assert NOT_RUN not in page(passing())


def test_what_failed_and_what_was_not_run_is_distinguished_from_what_passed() -> None:
    refused, volume = "test_refused.py::test_it", "test_volume.py::test_ten_thousand_messages_exactly_once_in_order"
    lines = [Line("vm", f"{volume}[vm]", FAILED, ""), Line("stomp-embedded", f"{volume}[stomp-embedded]", PASSED, "")]
    (row,) = (line for line in page(lines).splitlines() if "/test_volume.py" in line)
    assert row.split(" | ")[1:4] == [FAILS, "pass", NOT_RUN]
    assert f"`UnsupportedError`: {NOT_RUN}" in page(lines)
    assert f"`UnsupportedError`: {FAILS}" in page([Line("", refused, FAILED, "")])


def test_what_a_pair_cannot_do_is_a_note_beside_what_passed() -> None:
    *_, pair = TABLED
    reason = KINDS[pair].cannot["transactions"]
    number = next(line for line in notes().splitlines() if reason in line).partition(".")[0]
    skipped = Line(pair, f"test_order.py::test_a[{pair}]", SKIPPED, reason)
    passed = Line(pair, f"test_order.py::test_b[{pair}]", PASSED, "")
    for lines, cell in (([skipped], f"unsupported [{number}]"), ([skipped, passed], f"pass [{number}]")):
        (row,) = (line for line in page(lines).splitlines() if "/test_order.py" in line)
        assert row.split(" | ")[-1] == f"{cell} |"
    assert wrong([skipped, passed]) == []
    assert wrong([Line("vm", "test_order.py::test_a[vm]", SKIPPED, "no Java")]) == [
        "test_order.py::test_a[vm]: skipped no Java"
    ]
    assert wrong([Line("vm", f"{ASYNCIO}::test_a[vm]", SKIPPED, AWAITED)]) == []
    lost = KINDS["vm-stored"].cannot["a lost connection"]
    assert wrong([Line("vm-stored", "test_order.py::test_a[vm-stored]", SKIPPED, lost)]) == []


def test_records_are_united_and_the_last_outcome_counts(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    fields = {"pair": "vm", "test": "test_a.py::test_a[vm]", "reason": ""}
    paths[0].write_text(json.dumps({**fields, "outcome": FAILED}) + "\n", encoding="utf-8")
    paths[1].write_text(
        "".join(f"{json.dumps({**fields, 'pair': pair, 'outcome': PASSED})}\n" for pair in ("vm", "amqp-qpid")),
        encoding="utf-8",
    )
    assert [(line.pair, line.outcome) for line in read(paths)] == [("amqp-qpid", PASSED), ("vm", PASSED)]
    paths[1].write_text("{}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"b\.jsonl: no line of a record"):
        read(paths)


def test_the_script_writes_the_page_and_its_exit_code_says_whether_all_passed(tmp_path: Path) -> None:
    record, output = tmp_path / "record.jsonl", tmp_path / "page.md"
    line = {"pair": "vm", "test": "test_a.py::test_a[vm]", "reason": ""}
    for outcome, code in ((FAILED, 1), (PASSED, 0)):
        record.write_text(json.dumps({**line, "outcome": outcome}) + "\n", encoding="utf-8")
        command = [sys.executable, str(SCRIPT), str(record), "--output", str(output)]
        assert subprocess.run(command, capture_output=True, timeout=150).returncode == code  # noqa: S603  # ours
        assert ("test_a.py::test_a[vm]" in output.read_text(encoding="utf-8")) == (outcome == FAILED)


def test_some_pairs_can_be_written_alone(tmp_path: Path) -> None:
    output, record = tmp_path / "page.md", tmp_path / "record.jsonl"
    stored = [name for name, kind in KINDS.items() if kind.stored]
    before = page(passing())
    output.write_text(before, encoding="utf-8")
    for count, outcome, code in ((7, PASSED, 0), (9, FAILED, 1), (8, PASSED, 0)):
        lines = [
            {"pair": pair, "test": f"a.py::{n}", "reason": "", "outcome": outcome}
            for pair in stored
            for n in range(count)
        ]
        record.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        command = [sys.executable, str(SCRIPT), str(record), "--pairs", "--output", str(output)]
        assert subprocess.run(command, capture_output=True, timeout=150).returncode == code  # noqa: S603  # ours
        rows = [line.split(" | ") for line in output.read_text(encoding="utf-8").splitlines() if "-stored`" in line]
        assert [(row[0], row[3]) for row in rows] == [
            (f"| `{name}`", "7" if count == 9 else str(count)) for name in stored
        ]
    changed = output.read_text(encoding="utf-8")
    assert [line for line in changed.splitlines() if "-stored`" not in line] == [
        line for line in before.splitlines() if "-stored`" not in line
    ], "all else is as it was"
    assert changed.index("| `amqp-embedded`") < changed.index("| `amqp-stored`") < changed.index("| `stomp-activemq`")


def test_what_passed_with_asyncio_is_counted_apart() -> None:
    run = [Line("vm", f"{ASYNCIO}::test_{n}[vm]", PASSED if n else SKIPPED, "") for n in range(4)]
    whole = page([*passing(), *run])
    assert ends(whole)["vm"] == (ends(page(passing()))["vm"][0], "3"), "and all other counts are as they were"
    assert ends(whole)["amqp-stored"] == ("0", "-")
    again = [Line("amqp-stored", f"{ASYNCIO}::test_a[amqp-stored]", PASSED, "")]
    assert with_asyncio(page(passing()), run + again) == with_asyncio(whole, again)
    changed = with_asyncio(whole, again)
    new = [line for line in changed.splitlines() if line not in whole.splitlines()]
    assert [line.partition(" | ")[0] for line in new] == ["| `amqp-stored`"], "all else is as it was"
    assert ends(with_pairs(changed, [Line("amqp-stored", "a.py::a", PASSED, "")]))["amqp-stored"] == ("1", "1")


def test_the_row_of_one_feature_can_be_written_alone(tmp_path: Path) -> None:
    output, record, name = tmp_path / "page.md", tmp_path / "record.jsonl", "lists beyond the window"
    test = "test_ack_modes.py::test_receive_many_makes_a_list_that_is_larger_than_the_window"
    reason = KINDS["stomp-artemis"].cannot[name]
    before = page([line for line in passing() if line.module != "test_ack_modes.py"])
    output.write_text(before, encoding="utf-8")
    outcomes = {"vm": (PASSED, ""), "amqp-qpid": (PASSED, ""), "stomp-artemis": (SKIPPED, reason)}
    lines = [
        {"pair": pair, "test": f"{test}[{pair}]", "outcome": it[0], "reason": it[1]} for pair, it in outcomes.items()
    ]
    record.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, str(SCRIPT), str(record), "--feature", name, "--output", str(output)]
    assert subprocess.run(command, capture_output=True, timeout=150).returncode == 0  # noqa: S603  # ours
    after = output.read_text(encoding="utf-8")
    (row,) = (line for line in after.splitlines() if line.startswith(f"| {name} |"))
    cells = dict(zip(TABLED, row.removesuffix(" |").split(" | ")[1:], strict=True))
    assert (cells["vm"], cells["amqp-qpid"], cells["amqp-embedded"]) == (PASS, PASS, NOT_RUN)
    assert cells["stomp-artemis"] == stated(name, KINDS["stomp-artemis"])
    assert [line for line in after.splitlines() if line != row] == [
        line for line in before.splitlines() if not line.startswith(f"| {name} |")
    ], "all else is as it was"


def test_the_row_of_a_feature_that_is_new_gets_its_place() -> None:
    whole, name = page(passing()), "lists beyond the window"
    old = "".join(line for line in whole.splitlines(keepends=True) if not line.startswith(f"| {name} |"))
    assert old != whole
    assert with_feature(old, passing(), name) == whole


def test_a_page_that_is_written_in_part_gets_the_rows_and_notes_of_the_table_of_pairs() -> None:
    whole = page(passing())
    assert with_pairs(whole, []) == whole
    first, *others = notes().splitlines()
    without = whole.replace(" [1]", "")
    old = "\n".join(line for line in without.splitlines() if not line.startswith(("| map |", first)))
    for number in range(2, len(others) + 2):  # as if the first note were a new one
        old = old.replace(f"\n{number}. ", f"\n{number - 1}. ").replace(f" [{number}]", f" [{number - 1}]")
    lines = with_pairs(old + "\n", []).splitlines()
    assert [line for line in lines if "| map |" not in line] == [
        line for line in without.splitlines() if "| map |" not in line
    ]
    (row,) = (line for line in lines if line.startswith("| map |"))
    assert row.split(" | ")[1] == NOT_RUN


def ends(text: str) -> dict[str, tuple[str, str]]:
    """What passed on each pair, and what passed with asyncio."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): (row[3], row[-1]) for row in rows if row[0].strip("`") in KINDS}
