"""The type variable of a body: of ``Message[T]`` and ``Consumer[T]``, Any where nothing was said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if (
    TYPE_CHECKING
):  # PEP 696: Python's own has a default since 3.13; type checkers know this module without installing it
    from typing_extensions import TypeVar

    BodyT = TypeVar("BodyT", default=Any)
else:
    from typing import TypeVar

    BodyT = TypeVar("BodyT")

__all__ = ["BodyT"]
