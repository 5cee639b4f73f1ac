"""The tests of the suite's files once more, in a file that has other fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import FunctionType, ModuleType

import pytest


def originals(file: str) -> tuple[ModuleType, dict[str, FunctionType]]:
    """The module ``test_<file>.py``, and those of its tests, by name, that open connections by their stage."""
    module = import_module(f"tests.conformance.test_{file}")
    tests = {name: each for name, each in vars(module).items() if name.startswith("test_")}
    assert tests, f"test_{file}.py has no tests"
    asked = ("stage", "desk", "own")
    return module, {name: each for name, each in tests.items() if not each.__annotations__.keys().isdisjoint(asked)}


def again(test: FunctionType, module: ModuleType, *more: pytest.MarkDecorator) -> Callable[..., None]:
    """The same test, with its module's marks and others."""
    copy = FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    copy.__dict__.update(test.__dict__)
    copy.__annotations__ = test.__annotations__
    copy.pytestmark = [  # type: ignore[attr-defined]  # pytest's own
        *getattr(test, "pytestmark", []),
        *_marks(getattr(module, "pytestmark", [])),
        *(each.mark for each in more),
    ]
    return copy


def _marks(of_module: pytest.MarkDecorator | list[pytest.MarkDecorator]) -> Iterator[pytest.Mark]:
    for each in of_module if isinstance(of_module, list) else [of_module]:
        yield each.mark
