"""The texts of the errors that redelivery.spark raises, found in its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SPARK: Final = Path(__file__).resolve().parents[2] / "spark"
FIELD: Final = "\0"
"""Stands for what an error fills in."""
_SHORTEST: Final = 12  # characters; what is shorter is not a whole message
_INSIDE: Final = {"IndexError", "NotADirectoryError", "ModuleNotFoundError"}  # each is caught where it is raised


def error_texts() -> dict[str, list[str]]:
    """By ``file: statement``: what can be the text of an error that is raised there."""
    trees = {str(path.relative_to(SPARK.parent)): ast.parse(path.read_text("utf-8")) for path in SPARK.rglob("*.py")}
    known = _named(trees.values())
    found = {}
    for name, tree in sorted(trees.items()):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            if ast.unparse(node.exc.func) in _INSIDE:
                continue
            texts = [each for each in _texts(node.exc) if len(each) >= _SHORTEST]
            for used in [] if texts else ast.walk(node.exc):
                if isinstance(used, ast.Name):
                    texts += known.get(used.id, [])
            if texts:  # else it is that of another error, whose own text stands
                found[f"{name}: {ast.unparse(node.exc)[:200]}"] = texts
    return found


def _named(trees: object) -> dict[str, list[str]]:
    """The texts of constants, and of functions that make one, by their names."""
    found: dict[str, list[str]] = {}
    for tree in trees:  # type: ignore[attr-defined]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).extend(each for each in _texts(node) if len(each) >= _SHORTEST)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                names = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in names:
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).extend(e for e in _texts(node.value) if len(e) >= _SHORTEST)
    return found


def _texts(node: ast.AST) -> Iterator[str]:
    """The literals in a piece of code; docstrings are none."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else FIELD for each in node.values)
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        yield from _texts(child)
