"""The conversion of a body to the type that an application wants, decided once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from redelivery.model.callables import ASYNC_GENERATOR, COROUTINE, deferred, name_of
from redelivery.model.content.typed.libraries import Misfit, from_library
from redelivery.model.content.typed.structure import Structure, type_name
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import body_kind

_KINDS: Final = {str: "text", bytes: "bytes", dict: "map", list: "stream"}
_JSON: Final = (dict, list)


class Converter:
    """Makes the value of a type of a message's body."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[Message], Any]) -> None:
        self.name = name
        self.make = make


def converter(body_type: object) -> Converter | None:
    """The conversion of a body; None: it stays as it is.

    Text and bytes are read as JSON for all types but str, bytes and what is called.

    Args:
        body_type: str or bytes: the body as it is. dict or list: the body, or the JSON that it is. ``"json"``: whatever
            its JSON is. A pydantic model, dataclass or TypeAdapter, or a msgspec Struct: validated by these. A
            dataclass, TypedDict, NamedTuple, enum, date, bool or a type made of such (``list[Order]``,
            ``Order | Refund``): built by its annotations, see `structure`. Another callable, int, Decimal and UUID
            among them: called with the body.

    Raises:
        ConfigError: it is none of these, or has an annotation that says nothing about JSON; the text names it.
    """
    if body_type is None:
        return None
    name = "JSON" if body_type == "json" else type_name(body_type)
    return Converter(name, _maker(body_type))


def _maker(body_type: Any) -> Callable[[Message], Any]:
    if body_type in (str, bytes):
        return lambda message: convert_body(message, body_type)
    if body_type in _JSON or body_type == "json":
        return lambda message: _json_of(message.body, body_type)
    made = from_library(body_type)
    if made is not None:
        return lambda message: made.of_body(message.body)
    structure = Structure.of(body_type)
    if structure is not None:
        return lambda message: structure.of_body(message.body)
    if callable(body_type) and body_type is not Any:
        if deferred(body_type) in (COROUTINE, ASYNC_GENERATOR):
            raise ConfigError(f"body_type={name_of(body_type)}: {deferred(body_type)} is not awaited: convert at once")
        return lambda message: body_type(message.body)
    raise ConfigError(
        f"body_type={body_type!r} is neither str, bytes, dict, list, 'json', a pydantic model, a msgspec Struct, a "
        "dataclass, a TypedDict, a type made of such, nor callable"
    )


def fill(message: Message, to: Converter) -> None:
    """Make the body of a received message what ``to`` makes of it.

    Raises:
        MessageFormatError: it is not of that kind, whatever its converter raised; the text says where it is wrong.
    """
    try:
        message.fields["body"] = to.make(message)
    except Misfit as error:
        raise MessageFormatError(f"the body does not convert to {to.name}: {error}") from error.__cause__ or error
    except Exception as error:  # a guard of application code: a body that does not convert never will
        raise MessageFormatError(f"the body does not convert to {to.name}: {error}") from error


def refused(message: Message, error: MessageFormatError) -> MessageFormatError:
    """The error of `fill` for one who receives: which message it is, and the message itself, whose body is as it came.

    ``error.message``: see MessageFormatError.
    """
    which = message.message_id or "without an id"
    problem = MessageFormatError(f"{message.destination} {which}: {error}")
    problem.message, problem.__cause__ = message, error.__cause__
    return problem


def convert_body(message: Message, kind: Any) -> Any:
    """The body as ``kind`` (str, bytes, dict or list), by JMS's rule for receiveBody.

    Raises:
        MessageFormatError: the body is of another kind.
    """
    if kind not in _KINDS:
        raise MessageFormatError(f"{kind!r} is not a kind of body; ask for str, bytes, dict or list")
    body = message.body
    if isinstance(body, kind):
        return body
    raise MessageFormatError(f"the message holds {body_kind(body)}, not {_KINDS[kind]}; read message.body instead")


def _json_of(body: object, kind: object) -> object:
    if body is None:
        raise MessageFormatError("there is none")
    found = json.loads(body) if isinstance(body, str | bytes) else body
    if isinstance(kind, type) and not isinstance(found, kind):
        raise MessageFormatError(f"it is a {type(found).__name__}, not a {kind.__name__}")
    return found
