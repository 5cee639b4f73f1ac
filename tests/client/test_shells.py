"""The shells for threads and for asyncio have the same calls, also where no script writes one from the other."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import redelivery
from redelivery import aio

CLIENT = Path(__file__).parents[2] / "client"
CLASSES = (
    "Connection",
    "ConnectionFactory",
    "ListenerContainer",
    "Publisher",
)  # the others are what scripts/unasync writes
# what one of them alone has, and why
FILES = {"futures": "an asynchronous send is for threads: tasks await it"}
METHODS = {
    "open": "a constructor cannot await",
    "orphan": "an event loop does not survive fork()",
    "on_lost": "the embedded broker calls it in a thread of its own, which hands it to the loop",
}


def files(shell: str) -> set[str]:
    return {path.stem for path in (CLIENT / shell).glob("*.py")}


def public(kind: type) -> dict[str, Any]:
    """Its own public methods and those of its bases, without what its metaclass and `object` have."""
    return {
        name: function
        for name, function in inspect.getmembers(kind)
        if not name.startswith("_")
        and name not in METHODS
        and (inspect.isfunction(function) or isinstance(function, property))
    }


def order(path: Path) -> list[str]:
    """The public methods and properties of a file, as it has them."""
    classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    methods = [
        f"{each.name}.{node.name}"
        for each in classes
        if not each.name.startswith("_")
        for node in each.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return [name for name in methods if not name.split(".")[1].startswith("_") and name.split(".")[1] not in METHODS]


def test_both_have_the_same_files() -> None:
    assert files("sync") ^ files("aio") == set(FILES)


@pytest.mark.parametrize("page", ["{}/publisher", "entry/{}", "containers/{}"])
def test_a_page_has_the_same_methods_in_the_same_order_in_both(page: str) -> None:
    threads, tasks = (order(CLIENT / f"{page.format(shell)}.py") for shell in ("sync", "aio"))
    assert threads == tasks


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_same_methods_with_the_same_parameters_in_both(name: str) -> None:
    threads, tasks = public(getattr(redelivery, name)), public(getattr(aio, name))
    assert threads.keys() == tasks.keys()
    for method, function in threads.items():
        if not isinstance(function, property):
            ours, theirs = (inspect.signature(each).parameters for each in (function, tasks[method]))
            assert list(ours) == list(theirs), method
            assert [each.default for each in ours.values()] == [each.default for each in theirs.values()], method
