"""The source or target of a link: what it asks for, and what of it the embedded broker can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import proton
from cproton_ffi import lib

from redelivery.broker.servers.amqp.codec.data import described, encoded, places, symbols, text
from redelivery.model.destinations import Destination, SubscriptionName, Topic
from redelivery.model.errors import InvalidDestinationError, InvalidSelectorError, MessageFormatError, UnsupportedError
from redelivery.model.selectors.selector import Selector
from redelivery.transports.amqp.codec.names import from_address
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.embedded import DIALECT as _EMBEDDED

assert _EMBEDDED.amqp is not None, "the embedded broker speaks AMQP"
DIALECT: Final[AmqpDialect] = _EMBEDDED.amqp
# The kinds as the annotation `x-opt-jms-dest` counts them.
_CAPABILITIES: Final = {"queue": 0, "topic": 1, "temporary-queue": 2, "temporary-topic": 3}
_SELECTORS: Final = ("jms-selector", "apache.org:selector-filter:string", 0x0000468C00000004)
_SHOWN: Final = 60  # characters of what is not a selector
_NO_LOCAL: Final = ("no-local", "apache.org:no-local-filter:list", 0x0000468C00000003)


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """The request of a link that receives; ``own``: of the subscription's name, that it is its client's own."""

    destination: Destination
    no_local: bool
    named: SubscriptionName | None = None
    own: bool = True
    selector: Selector | None = None
    exclusive: bool = False


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


def parse_source(source: Any, destination: Destination | None, link: str) -> SourceRequest:
    """Read the source of a link of that name; ``destination`` is the dynamic one that was made for it.

    Raises:
        InvalidDestinationError: there is no such node.
        InvalidSelectorError: it has a selector that is not valid.
        UnsupportedError: the embedded broker cannot do it; the text names it.
    """
    asked = capabilities(source)
    exclusive = False
    if destination is None:
        node, exclusive = _without_options(address(source) or "")
        destination = parse_address(node, asked)
    no_local, selector = False, None
    for name, descriptor, value in filters(source):
        if name in _SELECTORS or descriptor in _SELECTORS:
            selector = _parse_selector(value)
        no_local = no_local or name in _NO_LOCAL or descriptor in _NO_LOCAL
    named = _named(source, link, asked) if isinstance(destination, Topic) else None
    return SourceRequest(
        destination, no_local, named, own="global" not in asked, selector=selector, exclusive=exclusive
    )


def _without_options(node: str) -> tuple[str, bool]:
    """An address without what ActiveMQ's clients write behind it, and whether they ask for an exclusive consumer."""
    name, question, options = node.partition("?consumer.")
    if not question:
        return node, False
    if options not in ("exclusive=true", "exclusive=false"):
        raise UnsupportedError(f"{node}: of the options of a consumer the embedded broker has consumer.exclusive alone")
    return name, options == "exclusive=true"


def _parse_selector(value: object) -> Selector | None:
    if not isinstance(value, str):
        raise InvalidSelectorError(f"filter {repr(value)[:_SHOWN]}: a selector must be a string")
    return Selector(value) if value.strip() else None


def subscription_of(link: str) -> str:
    """The name of the subscription that a link of this name is for: what JMS clients write before a ``|``."""
    return link.partition("|")[0]


def _named(source: Any, link: str, asked: set[str]) -> SubscriptionName | None:
    durable = source.durability != proton.Terminus.NONDURABLE or source.expiry_policy == proton.Terminus.EXPIRE_NEVER
    shared = "shared" in asked
    if not durable and not shared:
        return None
    name = subscription_of(link) if shared else link
    if not name:
        raise InvalidDestinationError(f"a link named {link!r} does not name a subscription")
    return SubscriptionName(name, durable=durable, shared=shared)


def is_browser(source: Any) -> bool:
    """Check whether it asks for copies of what a queue holds; a topic's messages are copies anyway."""
    if source.distribution_mode != proton.Terminus.DIST_MODE_COPY:
        return False
    try:
        return not isinstance(parse_address(address(source), capabilities(source)), Topic)
    except (InvalidDestinationError, MessageFormatError):
        return False  # the attach will be refused for that


def confirm_source(source: Any, asked: Any, request: SourceRequest) -> None:
    """Write into our source what is met of what was asked."""
    source.copy(asked)
    if request.named is not None and request.named.durable:
        source.durability, source.expiry_policy = proton.Terminus.DELIVERIES, proton.Terminus.EXPIRE_NEVER
    else:
        source.durability = proton.Terminus.NONDURABLE
    if source.expiry_policy == proton.Terminus.EXPIRE_NEVER and source.durability == proton.Terminus.NONDURABLE:
        source.expiry_policy = proton.Terminus.EXPIRE_WITH_LINK
    source.filter.clear()
    granted = {}
    if request.no_local:
        granted[proton.symbol(_NO_LOCAL[0])] = proton.Described(proton.ulong(_NO_LOCAL[2]), [])
    if request.selector is not None:
        granted[proton.symbol(_SELECTORS[0])] = proton.Described(proton.ulong(_SELECTORS[2]), request.selector.text)
    if granted:
        source.filter.put_dict(granted)


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
