"""The two ends of a link, as our side asks for them: addresses, capabilities, filters and outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, Final

import proton

from redelivery.model.destinations import Destination, Queue
from redelivery.transports.amqp.codec.names import capability, to_address
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Link

_OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
_SELECTOR: Final = 0x0000468C00000004  # of the registry of Apache's filters
_NO_LOCAL: Final = 0x0000468C00000003
_names: Final = count(1)


def outcomes() -> Any:
    """The outcomes that we know, which a source may announce."""
    return proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *map(proton.symbol, _OUTCOMES))


def link_name(prefix: str) -> str:
    """Never the same twice in a process."""
    return f"{prefix}-{next(_names)}"


def describe(terminus: Any, destination: Destination, dialect: AmqpDialect, more: Iterable[str] = ()) -> None:
    """Say which node it is, and what is wanted of that; ``more`` capabilities beside its own."""
    terminus.address = to_address(destination, dialect)
    if dialect.durable_nodes and isinstance(destination, Queue):
        terminus.durability = proton.Terminus.CONFIGURATION
    named = capability(destination, dialect)
    wanted = [proton.symbol(each) for each in (named, *more) if each is not None]
    if wanted:
        several = proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *wanted)
        terminus.capabilities.put_object(wanted[0] if len(wanted) == 1 else several)


def describe_source(source: Any, link: Link, dialect: AmqpDialect, *, client_id: bool) -> None:
    """The source of a consumer's link: its node, what it selects, and the outcomes that it may have."""
    named = link.spec.subscription
    shared = named is not None and named.shared
    describe(source, link.destination, dialect, (("shared",) if client_id else ("shared", "global")) if shared else ())
    if named is not None:
        source.durability = proton.Terminus.DELIVERIES if named.durable else proton.Terminus.NONDURABLE
        source.expiry_policy = proton.Terminus.EXPIRE_NEVER if named.durable else proton.Terminus.EXPIRE_WITH_LINK
    if link.spec.exclusive:
        source.address += dialect.exclusive_option
    filters = {}
    if link.spec.selector is not None:
        filters[proton.symbol("jms-selector")] = proton.Described(proton.ulong(_SELECTOR), link.spec.selector)
    if link.spec.no_local:
        filters[proton.symbol("no-local")] = proton.Described(proton.ulong(_NO_LOCAL), [])
    if filters:
        source.filter.put_dict(filters)
    source.outcomes.put_object(outcomes())
