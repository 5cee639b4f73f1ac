"""The client's sources without their checks for an observer: what those cost is the difference to the sources."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Final

from benchmarks.cpu import HERE

_ASKED: Final = frozenset(("observed", "tracer"))  # attributes that are None without an observer


def tree(place: Path) -> int:
    """Write the sources there, as ``src/redelivery``; how many checks were left out."""
    root = place / "src" / "redelivery"
    shutil.copytree(HERE / "src" / "redelivery", root, ignore=shutil.ignore_patterns("__pycache__"))
    found = 0
    for file in sorted((root / "client").rglob("*.py")):
        text, checks = without_checks(file.read_text(encoding="utf-8"))
        if checks:
            file.write_text(text, encoding="utf-8")
        found += checks
    return found


def without_checks(source: str) -> tuple[str, int]:
    """The source as it would be if there were no observers, and how many ``if`` it had for them."""
    removal = _Removal()
    changed = removal.visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(changed)), removal.found


class _Removal(ast.NodeTransformer):
    def __init__(self) -> None:
        self.found = 0

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        answer = _answer(node.test)
        if answer is None:
            return node
        self.found += 1
        return (node.body if answer else node.orelse) or [ast.Pass()]


def _answer(test: ast.expr) -> bool | None:
    """What it comes to without an observer; None where that depends on more."""
    match test:
        case ast.Compare(left=ast.Attribute(attr=name), ops=[operator], comparators=[ast.Constant(value=None)]):
            return isinstance(operator, ast.Is) if name in _ASKED else None
        case ast.BoolOp(op=operator, values=values):
            decides = isinstance(operator, ast.Or)  # what one of them must be to decide it
            return decides if any(_answer(each) is decides for each in values) else None
    return None
