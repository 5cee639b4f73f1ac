"""How a consumer begins: which policy, which window, and whether it takes over a close that is still deferred."""

from __future__ import annotations

import logging
from collections.abc import Callable

from redelivery.client.core import SessionCore
from redelivery.client.ledger import Station
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.base import Delivery, Link

log = logging.getLogger(__name__)


def begin(
    core: SessionCore,
    target: Destination,
    name: str,
    *,
    selector: str | None,
    no_local: bool,
    window: int | None,
    own_policy: RedeliveryPolicy | None,
) -> tuple[Station, RedeliveryPolicy, bool]:
    """A station for a new consumer, its policy, and whether it is attached already (a window of 0 comes later)."""
    _check_capable(core, target, selector, no_local)
    policy = own_policy or core.options.redelivery_policies.policy_for(target)
    answer = _policy_of(core, target, own_policy, policy)
    station = _deferred(core, target, selector, no_local)
    if station is not None:
        core.ledger.reopen(station)
        station.policy = answer
        station.check_limit = _check_limit(core, policy)
        return station, policy, True
    link = Link(target, prefetch=window, selector=selector or None, no_local=no_local)
    station = Station(link, answer, name=name, check_limit=_check_limit(core, policy))
    core.ledger.attach(station)
    if window == 0:
        log.warning("prefetch=0 for %s works as 1, subscribed at the first receive: the transport only pushes", target)
        return station, policy, False
    try:
        core.do(core.channel.attach(link))
    except JMSError:
        core.ledger.stations.remove(station)
        raise
    return station, policy, True


def _check_capable(core: SessionCore, target: Destination, selector: str | None, no_local: bool) -> None:
    peer = core.transport.peer
    if target.is_pattern and isinstance(target, Queue) and not peer.capabilities.queue_patterns:
        raise UnsupportedError(
            f"{target}: {peer.provider_name} over {peer.protocol} has no consumers of a pattern of queues; "
            "make a consumer for each queue"
        )
    for asked, can, what in (
        (selector, peer.capabilities.selectors, "selectors"),
        (no_local, peer.capabilities.no_local, "no_local"),
    ):
        if asked and not can:
            raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no {what}")


def _deferred(core: SessionCore, target: Destination, selector: str | None, no_local: bool) -> Station | None:
    """A consumer of the same destination whose close waits for what it delivered: its prefetched messages go on."""
    for station in core.ledger.stations:
        link = station.link
        if station.closing and link.destination == target and link.selector == (selector or None):
            return station if link.no_local == no_local else None
    return None


def _policy_of(
    core: SessionCore, target: Destination, own: RedeliveryPolicy | None, policy: RedeliveryPolicy
) -> Callable[[Delivery], RedeliveryPolicy]:
    if own is not None or not target.is_pattern:
        return lambda _: policy
    return lambda delivery: core.options.redelivery_policies.policy_for(delivery.header("destination"))


def _check_limit(core: SessionCore, policy: RedeliveryPolicy) -> bool:
    """ActiveMQ's pre-dispatch check, where the broker's count says something about what the application has seen."""
    if core.mode != AckMode.TRANSACTED or policy.maximum_redeliveries < 0 or not policy.pre_dispatch_check:
        return False
    return policy.pre_dispatch_check_set or not core.transport.peer.capabilities.counts_prefetched
