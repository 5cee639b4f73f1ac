"""Finds what a handler takes, once, by its signature."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, Final, get_origin, get_type_hints

from redelivery.model.callables import name_of
from redelivery.model.errors import ConfigError
from redelivery.model.messages import Message

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

Makers = Mapping[type, Callable[[Message, Any], Any]]  # class of an argument -> made of the message and the session


class _Annotations(dict[str, Any]):
    """Of annotations: one that is known to a function or type checkers only is Any."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


def _hints(handler: Callable[..., Any]) -> dict[str, Any]:
    """The classes of its arguments; of a generic class such as ``Message[Order]`` the class itself."""
    function = handler if hasattr(handler, "__globals__") else getattr(handler, "__call__", handler)  # noqa: B004
    try:
        hints = get_type_hints(function, localns=_Annotations(getattr(function, "__globals__", {})))
    except (AttributeError, NameError, SyntaxError, TypeError):  # what is no annotation of a type
        return {}
    return {name: get_origin(hint) or hint for name, hint in hints.items()}


def takes_message(handler: Callable[..., Any]) -> bool:
    """True: by its annotation the first argument of the handler is a message, also where there is a ``body_type``."""
    try:
        first = next(iter(signature(handler).parameters.values()), None)
    except (TypeError, ValueError):  # of a builtin
        return False
    kind = None if first is None else _hints(handler).get(first.name)
    return isinstance(kind, type) and issubclass(kind, Message)


def _named(kind: type) -> str:
    """As a program writes it after ``from redelivery import aio``."""
    return f"aio.{kind.__name__}" if ".aio." in kind.__module__ else kind.__name__


def arguments(handler: Callable[..., Any], makers: Makers) -> Callable[[Message, Any], dict[str, Any]]:
    """For what the handler takes beside the message (or body): its keyword arguments.

    Those whose annotation is a class of ``makers``, and a second one without an annotation: the session, which is the
    first of ``makers``.

    Raises:
        ConfigError: it takes no message, or an argument that nothing is known of.
    """
    try:
        parameters = list(signature(handler).parameters.values())
    except (TypeError, ValueError):  # of a builtin
        return lambda _message, _session: {}
    hints = _hints(handler)
    name = name_of(handler)
    if not parameters or parameters[0].kind not in (*_POSITIONAL, Parameter.VAR_POSITIONAL):
        raise ConfigError(f"the handler {name} takes no message: def {name}(message)")
    wanted: dict[str, Callable[[Message, Any], Any]] = {}
    for each in parameters[1:]:
        maker = makers.get(hints.get(each.name, type(None)))
        if maker is None and not wanted and each.name not in hints and each.kind in _POSITIONAL:
            maker = next(iter(makers.values())) if each.default is Parameter.empty else None
        if maker is not None and each.kind is not Parameter.POSITIONAL_ONLY:
            wanted[each.name] = maker
        elif each.default is Parameter.empty and each.kind in (*_POSITIONAL, Parameter.KEYWORD_ONLY):
            known = ", ".join(_named(kind) for kind in makers)
            raise ConfigError(f"the handler {name} takes {each.name!r}: annotate it as one of {known}, or leave it out")
    return lambda message, session: {name: make(message, session) for name, make in wanted.items()}
