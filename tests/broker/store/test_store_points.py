"""kill -9 before each statement of a store: what was answered is there, what was not is there whole or not at all."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from redelivery.broker.store import batch

ROOT = Path(__file__).parents[3]
WRITTEN = {  # all that the store writes: the constants of its module that are statements
    node.value
    for node in ast.walk(ast.parse(inspect.getsource(batch)))
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(" ")[0].isupper()
}


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long_form), 2])
def test_a_store_is_whole_after_a_kill_at_any_point(tmp_path: Path, every: int) -> None:
    command = [sys.executable, "-m", "tests.broker.store.points", str(tmp_path), str(every)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150)  # noqa: S603
    assert found.returncode == 0, found.stderr
    states, statements, *killed = (json.loads(line) for line in found.stdout.splitlines())
    assert set(statements) == WRITTEN, "the workload meets each statement of the store"
    assert len(killed) == -(-len(statements) // every)
    assert len({json.dumps(state) for state in states}) == len(states), "each step changes something"
    for answered, held in killed:
        assert held in states[answered : answered + 2], f"{answered} steps were answered"
    assert {answered for answered, _ in killed} == set(range(len(states) - 1))
