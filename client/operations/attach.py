"""How a consumer begins: which policy, which window, and whether it takes over a close that is still deferred."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from redelivery.client.arguments import check_no_local, check_selector
from redelivery.client.connection.reattach import await_loss, await_return
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.stages import OPEN
from redelivery.client.news import ended
from redelivery.client.options import ConnectionOptions
from redelivery.client.state import SessionState
from redelivery.model.destinations import Destination, Queue
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError, UnsupportedError
from redelivery.model.modes import AckMode
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Delivery, Flow, Link

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """What the application wishes; ``window`` None is the dialect's, ``policy`` None the connection's."""

    destination: Destination
    selector: str | None
    no_local: bool
    window: int | None
    policy: RedeliveryPolicy | None

    @classmethod
    def checked(
        cls,
        options: ConnectionOptions,
        destination: Destination | str,
        *,
        selector: str | None,
        no_local: bool,
        prefetch: int | None,
        redelivery_policy: RedeliveryPolicy | None,
    ) -> ConsumerSpec:
        """Of what the application gave. Raises ConfigError, InvalidDestinationError."""
        target = parse_destination(destination)
        if redelivery_policy is not None and not isinstance(redelivery_policy, RedeliveryPolicy):
            raise ConfigError(f"redelivery_policy must be a RedeliveryPolicy, not a {type(redelivery_policy).__name__}")
        check_selector(selector)
        check_no_local(target, no_local)
        window = (options.prefetch if prefetch is None else PrefetchPolicy.of(prefetch)).for_destination(target)
        return cls(target, selector or None, no_local, window, redelivery_policy)


def attach(s: SessionState, spec: ConsumerSpec, name: str, made: list[ConsumerState]) -> Flow[RedeliveryPolicy]:
    """A new consumer, which is put into ``made``, and its policy; with a window of 0 it is attached later.

    The caller closes what is in ``made`` when it fails: it may be attached, and nobody has it.
    """
    target, window = spec.destination, spec.window
    if s.away is not None and not (yield from await_return(s)):
        raise s.life.problem("consumer")
    _check_capable(s, spec)
    s.temporaries.check_destination(target)
    policy = spec.policy or s.options.redelivery_policies.policy_for(target)
    answer = _policy_of(s, spec, policy)
    consumer = _deferred(s, spec)
    if consumer is not None:
        s.ledger.reopen(consumer)
        made.append(consumer)
        consumer.policy = answer
        consumer.check_limit = _check_limit(s, policy)
        return policy
    link = Link(target, prefetch=window, selector=spec.selector, no_local=spec.no_local)
    consumer = ConsumerState(link, answer, name=name, check_limit=_check_limit(s, policy))
    s.ledger.attach(consumer)
    made.append(consumer)
    if log.isEnabledFor(logging.DEBUG):
        more = "".join(
            f", {name} {value!r}" for name, value in (("selector", spec.selector), ("prefetch", window)) if value
        )
        log.debug("%s: a consumer of %s%s", s.options.url, target, more)
    if window == 0:
        log.warning("prefetch=0 for %s works as 1, subscribed at the first receive: the transport only pushes", target)
        consumer.attached = False
        return policy
    try:
        yield from s.channel.attach(link)
    except ConnectionLostError:
        if not s.comes_back:
            _unmade(s, consumer, made)
            raise
        yield from await_loss(s)
        if not (yield from await_return(s)):  # where it is attached with the others
            raise s.life.problem("consumer") from None
        if consumer.error is not None:
            made.remove(consumer)
            raise ended(consumer, "consumer") from None
    except JMSError:
        _unmade(s, consumer, made)
        raise
    return policy


def _unmade(s: SessionState, consumer: ConsumerState, made: list[ConsumerState]) -> None:
    s.ledger.consumers.remove(consumer)
    made.remove(consumer)


def temporary(s: SessionState, kind: type[Destination]) -> Flow[Destination]:
    """See `Transport.temporary`; after a loss it is made on the next connection."""
    while True:
        if s.away is not None and not (yield from await_return(s)):
            raise s.life.problem("temporary destination")
        transport = s.transport
        try:
            made = yield from transport.temporary(kind, s.waiter)
            if s.temporaries.made(made, transport):
                return made
        except ConnectionLostError:
            if not s.comes_back:
                raise
        yield from await_loss(s)


def attach_late(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    """A prefetch of 0 over a protocol that only pushes: subscribed when the application first asks."""
    if consumer.stage is OPEN:  # else its receive says why not
        yield from s.channel.attach(consumer.link)
        consumer.attached = True


def _check_capable(s: SessionState, spec: ConsumerSpec) -> None:
    target = spec.destination
    peer = s.transport.peer
    if target.is_pattern and isinstance(target, Queue) and not peer.capabilities.queue_patterns:
        raise UnsupportedError(
            f"{target}: {peer.provider_name} over {peer.protocol} has no consumers of a pattern of queues; "
            "make a consumer for each queue"
        )
    for asked, can, what in (
        (spec.selector, peer.capabilities.selectors, "selectors"),
        (spec.no_local, peer.capabilities.no_local, "no_local"),
    ):
        if asked and not can:
            raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no {what}")


def _deferred(s: SessionState, spec: ConsumerSpec) -> ConsumerState | None:
    """A consumer of the same destination whose close waits for what it delivered: its prefetched messages go on."""
    for consumer in s.ledger.consumers:
        link = consumer.link
        if consumer.closing and link.destination == spec.destination and link.selector == spec.selector:
            return consumer if link.no_local == spec.no_local else None
    return None


def _policy_of(s: SessionState, spec: ConsumerSpec, policy: RedeliveryPolicy) -> Callable[[Delivery], RedeliveryPolicy]:
    if spec.policy is not None or not spec.destination.is_pattern:
        return lambda _: policy
    policies = s.options.redelivery_policies  # and not the s: the transport holds what holds this
    return lambda delivery: policies.policy_for(delivery.header("destination"))


def _check_limit(s: SessionState, policy: RedeliveryPolicy) -> bool:
    """ActiveMQ's pre-dispatch check, where the broker's count says something about what the application has seen."""
    if s.mode != AckMode.TRANSACTED or policy.maximum_redeliveries < 0 or not policy.pre_dispatch_check:
        return False
    return policy.pre_dispatch_check_set or not s.transport.peer.capabilities.counts_prefetched
