"""The source or target of a link: what it asks for, and what of it the embedded broker can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import proton
from cproton_ffi import lib

from redelivery.broker.servers.amqp.codec.conditions import RefusedError
from redelivery.broker.servers.amqp.codec.data import described, encoded, places, symbols, text
from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from redelivery.transports.amqp.codec.names import from_address
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.dialects.dialect import AmqpDialect
from redelivery.transports.dialects.embedded import DIALECT as _EMBEDDED

assert _EMBEDDED.amqp is not None, "the embedded broker speaks AMQP"
DIALECT: Final[AmqpDialect] = _EMBEDDED.amqp
# The kinds as the annotation `x-opt-jms-dest` counts them.
_CAPABILITIES: Final = {"queue": 0, "topic": 1, "temporary-queue": 2, "temporary-topic": 3}
_SELECTORS: Final = ("jms-selector", "apache.org:selector-filter:string", 0x0000468C00000004)
_NO_LOCAL: Final = ("no-local", "apache.org:no-local-filter:list", 0x0000468C00000003)


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What a link that receives asks for."""

    destination: Destination
    no_local: bool


def parse_address(address: str | None, asked: set[str]) -> Destination:
    """The destination of an address; a queue unless it or a capability says otherwise.

    Raises:
        InvalidDestinationError: it names no destination.
    """
    kind = next((number for name, number in _CAPABILITIES.items() if name in asked), None)
    found = from_address(address or "", kind, DIALECT)
    if found is None:
        raise InvalidDestinationError(f"{address!r} is not the address of a queue or topic")
    return found


def parse_source(source: Any, destination: Destination | None) -> SourceRequest:
    """What the source of a link asks for; ``destination`` is the dynamic one that was made for it.

    Raises:
        RefusedError, InvalidDestinationError: there is no such node.
        UnsupportedError: the embedded broker cannot do it; the text names it.
    """
    asked = capabilities(source)
    if source.type != proton.Terminus.SOURCE:
        raise RefusedError("amqp:not-found", "there is no such subscription: the embedded broker has no durable ones")
    if destination is None:
        destination = parse_address(address(source), asked)
    for capability in ("shared", "global"):
        if capability in asked:
            raise UnsupportedError(f"capability {capability}: the embedded broker has no shared subscriptions")
    if isinstance(destination, Topic) and (
        source.durability != proton.Terminus.NONDURABLE or source.expiry_policy == proton.Terminus.EXPIRE_NEVER
    ):
        raise UnsupportedError(f"{destination}: the embedded broker has no durable subscriptions")
    no_local = False
    for name, descriptor, value in filters(source):
        if name in _SELECTORS or descriptor in _SELECTORS:
            raise UnsupportedError(f"filter {value!r}: the embedded broker does not evaluate selectors")
        no_local = no_local or name in _NO_LOCAL or descriptor in _NO_LOCAL
    return SourceRequest(destination, no_local)


def is_browser(source: Any) -> bool:
    """Whether it asks for copies of what a queue holds; a topic's messages are copies anyway."""
    if source.distribution_mode != proton.Terminus.DIST_MODE_COPY:
        return False
    try:
        return not isinstance(parse_address(address(source), capabilities(source)), Topic)
    except (InvalidDestinationError, MessageFormatError):
        return False  # the attach will be refused for that


def confirm_source(source: Any, asked: Any, request: SourceRequest) -> None:
    """Write into our source what is met of what was asked."""
    source.copy(asked)
    source.durability = proton.Terminus.NONDURABLE
    if source.expiry_policy == proton.Terminus.EXPIRE_NEVER:
        source.expiry_policy = proton.Terminus.EXPIRE_WITH_LINK
    source.filter.clear()
    if request.no_local:
        source.filter.put_dict({proton.symbol(_NO_LOCAL[0]): proton.Described(proton.ulong(_NO_LOCAL[2]), [])})


def address(terminus: Any) -> str | None:
    """The address of a terminus."""
    return text(lib.pn_terminus_get_address(terminus._impl))


def capabilities(terminus: Any) -> set[str]:
    """The capabilities of a terminus. Raises MessageFormatError."""
    return symbols(lib.pn_terminus_capabilities(terminus._impl))


def filters(source: Any) -> list[tuple[object, object, object]]:
    """The name, descriptor and value of each filter of a source. Raises MessageFormatError."""
    raw = encoded(lib.pn_terminus_filter(source._impl))
    if not raw:
        return []
    found = []
    pairs = places(raw, 0)
    for key, value in zip(pairs[::2], pairs[1::2], strict=False):
        descriptor, at = described(raw, value)
        found.append((read(raw, key)[0], descriptor, read(raw, at)[0]))
    return found
