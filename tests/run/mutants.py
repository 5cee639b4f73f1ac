"""A fault planted into the running product: the text of a function replaced, for the length of one test.

The new text is compiled, and the code of the functions that differ is put into those that run, wherever they were
imported to; afterwards they have their own again. So a fault costs no process and no import.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from tests.client import shell

from redelivery import JMSError

PATIENCE = 1.0
"""Seconds that every ``SOON`` of the tests is meanwhile: what the fault holds up will not come."""
_NOTICED: tuple[type[BaseException], ...] = (AssertionError, JMSError, TimeoutError, pytest.fail.Exception)


@dataclass(frozen=True, slots=True)
class Fault:
    """``old``, which stands once in the module of that name, is replaced by ``new``; ``test`` must fail then.

    ``arguments``: of the test; its others are fixtures by name. ``raises``: what it fails with, where that is not an
    assertion or an error of the product.
    """

    module: str
    old: str
    new: str
    test: Callable[..., None]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    raises: tuple[type[BaseException], ...] = ()


def caught(fault: Fault, request: pytest.FixtureRequest) -> None:
    """Fail where the test of a fault does not notice it."""
    fixtures = [name for name in inspect.signature(fault.test).parameters if name not in fault.arguments]
    given = {**fault.arguments, **{name: request.getfixturevalue(name) for name in fixtures}}
    noticed = (*_NOTICED, *fault.raises)
    with _impatient(), planted(fault):
        try:
            fault.test(**given)
        except noticed:
            return
    pytest.fail(f"{fault.test.__name__} does not notice {fault.new.strip()!r} in {fault.module}")


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """The product has the fault meanwhile."""
    module = importlib.import_module(f"redelivery.{fault.module}")
    path = Path(module.__file__ or "")
    text = path.read_text(encoding="utf-8")
    found = text.count(fault.old)
    assert found == 1, (
        f"{path.name} has this text {found} times: {fault.old!r}. If the code was changed, plant the same fault into "
        "what stands there now; if the rule is gone, take the fault away"
    )
    before, after = (
        _functions(compile(each, str(path), "exec")) for each in (text, text.replace(fault.old, fault.new))
    )
    changed = [(name, code) for name, code in before.items() if name in after and not _same(code, after[name])]
    assert changed, f"{fault.new!r} changes no function of {path.name}"
    swapped: list[tuple[FunctionType, CodeType]] = []
    try:
        for name, code in changed:
            function = _running(module, name, code)
            assert after[name].co_freevars == code.co_freevars, f"{name} needs what the new text leaves out, or adds"
            swapped.append((function, function.__code__))
            function.__code__ = after[name]
        yield
    finally:
        for function, own in swapped:
            function.__code__ = own


@contextmanager
def _impatient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("tests.") and "SOON" in vars(module):
                patch.setattr(module, "SOON", PATIENCE)
        patch.setattr(shell.eventually, "__defaults__", (PATIENCE,))
        yield


def _functions(code: CodeType, within: str = "") -> dict[str, CodeType]:
    """Of a module, and of its classes, by their places; what stands within a function is a part of it."""
    found: dict[str, CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType) and not each.co_name.startswith("<"):
            is_class = not each.co_flags & inspect.CO_OPTIMIZED
            name = f"{within}{each.co_name}"
            if is_class:
                found |= _functions(each, f"{name}.")
            else:
                found[name if name not in found else f"{name}:"] = each  # a property's setter
    return found


def _same(one: object, other: object) -> bool:
    """But for the lines that it stands in."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and one == other
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_exceptiontable")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    consts = zip(one.co_consts, other.co_consts, strict=False)
    return len(one.co_consts) == len(other.co_consts) and all(_same(*each) for each in consts)


def _running(module: ModuleType, name: str, code: CodeType) -> FunctionType:
    """The function that runs where this code stands in the module."""
    place: Any = module
    for part in name.rstrip(":").split("."):
        place = vars(place)[part]
    for each in _behind(place):
        if isinstance(each, FunctionType) and _place(each.__code__) == _place(code):
            return each
    raise AssertionError(f"{module.__name__}.{name}: what runs is not what its file has")


def _place(code: CodeType) -> tuple[object, ...]:
    """What tells whether it stands there; pytest may have rewritten the assertions of what runs."""
    return code.co_firstlineno, code.co_name, code.co_freevars


def _behind(place: Any) -> Iterator[Any]:
    while place is not None:
        yield place
        for name in ("fget", "fset", "func"):
            yield getattr(place, name, None)
        place = getattr(place, "__wrapped__", None) or getattr(place, "__func__", None)
