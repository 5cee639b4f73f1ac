"""``redelivery run module:app``: the listeners of an application."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from traceback import TracebackException

from redelivery.client.entry.app import App


class NoAppError(Exception):
    """The name is of no app; the text says why, and what is."""


class BrokenModuleError(Exception):
    """The module raises when it is imported; the text is the traceback of its own lines."""


def load(name: str) -> App:
    """The app that ``module:app`` names; modules are found in the current directory, too.

    Raises:
        NoAppError: there is none.
        BrokenModuleError: the import of the module raises.
    """
    module, colon, attribute = name.partition(":")
    if not module or not colon or not attribute:
        raise NoAppError(f"{name!r} names no app: write module:app, such as shop.workers:app")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise BrokenModuleError(_own_lines(error)) from error
        hint = f"; a module is written without .py, as {module[:-3]}:{attribute}" if module.endswith(".py") else ""
        raise NoAppError(f"there is no module {error.name!r} here or among what is installed{hint}") from error
    except Exception as error:  # the application's own code, which may raise anything
        raise BrokenModuleError(_own_lines(error)) from error
    for each in attribute.split("."):
        if not hasattr(found, each):
            raise NoAppError(f"{module} has no {attribute!r}")
        found = getattr(found, each)
    if not isinstance(found, App):
        raise NoAppError(f"{name} is of type {type(found).__name__}, not a redelivery.App")
    return found


def _own_lines(error: Exception) -> str:
    """The traceback without our frames and the import's, which are above those of the application."""
    trace = error.__traceback__
    while trace is not None and _is_above(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(TracebackException(type(error), error, trace).format()).rstrip()


def _is_above(file: str) -> bool:
    return file == __file__ or file.startswith("<frozen importlib") or Path(file).parent.name == "importlib"
