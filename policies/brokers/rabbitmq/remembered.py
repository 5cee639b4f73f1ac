"""Answers of rules that never change, which are given once and remembered."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Remembering(Protocol):
    """An object that is asked again and again. ``_known``: the answers, by the question."""

    @property
    def _known(self) -> dict[object, Any]: ...


P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Remembering)


def once(method: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Remember what a method has answered."""

    @wraps(method)
    def remembering(rules: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        known = rules._known
        asked = (method.__name__, *args)
        if asked not in known:
            known[asked] = method(rules, *args, **kwargs)
        return known[asked]  # type: ignore[no-any-return]  # what this method gave

    return remembering
