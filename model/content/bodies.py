"""A body as it came over a wire: its bytes, and what a sender of the same protocol writes to send it as it was."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol, TypeGuard, runtime_checkable

from redelivery.model.content.errors import MessageFormatError
from redelivery.model.values import Body, Value

_SHOWN: Final = 40  # characters of a name


class RawBody(ABC):
    """The body of a received message, as its copy carries it: decoded only where somebody looks at it."""

    __slots__ = ()

    @property
    def whole(self) -> bool:
        """True where all of the body came; False where the broker says that it could not translate it."""
        return True

    @abstractmethod
    def data(self) -> bytes:
        """The body's bytes; never raises, whatever they are."""

    @abstractmethod
    def read(self) -> Body:
        """Decoded, the caller's own. Raises MessageFormatError."""


@runtime_checkable
class Carrying(Protocol):
    """A source of messages that knows what came as well as what it means. Nothing here raises."""

    def raw_body(self) -> RawBody:
        """The body as it came."""

    def readable(self) -> tuple[Mapping[str, Value], list[str]]:
        """The properties that can be read, and what to call the others."""


class ReadableSource(Protocol):
    """A source that may know only what it means."""

    def body(self) -> Body:
        """The body, decoded. Raises MessageFormatError."""

    def properties(self) -> Mapping[str, Value]:
        """The properties. Raises MessageFormatError."""


class KnownBody(RawBody):
    """A body that was never encoded."""

    __slots__ = ("_body",)

    def __init__(self, body: Body) -> None:
        self._body = body

    def data(self) -> bytes:
        """See `body_bytes`."""
        return body_bytes(self._body)

    def read(self) -> Body:
        """The body itself."""
        return self._body


class LateBody(RawBody):
    """A body that only its source can read."""

    __slots__ = ("_source",)

    def __init__(self, source: ReadableSource) -> None:
        self._source = source

    def data(self) -> bytes:
        """See `body_bytes`; nothing where it cannot be read."""
        try:
            return body_bytes(self._source.body())
        except MessageFormatError:
            return b""

    def read(self) -> Body:
        """See `RawBody`."""
        return self._source.body()


def raw_of(source: ReadableSource) -> RawBody:
    """The body of any source, as it came."""
    return source.raw_body() if _is_carrying(source) else LateBody(source)


def readable_of(source: ReadableSource) -> tuple[Mapping[str, Value], list[str]]:
    """The properties of any source that can be read, and what to call the others."""
    if _is_carrying(source):
        return source.readable()
    try:
        return source.properties(), []
    except MessageFormatError:
        return MappingProxyType({}), ["its properties"]


def _is_carrying(source: object) -> TypeGuard[Carrying]:
    return _are_carrying(type(source))  # type: ignore[arg-type]  # mypy takes the hash of its objects for its own


@lru_cache(maxsize=100)
def _are_carrying(kind: type) -> bool:
    return issubclass(kind, Carrying)  # which takes longer than the copy of a body


def is_nested(body: object) -> bool:
    """Check whether a body is a map or list with another one in it: AMQP has those, and JMS has not."""
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return any(isinstance(each, (dict, list)) for each in inner)


def decoded(body: RawBody) -> Body:
    """A body that came by another protocol than it leaves by; its bytes where nobody can read it."""
    try:
        return body.read()
    except MessageFormatError:
        return body.data()


def body_bytes(body: Body) -> bytes:
    """A decoded body as bytes: UTF-8 of a str, JSON of a map or stream (bytes in it as ``{"$bytes": base64}``)."""
    if isinstance(body, bytes):
        return body
    if body is None:
        return b""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=_named_bytes)
    return text.encode("utf-8", "surrogatepass")


def _named_bytes(value: bytes) -> dict[str, str]:
    return {"$bytes": b64encode(value).decode()}


def named(name: object) -> str:
    """The name of an unreadable property in a cause."""
    text = ascii(name)
    return f"property {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
