"""Whether a callback can be called with what it will be given, found before its first call."""

from __future__ import annotations

from inspect import signature

from redelivery.model.errors import ConfigError


def check_takes_one(callback: object, name: str, given: str, hint: str = "") -> None:
    """Raise where it cannot be called with one argument; what Python knows no signature of is not looked at.

    Args:
        name: how the callback is called, for the error.
        given: what its argument is.
        hint: what was probably meant.

    Raises:
        ConfigError: see above.
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
        called = getattr(callback, "__qualname__", None) or type(callback).__qualname__
        raise ConfigError(f"{name}: {called}{shown} is called with one argument, {given}{hint}") from error
