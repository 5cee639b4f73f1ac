"""scripts/nightly: what it runs. Here its programs only note that they were called."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "nightly"


def test_the_script_of_the_night_is_a_program_that_bash_reads() -> None:
    done = subprocess.run(["bash", "-n", str(SCRIPT)], capture_output=True, timeout=150)  # noqa: S603, S607  # ours
    assert done.returncode == 0, done.stderr


def night(tmp_path: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """A night of programs that do nothing, but for the comparison of processor time, which fails; their calls."""
    calls = tmp_path / "calls"
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "make"):
        program = programs / name
        on = "${REDELIVERY_RABBITMQ4:+ on $REDELIVERY_RABBITMQ4}"
        note = f'echo "{name} $*{on}" >> "{calls}"'
        program.write_text(f'#!/bin/sh\n{note}\ncase "$*" in *benchmarks.cpu*) exit 3;; esac\n')
        program.chmod(0o755)
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REDELIVERY_")}
    environment = {**inherited, "PATH": path, "VENV": str(tmp_path), **variables}
    done = subprocess.run([str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=150, check=False)  # noqa: S603  # ours
    return done, calls.read_text().splitlines()


@pytest.mark.parametrize(
    ("variables", "seed"), [({}, r"20\d{6}"), ({"REDELIVERY_SEED": ""}, r"20\d{6}"), ({"REDELIVERY_SEED": "7"}, "7")]
)
def test_each_night_generates_other_examples_by_a_seed_that_it_names(
    tmp_path: Path, variables: dict[str, str], seed: str
) -> None:
    done, calls = night(tmp_path, **variables)
    (tests,) = [each for each in calls if each.startswith("make test-all")]
    found = re.search(rf"--hypothesis-seed=({seed})\b", tests)
    assert found is not None
    assert f"Hypothesis' seed of this night: {found[1]}" in done.stdout


@pytest.mark.parametrize(
    ("variables", "against"),
    [
        ({}, "--against-last-week"),
        ({"REDELIVERY_CPU_AGAINST": ""}, "--against-last-week"),
        ({"REDELIVERY_CPU_AGAINST": "abc"}, "--against=abc"),
    ],
)
def test_each_night_compares_the_processor_time_of_a_message(
    tmp_path: Path, variables: dict[str, str], against: str
) -> None:
    done, calls = night(tmp_path, **variables)
    assert [each for each in calls if "benchmarks.cpu" in each] == [f"python -m benchmarks.cpu {against}"]
    assert done.returncode == 1
    assert "== FAILED: CPU per message (exit code 3)" in done.stdout
    assert calls[-1].endswith("scripts/matrix"), "a failure does not end the night"


def test_each_night_runs_what_uses_rabbitmq_4_on_its_newest_version_too(tmp_path: Path) -> None:
    _, calls = night(tmp_path)
    newest = [each.removesuffix(" on 4.3") for each in calls if each.endswith(" on 4.3")]
    tests, *reports = newest
    assert tests.startswith("python -m pytest --tb=short -k rabbitmq4 ")
    pairs = "--pairs stomp-rabbitmq4,amqp-rabbitmq4"
    assert reports == [f"python scripts/{name}-report {pairs}" for name in ("soak", "fault")]
    for each in reports:  # they change rows of the page that the night has written before
        assert calls.index(each.removesuffix(f" {pairs}")) < calls.index(f"{each} on 4.3")
