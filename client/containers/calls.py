"""Finds what a handler takes, once, by its signature; converts a body for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, Final, get_type_hints

from redelivery.model.callables import ASYNC_GENERATOR, COROUTINE, deferred, name_of
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.model.messages import Message, convert_body

_PLAIN: Final = (str, bytes)
_JSON: Final = (dict, list)
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

Converter = Callable[[Message], Any]
Makers = Mapping[type, Callable[[Message, Any], Any]]  # class of an argument -> made of the message and the session


def converter(body_type: object) -> Converter | None:
    """The conversion of a message for a handler; None: it takes the message itself.

    Args:
        body_type: str or bytes: the body as it is. dict or list: the body, or the JSON that it is. ``"json"``: whatever
            its JSON is. A pydantic model: validated. Another callable: called with the body.

    Raises:
        ConfigError: it is none of these.
    """
    if body_type is None:
        return None
    if body_type in _PLAIN:
        return lambda message: convert_body(message, body_type)
    if body_type in _JSON or body_type == "json":
        return lambda message: _structure(message.body, body_type)
    validate, parse = (getattr(body_type, name, None) for name in ("model_validate", "model_validate_json"))
    if callable(validate) and callable(parse):
        return lambda message: (parse if isinstance(message.body, str | bytes) else validate)(message.body)
    if callable(body_type):
        if deferred(body_type) in (COROUTINE, ASYNC_GENERATOR):
            raise ConfigError(f"body_type={name_of(body_type)}: {deferred(body_type)} is not awaited: convert at once")
        return lambda message: body_type(message.body)
    raise ConfigError(
        f"body_type={body_type!r} is neither str, bytes, dict, list, 'json', a pydantic model nor callable"
    )


def convert(to: Converter, message: Message) -> Any:
    """The body, converted. Raises MessageFormatError: it is not of that kind, whatever its converter raised."""
    try:
        return to(message)
    except Exception as error:  # a guard of application code: a body that does not convert never will
        raise MessageFormatError(f"the body does not convert: {error}") from error


def _structure(body: object, kind: object) -> object:
    if body is None:
        raise MessageFormatError("there is none")
    found = json.loads(body) if isinstance(body, str | bytes) else body
    if isinstance(kind, type) and not isinstance(found, kind):
        raise MessageFormatError(f"it is a {type(found).__name__}, not a {kind.__name__}")
    return found


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
    try:
        hints = get_type_hints(handler)
    except (NameError, TypeError):  # of an import for type checkers only, or of a callable object
        hints = {}
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
