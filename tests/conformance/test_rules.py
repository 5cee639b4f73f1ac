from __future__ import annotations

import ast
from pathlib import Path

from tests.conformance.rules import RULES, TRAPS

HERE = Path(__file__).parent


def test_every_rule_names_tests_that_exist() -> None:
    named = {name for names in (*RULES.values(), *TRAPS.values()) for name in names}
    written = {
        f"{file}::{node.name}"
        for file in {name.partition("::")[0] for name in named}
        for node in ast.parse((HERE / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert named - written == set()
