"""Finds before its first call whether a callback can be called with what it will be given, and then does anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Generator
from functools import partial
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgeneratorfunction, isroutine, signature
from typing import Any, Final

from redelivery.model.errors import ConfigError

COROUTINE: Final = "a coroutine function"
GENERATOR: Final = "a generator function"
ASYNC_GENERATOR: Final = "an async generator function"
_DEFERRED: Final = (Generator, AsyncGenerator, Coroutine, map, filter)
_KINDS: Final = (
    (COROUTINE, iscoroutinefunction),
    (GENERATOR, isgeneratorfunction),
    (ASYNC_GENERATOR, isasyncgenfunction),
)


def check_takes_one(callback: object, name: str, given: str, hint: str = "") -> None:
    """Raise ConfigError where it cannot be called with one argument; what Python knows no signature of is not looked
    at.

    ``name``: how the callback is called, for the error. ``given``: what its argument is. ``hint``: what was probably
    meant.
    """
    if not callable(callback) or hasattr(callback, "__signature__"):  # the latter is for readers, and need not be true
        return
    try:
        shown = signature(callback, follow_wrapped=False)  # what is called is the wrapper
    except (TypeError, ValueError):  # of a builtin
        return
    try:
        shown.bind(None)
    except TypeError as error:
        raise ConfigError(f"{name}: {name_of(callback)}{shown} is called with one argument, {given}{hint}") from error


def name_of(callback: object) -> str:
    """The name of a callback in a log or an error."""
    return getattr(callback, "__qualname__", None) or type(callback).__qualname__


def deferred(callback: object) -> str | None:
    """The kind of a function whose call runs none of its lines (a coroutine's, a generator's); None: it is a plain one.

    A ``functools.partial``, a method, or an object with such a ``__call__`` is what it calls.
    """
    function: Any = callback
    while isinstance(function, partial):
        function = function.func
    if not isroutine(function) and not isinstance(function, type):
        function = getattr(type(function), "__call__", function)  # noqa: B004  # what calling it calls
        return deferred(function) if isinstance(function, partial) else _kind(function)
    return _kind(function)


def check_runs(callback: object, call: str) -> None:
    """Raise ConfigError where a call would run nothing of it; ``call``: what it was given to, for the error."""
    kind = deferred(callback)
    if kind is None:
        return
    if kind == GENERATOR:
        raise ConfigError(f"{call}: {kind} runs nothing when it is called; give a plain function, without `yield`")
    raise ConfigError(
        f"{call}: {kind} is never awaited here; give a plain function, which may call asyncio.run(…), or "
        "asyncio.run_coroutine_threadsafe(…, loop).result() for a loop that runs elsewhere; or use redelivery.aio"
    )


def not_run(callback: object, kind: str) -> str:
    """The problem with a callback that returned what `unrun` finds."""
    return f"{name_of(callback)} returned {kind}, which nobody runs or awaits here: nothing of it was done"


def unrun(result: object) -> str | None:
    """The kind of a result that is yet to run, which nobody does: closed where it can be; None: it is something else.

    A coroutine, a generator, a Future, or a context that nobody entered. A coroutine is closed, or Python would warn.
    """
    kind = type(result).__name__
    if isinstance(result, Coroutine):
        result.close()
        return f"a {kind}"
    made = getattr(result, "gen", None)  # by contextlib.contextmanager
    if isinstance(result, _DEFERRED) or isinstance(made, Generator | AsyncGenerator):
        return f"a {kind}"
    if isawaitable(result) or hasattr(type(result), "add_done_callback"):
        return f"a {kind}"
    return None


def _kind(function: object) -> str | None:
    return next((kind for kind, holds in _KINDS if holds(function)), None)
