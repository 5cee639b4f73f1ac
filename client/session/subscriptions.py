"""The named subscriptions of a connection, which its sessions share; and which consumer begins anew after its end."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final, cast

from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.stages import CLOSED, CLOSING, ENDED, OPEN
from redelivery.client.lifecycle import Lifecycle, SessionStage
from redelivery.model.destinations import SubscriptionName, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import IllegalStateError, UnsupportedError
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.seam import Link

_GONE: Final = (SessionStage.CLOSED, SessionStage.LOST)
_ASKED: Final = (OPEN, ENDED)  # the application has not closed it
_SWEEP: Final = 64  # names; below, those that nobody has any more are not worth looking for


@dataclass(frozen=True, slots=True)
class _Holder:
    consumer: ConsumerState
    session: Lifecycle[SessionStage]

    @property
    def active(self) -> bool:
        return self.session.stage not in _GONE and self.consumer.stage not in (ENDED, CLOSED)


class Subscriptions:
    """The named subscriptions that a connection's consumers have; thread-safe.

    What JMS forbids is an error, whatever the broker would do: some let a second consumer take the first one's place,
    or share with it (JMS 3.1 §8.3).
    """

    def __init__(self) -> None:
        self._holders: dict[tuple[str, bool], list[_Holder]] = {}  # by name, and whether durable
        self._known: dict[str, Link] = {}  # by which each durable one was consumed last
        self._sweep_at = _SWEEP
        self._lock = threading.Lock()

    def take(self, consumer: ConsumerState, session: Lifecycle[SessionStage]) -> None:
        """The consumer begins; its link is marked where it changes the subscription.

        Raises:
            IllegalStateError: the subscription is in use, or another one.
        """
        link, named = consumer.link, consumer.link.spec.subscription
        assert named is not None, "or nothing is to be taken"
        key = (named.name, named.durable)
        with self._lock:
            holders = [each for each in self._holders.get(key, ()) if each.active]
            for each in holders:
                _check(named, link, each.consumer)
            known = self._known.get(named.name) if named.durable else None
            link.changed = known is not None and _asked(known) != _asked(link)
            self._holders[key] = [*holders, _Holder(consumer, session)]
            if named.durable:
                self._known[named.name] = link
            if len(self._holders) > self._sweep_at:
                self._sweep()

    def check_unused(self, name: str) -> Link | None:
        """The link by which a durable one was consumed last, if this connection has done so.

        Raises:
            IllegalStateError: it has a consumer, or one that was closed has messages that are not acknowledged.
        """
        with self._lock:
            for each in self._holders.get((name, True), ()):
                if each.active:
                    closing = each.consumer.stage is CLOSING
                    raise IllegalStateError(
                        f"unsubscribe: the durable subscription {name!r} has messages that are not acknowledged yet"
                        if closing
                        else f"unsubscribe: the durable subscription {name!r} is in use: close its consumers first"
                    )
            return self._known.get(name)

    def consumed(self) -> list[tuple[SubscriptionName, list[ConsumerState]]]:
        """List those that have consumers, which the broker may have ended; each with them."""
        with self._lock:
            open_ = [
                [each.consumer for each in holders if each.session.stage not in _GONE and each.consumer.stage in _ASKED]
                for holders in self._holders.values()
            ]
        return [(cast(SubscriptionName, each[0].link.spec.subscription), each) for each in open_ if each]

    def forget(self, name: str) -> None:
        """The durable subscription was removed."""
        with self._lock:
            self._known.pop(name, None)

    def _sweep(self) -> None:
        active = {key: [each for each in holders if each.active] for key, holders in self._holders.items()}
        self._holders = {key: holders for key, holders in active.items() if holders}
        self._sweep_at = max(_SWEEP, 2 * len(self._holders))


def _check(named: SubscriptionName, link: Link, other: ConsumerState) -> None:
    has = other.link.spec.subscription
    if has is None or has.shared != named.shared:
        raise IllegalStateError(f"{named} cannot be made: this connection consumes {has}; use another name")
    if not named.shared:
        closing = other.stage is CLOSING
        what = "a consumer of it was closed and has messages that are not acknowledged" if closing else "it has one"
        raise IllegalStateError(f"{named} serves one consumer at a time, and {what}; close that first")
    if _asked(link) != _asked(other.link):
        raise IllegalStateError(
            f"{named} has consumers, with another topic or selector: close them first, or use another name"
        )


def _asked(link: Link) -> tuple[object, ...]:
    spec = link.spec
    return spec.destination, spec.selector, spec.no_local, spec.subscription


def begins_anew(consumer: ConsumerState, policy: ReconnectPolicy | None) -> bool:
    """Check whether a consumer is attached again when the broker has ended it: a listener's, but of no temporary queue.

    Nor where the broker cannot serve it at all, which another attempt does not change.
    """
    if not consumer.listening or policy is None or policy.maximum_attempts == 0:
        return False
    if isinstance(consumer.error, UnsupportedError):
        return False
    return not isinstance(consumer.link.destination, (TemporaryQueue, TemporaryTopic))
