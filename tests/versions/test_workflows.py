"""The workflow files: pinned, with few permissions, for every supported Python; actionlint has nothing to say of them.

They have not run: this repository is not hosted where they would.
"""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = runpy.run_path(str(ROOT / "scripts" / "pythons.py"))["PYTHONS"]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_tests_docs_and_the_release_have_one() -> None:
    assert [path.name for path in FILES] == ["docs.yml", "release.yml", "tests.yml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actionlint_finds_nothing(path: Path) -> None:
    lint = shutil.which("actionlint") or shutil.which("actionlint", path=Path.home() / "go" / "bin")
    if lint is None:
        pytest.skip("no actionlint: go install github.com/rhysd/actionlint/cmd/actionlint@latest")
    done = subprocess.run([lint, "-no-color", path], capture_output=True, text=True, timeout=120)  # noqa: S603  # our own file
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_and_may_do_little(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    assert "secrets." not in text
    workflow = read(path.name)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 75
        assert set(job["permissions"]) <= {"contents", "id-token", "pages", "attestations"}
        assert job["permissions"].get("contents", "read") == "read"
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}
            # What others wrote, such as the name of a branch, gets into a script as a variable only.
            assert "${{" not in step.get("run", "")


def test_only_the_job_that_publishes_may_sign() -> None:
    jobs = read("release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert jobs["publish"]["environment"] == "pypi"


def test_every_supported_python_is_tested_and_installed_into() -> None:
    assert tuple(read("tests.yml")["jobs"]["pythons"]["strategy"]["matrix"]["python"]) == PYTHONS
    (setup,) = [step for step in read("release.yml")["jobs"]["dist"]["steps"] if "setup-python" in step.get("uses", "")]
    assert sorted(setup["with"]["python-version"].split()) == sorted(PYTHONS)


def test_what_the_release_publishes_is_what_an_extra_names() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = runpy.run_path(str(ROOT / "scripts" / "proton-wheels"))
    assert extras["amqp-binary"] == [f"{names['OURS']}>=0.40,<0.41"]
    assert extras["amqp"] == [f"{names['UPSTREAM']}>=0.40,<0.41"]
    assert names["VERSION"].startswith("0.40.")
