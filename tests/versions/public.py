"""The public names: modules, names of ``__all__``, members, parameters, commands and options of the command line.

.venv/bin/python -m tests.versions.public      # writes the list of the version that is about to be released
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from redelivery.cli.app import app
from redelivery.model.version import VERSION

LISTS = Path(__file__).parent / "names"
MODULES = tuple(
    f"redelivery{name}" for name in ("", ".aio", ".broker", ".events", ".otel", ".policies", ".testing", ".web")
)
COMMAND = "$ "  # before a command
LIVES = 2  # minor versions, from the one that warns


def public_names() -> Iterator[str]:
    """Each public name: ``module.Class.member``, ``module.function(parameter)``, ``$ redelivery dlq ls --json``."""
    for module in MODULES:
        found = importlib.import_module(module)
        for name in found.__all__:
            yield from _of(f"{module}.{name}", getattr(found, name))
    yield from _commands(typer.main.get_command(app), "redelivery")


def _of(path: str, value: Any) -> Iterator[str]:
    yield path
    if inspect.isclass(value):
        if not issubclass(value, Enum) and any({"__init__", "__new__"} & set(vars(each)) for each in _ours(value)):
            yield from (f"{path}({each})" for each in _parameters(value))
        for name in members(value):
            yield f"{path}.{name}"
            member = inspect.getattr_static(value, name, None)
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function):
                yield from (f"{path}.{name}({each})" for each in _parameters(function))
    elif inspect.isroutine(value):
        yield from (f"{path}({each})" for each in _parameters(value))


def members(kind: type) -> list[str]:
    """What a user may call or read on it, and what we wrote: not what Exception, tuple or Enum bring along."""
    names = {name for each in _ours(kind) for name in (*vars(each), *inspect.get_annotations(each))}
    return sorted(name for name in names if not name.startswith("_"))


def _ours(kind: type) -> list[type]:
    return [each for each in kind.__mro__ if each.__module__.startswith("redelivery")]


def _parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C, or a class without an __init__ of its own
        return []
    return [each.name for each in parameters if each.name not in ("self", "cls") and not each.name.startswith("_")]


def _commands(command: Any, path: str) -> Iterator[str]:
    yield f"{COMMAND}{path}"
    for parameter in command.params:
        yield from (
            f"{COMMAND}{path} {name}" for name in (*parameter.opts, *parameter.secondary_opts) if name[0] == "-"
        )
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands(each, f"{path} {name}")


def number(version: str) -> tuple[int, int]:
    """Major and minor, of 0.2.0 or 0.2.0rc1."""
    major, minor = re.match(r"(\d+)\.(\d+)", version).groups()  # type: ignore[union-attr]  # a version
    return int(major), int(minor)


def wrong(
    earlier: Iterable[str], now: Iterable[str], deprecated: dict[str, str], version: str, warned: Iterable[str] = ()
) -> list[str]:
    """What breaks the promise of docs/versions.md: a name that is gone, or has an alias that does not warn.

    ``deprecated``: the version that first warned, by name; ``warned``: the names whose use warns now.
    """
    present, warned = set(now), set(warned)
    found = []
    for name in earlier:
        since = deprecated.get(name)
        if name in present:
            if since is not None and not name.startswith(COMMAND) and "(" not in name and name not in warned:
                found.append(f"{name} is deprecated, but its use gives no DeprecationWarning")
        elif since is None:
            found.append(f"{name} is gone without a DeprecationWarning")
        elif number(version) < (number(since)[0], number(since)[1] + LIVES) and number(version)[0] == number(since)[0]:
            found.append(f"{name} is gone too early: it has warned since {since} and lives {LIVES} minor versions")
    return found


def warns(name: str) -> bool:
    """True if the use of this name, ``module.name`` or ``module.Class.member``, gives a DeprecationWarning."""
    module = next(each for each in sorted(MODULES, key=len, reverse=True) if name.startswith(f"{each}."))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value: Any = importlib.import_module(module)
        for part in name.removeprefix(f"{module}.").split("."):
            value = getattr(value, part, None)
        if getattr(value, "__deprecated__", None):  # PEP 702: it warns when it is called
            return True
    return any(issubclass(each.category, DeprecationWarning) for each in caught)


def aliases(names: Iterable[str]) -> list[str]:
    """Those that are not in ``__all__`` any more, and still found: by a module's ``__getattr__``, or on a class."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in names:
            if name.startswith(COMMAND) or "(" in name:
                continue
            module = next(each for each in sorted(MODULES, key=len, reverse=True) if name.startswith(f"{each}."))
            value: Any = importlib.import_module(module)
            for part in name.removeprefix(f"{module}.").split("."):
                value = getattr(value, part, None)
            if value is not None:
                found.append(name)
    return found


if __name__ == "__main__":
    LISTS.joinpath(f"{VERSION}.txt").write_text("".join(f"{name}\n" for name in sorted(set(public_names()))))
