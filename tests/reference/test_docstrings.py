"""Docstrings of public names say what a caller must know: each argument, the unit of a duration, each error by name.

What a docstring leaves to another one counts where it names that: its class's, or a method of its class in backticks;
``options``: the keywords that the table of options has.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from tests.reference.docstrings import parameters_of, text_of
from tests.reference.names import function_of, is_made, members, names_of
from tests.reference.options import INTERNAL
from tests.reference.pages import shown

from redelivery.model import errors

UNIT = re.compile(r"\b(milli)?seconds?\b|\bdurations?\b|\btimedelta\b")
DURATION = re.compile(r"timedelta|Seconds")


@dataclass(frozen=True)
class Documented:
    """A public function, method or class, with what documents it."""

    name: str
    value: Callable[..., Any]
    text: str


def documented() -> Iterator[Documented]:
    for page in shown():
        for each in names_of(page):
            value = each.value
            if not inspect.isclass(value):
                if inspect.isfunction(value):
                    yield Documented(each.heading, value, text_of(value))
                continue
            own = "\n".join(text_of(base) for base in value.__mro__ if base.__module__.startswith("redelivery"))
            if not issubclass(value, (BaseException, Enum)) and not is_made(value):
                yield Documented(each.heading, value, own)
            for name, static in members(value):
                function = function_of(static)
                yield Documented(f"{each.heading}.{name}", function, f"{_text(value, name, function)}\n{own}")


def _text(kind: type, name: str, function: Callable[..., Any]) -> str:
    """The docstring of a method, and those of the methods of its class that it names."""
    text = text_of(function) or next(
        (found for base in kind.__mro__ if (found := text_of(function_of(vars(base).get(name))))), ""
    )
    others = [getattr(kind, each, None) for each in re.findall(r"(?<!`)`(?:\w+\.)?(\w+)`(?!`)", text)]
    return "\n".join([text, *(text_of(each) for each in others if callable(each))])


ALL = list(documented())


def says(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){name}(?!\w)", text) is not None


def undocumented(each: Documented) -> list[str]:
    """The arguments that its text does not name; of keywords that the table has, ``options`` stands for all."""
    call = inspect.unwrap(each.value.__init__ if inspect.isclass(each.value) else each.value)
    collected = "Unpack[" in str(getattr(call, "__annotations__", ""))
    return [
        parameter.name
        for parameter in parameters_of(each.value)
        if parameter.name not in INTERNAL
        and not says(each.text, parameter.name)
        and not (collected and parameter.kind is inspect.Parameter.KEYWORD_ONLY and says(each.text, "options"))
    ]


def raised(function: Callable[..., Any]) -> set[str]:
    """The errors that it raises by itself, by their names."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError):
        return set()
    calls = (node.exc.func for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call))
    return {ast.unparse(each).rpartition(".")[2] for each in calls} & set(errors.__all__)


def test_every_public_name_has_a_docstring() -> None:
    assert [each.name for each in ALL if not each.text.strip()] == []


def test_each_argument_is_named() -> None:
    assert [(each.name, missing) for each in ALL if (missing := undocumented(each))] == []


def test_a_duration_has_its_unit() -> None:
    wrong = [
        (each.name, parameter.name)
        for each in ALL
        for parameter in parameters_of(each.value)
        if DURATION.search(str(parameter.annotation)) and not UNIT.search(each.text) and not says(each.text, "options")
    ]
    assert wrong == []


def test_each_error_that_is_raised_there_is_named() -> None:
    wrong = [
        (each.name, missing)
        for each in ALL
        if inspect.isfunction(each.value)
        and (missing := sorted(name for name in raised(each.value) if name not in each.text))
    ]
    assert wrong == []


@pytest.mark.parametrize(("text", "missing"), [("Wait ``delay`` seconds.", ["cause"]), ("`delay`, `cause`", [])])
def test_an_argument_that_is_not_named_is_found(text: str, missing: list[str]) -> None:
    def call(delay: float, *, cause: str) -> None:
        """See ``text``."""

    assert undocumented(Documented("call", call, text)) == missing


def test_an_error_that_is_not_named_is_found() -> None:
    def call() -> None:
        raise errors.ConfigError("no")

    assert raised(call) == {"ConfigError"}
