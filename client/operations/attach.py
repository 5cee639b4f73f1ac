"""Begins a consumer: its policy, its window, its subscription, and whether it takes over a deferred close."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Unpack

from redelivery.client.arguments import (
    CONSUMER_DEFAULTS,
    ConsumerKeywords,
    check_evaluates,
    check_no_local,
    check_selector,
    check_subscription,
    consumer_options,
)
from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.ledger.stages import OPEN
from redelivery.client.operations.channels import attach_anew, attach_link, begins_late, take_client_id
from redelivery.client.operations.orders import catch_up
from redelivery.client.operations.reattach import await_loss, connected
from redelivery.client.options import ConnectionOptions
from redelivery.client.session.state import SessionState, ended
from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.destinations import Destination, Queue, SubscriptionName
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, ConnectionLostError, IllegalStateError, JMSError, UnsupportedError
from redelivery.model.modes import AckMode
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Flow, Link, LinkSpec, Peer

log = logging.getLogger(__name__)
BODIES: Final = ("auto", "text", "bytes")


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """The application's wish for a consumer; ``policy`` None is the connection's."""

    link: LinkSpec
    policy: RedeliveryPolicy | None

    @classmethod
    def checked(
        cls,
        options: ConnectionOptions,
        destination: Destination | str,
        named: SubscriptionName | None = None,
        workers: int = 0,
        **given: Unpack[ConsumerKeywords],
    ) -> ConsumerSpec:
        """Of what the application gave. Raises ConfigError, InvalidDestinationError, InvalidSelectorError.

        ``workers``: it is one of so many of a container; 0: of none.
        """
        given = {**CONSUMER_DEFAULTS, **given}
        policy, no_local, prefetch = given["redelivery_policy"], given["no_local"], given["prefetch"]
        destination, exclusive = consumer_options(destination)
        target = parse_destination(destination)
        if policy is not None and not isinstance(policy, RedeliveryPolicy):
            raise ConfigError(f"redelivery_policy must be a RedeliveryPolicy, not a {type(policy).__name__}")
        condition, bodies = check_selector(given["selector"]), given["bodies"]
        if bodies not in BODIES:
            raise ConfigError(f"bodies={bodies!r} is none of {', '.join(map(repr, BODIES))}")
        if named is None:
            check_no_local(target, no_local)
        else:
            check_subscription(target, named, no_local)
        windows = options.prefetch if prefetch is None else PrefetchPolicy.of(prefetch)
        window = windows.for_destination(target, durable=named is not None and named.durable)
        kept = isinstance(target, Queue) or named is not None  # until somebody asks for it
        pulls = kept and ((workers > 0 and window == 0) or (workers > 1 and window is None))
        selector = None if condition is None else condition.text
        link = LinkSpec(
            target,
            selector,
            no_local,
            window,
            windows.max_bytes,
            subscription=named,
            exclusive=exclusive,
            pulls=pulls,
            bodies=bodies,
        )
        return cls(link, policy)


def attach(s: SessionState, spec: ConsumerSpec, name: str, made: list[ConsumerState]) -> Flow[RedeliveryPolicy]:
    """A new consumer, which is put into ``made``, and its policy; with a window of 0 it is attached later.

    The caller closes what is in ``made`` when it fails: it may be attached, and nobody has it.
    """
    yield from catch_up(s)  # what ended, or was closed, meanwhile
    deadline = s.now() + s.options.request_timeout
    yield from connected(s, "consumer", deadline)
    target = s.epoch.transport.meant(spec.link.destination)
    wished = replace(spec.link, destination=target)
    check_capable(s.epoch.transport.peer, wished)
    s.temporaries.check_destination(target)
    s.temporaries.check_own(target)
    policy = spec.policy or s.options.redelivery_policies.policy_for(target)
    answer = _policy_of(s, target, policy, own=spec.policy is not None)
    consumer = _deferred(s, wished)
    if consumer is not None:
        s.ledger.reopen(consumer)
        made.append(consumer)
        consumer.policy = answer
        consumer.check_limit = _check_limit(s, policy)
        return policy
    consumer = ConsumerState(Link(wished), answer, name=name, check_limit=_check_limit(s, policy))
    if wished.subscription is not None:
        yield from _begin_subscription(s, consumer, wished.subscription)
    s.ledger.attach(consumer)
    made.append(consumer)
    if log.isEnabledFor(logging.DEBUG):
        said = (("selector", wished.selector), ("prefetch", wished.window))
        more = "".join(f", {name} {value!r}" for name, value in said if value)
        log.debug("%s: a consumer of %s%s", s.options.url, target, more)
    if begins_late(wished):
        log.warning("prefetch=0 for %s works as 1, subscribed at the first receive: the transport only pushes", target)
        consumer.attached = False
        return policy
    yield from _attach(s, consumer, made, deadline)
    return policy


def _attach(s: SessionState, consumer: ConsumerState, made: list[ConsumerState], deadline: float) -> Flow[None]:
    try:
        yield from attach_link(s, consumer.link)
    except ConnectionLostError as error:
        if not s.comes_back:
            _unmade(s, consumer, made)
        yield from await_loss(s, error)
        yield from connected(s, "consumer", deadline)  # where it is attached with the others
        if consumer.error is not None:
            made.remove(consumer)
            raise ended(consumer, "consumer") from None
    except JMSError:
        _unmade(s, consumer, made)
        raise


def _unmade(s: SessionState, consumer: ConsumerState, made: list[ConsumerState]) -> None:
    s.ledger.consumers.remove(consumer)
    made.remove(consumer)
    consumer.step("end")


def attach_late(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    """A prefetch of 0 over a protocol that only pushes: subscribed when the application first asks.

    Where the connection is away, or lost meanwhile, it is not, and the caller waits for the one that comes.
    """
    if consumer.stage is OPEN and not consumer.attached and s.epoch.lost is None:  # else its receive says why not
        try:
            yield from attach_anew(s, consumer)
        except ConnectionLostError as error:
            yield from await_loss(s, error)


def check_capable(peer: Peer | ConnectionMetaData, spec: LinkSpec) -> None:
    """Raise UnsupportedError where the broker is known to have no such consumers; the text says why."""
    target = spec.destination
    if target.is_pattern and isinstance(target, Queue) and not peer.capabilities.queue_patterns:
        raise UnsupportedError(
            f"{target}: {peer.provider_name} over {peer.protocol} has no consumers of a pattern of queues; "
            "make a consumer for each queue"
        )
    check_evaluates(peer, check_selector(spec.selector))
    if spec.no_local and not peer.capabilities.no_local:
        raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no no_local")
    if spec.bodies != "auto" and not peer.protocol.startswith("STOMP"):
        raise UnsupportedError(f"bodies={spec.bodies!r}: over {peer.protocol} each message says what its body is")
    if spec.exclusive and not peer.capabilities.exclusive_consumers:
        raise UnsupportedError(
            f"{target}: {peer.provider_name} over {peer.protocol} has no exclusive consumers; see to it that there is "
            "one consumer only"
        )
    if spec.subscription is not None:
        check_kind(peer, spec.subscription.kind)


def check_kind(peer: Peer | ConnectionMetaData, kind: str) -> None:
    """Raise UnsupportedError where the broker has no such subscriptions."""
    can = peer.capabilities
    if kind not in can.subscriptions:
        why = f": {can.no_subscription}" if can.no_subscription else ""
        raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no {kind} subscriptions{why}")


def _begin_subscription(s: SessionState, consumer: ConsumerState, named: SubscriptionName) -> Flow[None]:
    """The consumer, which is not attached yet, has the subscription, and its session a channel for it.

    Raises:
        IllegalStateError: it is in use, or needs a client id, or a channel that the session cannot have any more.
    """
    if named.durable and not named.shared and s.options.transport.client_id is None:
        raise IllegalStateError(
            f"{named} belongs to a client id, and this connection has none: connect(…, client_id='…')"
        )
    s.subscriptions.take(consumer, s.life)
    try:
        if named.durable and not s.epoch.channel.has_client_id:
            yield from take_client_id(s)
    except BaseException:
        consumer.step("end")
        raise


def _deferred(s: SessionState, spec: LinkSpec) -> ConsumerState | None:
    """A consumer of the same wishes whose close waits for what it delivered: its prefetched messages go on."""
    for consumer in s.ledger.consumers:
        if consumer.closing and replace(consumer.link.spec, window=spec.window) == spec:
            return consumer
    return None


def _policy_of(
    s: SessionState, target: Destination, policy: RedeliveryPolicy, *, own: bool
) -> Callable[[Received], RedeliveryPolicy]:
    if own or not (target.is_pattern or "," in target.name):
        return lambda _: policy
    policies = s.options.redelivery_policies  # and not the s: the transport holds what holds this
    return lambda delivery: policies.policy_for(delivery.came_from())


def _check_limit(s: SessionState, policy: RedeliveryPolicy) -> bool:
    """ActiveMQ's pre-dispatch check, where the broker's count says something about what the application has seen."""
    if s.mode != AckMode.TRANSACTED or policy.maximum_redeliveries < 0 or not policy.pre_dispatch_check:
        return False
    return policy.pre_dispatch_check_set or not s.epoch.transport.peer.capabilities.counts_prefetched
