"""The two ends of a link, as our side asks for them: addresses, capabilities, filters and outcomes."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

import proton

from redelivery.model.destinations import Destination, Queue
from redelivery.transports.amqp.codec.names import capability, to_address
from redelivery.transports.dialects.dialect import AmqpDialect
from redelivery.transports.seam import Link

_OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
_SELECTOR: Final = 0x0000468C00000004  # of the registry of Apache's filters
_NO_LOCAL: Final = 0x0000468C00000003
_names: Final = count(1)


def outcomes() -> Any:
    """What a source may say of itself: the outcomes that we know."""
    return proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *map(proton.symbol, _OUTCOMES))


def link_name(prefix: str) -> str:
    """Never the same twice in a process."""
    return f"{prefix}-{next(_names)}"


def describe(terminus: Any, destination: Destination, dialect: AmqpDialect) -> None:
    """Say which node it is, and what is wanted of that."""
    terminus.address = to_address(destination, dialect)
    if dialect.durable_nodes and isinstance(destination, Queue):
        terminus.durability = proton.Terminus.CONFIGURATION
    named = capability(destination, dialect)
    if named is not None:
        terminus.capabilities.put_object(proton.symbol(named))


def describe_source(source: Any, link: Link, dialect: AmqpDialect) -> None:
    """The source of a consumer's link: its node, what it selects, and the outcomes that it may have."""
    describe(source, link.destination, dialect)
    filters = {}
    if link.selector is not None:
        filters[proton.symbol("jms-selector")] = proton.Described(proton.ulong(_SELECTOR), link.selector)
    if link.no_local:
        filters[proton.symbol("no-local")] = proton.Described(proton.ulong(_NO_LOCAL), [])
    if filters:
        source.filter.put_dict(filters)
    source.outcomes.put_object(outcomes())
