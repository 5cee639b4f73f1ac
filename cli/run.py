"""``redelivery run module:app``: the listeners of an application."""

from __future__ import annotations

import sys
from importlib import import_module

from redelivery.client.containers.app import App


class NoAppError(Exception):
    """What was named is no app; the text says why, and what is."""


def load(name: str) -> App:
    """The app that ``module:app`` names; modules are found in the current directory, too.

    Raises:
        NoAppError: there is none.
        Exception: whatever the import of the module raises.
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
            raise
        raise NoAppError(f"there is no module {error.name!r} here or among what is installed") from error
    for each in attribute.split("."):
        if not hasattr(found, each):
            raise NoAppError(f"{module} has no {attribute!r}")
        found = getattr(found, each)
    if not isinstance(found, App):
        raise NoAppError(f"{name} is a {type(found).__name__}, not a redelivery.App")
    return found
