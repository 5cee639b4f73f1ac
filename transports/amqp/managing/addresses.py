"""Queues of addresses that have other names, and of a topic's kind, where what is sent to their names would be lost.

Artemis confirms it all the same. So its management is asked once for each name that is sent to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import ConnectionLostError, InvalidDestinationError, JMSError
from redelivery.policies.destinations.bound import BoundTo
from redelivery.transports.amqp.managing.operations import OperationQueues
from redelivery.transports.finding import QUALIFIED
from redelivery.transports.flows import Flow, InterruptedWait
from redelivery.transports.management.bound import FRESH, queues_of
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_TRIES: Final = 3  # a list fails where a queue in it ends meanwhile


class KnownQueues:
    """The queues behind names, as one connection knows them.

    Args:
        made: the queues that the broker's file makes; None: no file was given, or it does not list them.

    Attributes:
        routes: the destination that is meant, by the name of a queue that would be lost otherwise.
        known: until when a name need not be asked for, by name, in monotonic seconds.
        refused: the management does not answer.
    """

    def __init__(self, made: Sequence[BoundTo] | None) -> None:
        self.made = made
        self.routes: dict[str, Destination] = {}
        self.known: dict[str, float] = {}
        self.refused = False


class BoundQueueFinder:
    """Finds the queues behind names, for one session; see `Finder`.

    Args:
        places: the connection's.
        node: the address of the management, which is none of a queue.
        management: begins to ask.
    """

    def __init__(self, places: KnownQueues, node: str, management: Callable[[], OperationQueues]) -> None:
        self._places = places
        self._node = node
        self._management = management

    def must_find(self, destination: Destination | None) -> bool:
        """Check whether it is a queue of which nothing is known, or what is known may have changed."""
        if type(destination) is not Queue or destination.is_pattern or destination.name == self._node:
            return False
        places, name = self._places, destination.name
        until = places.known.get(name)
        return until is None or (name in places.routes and until < monotonic())

    def forget(self, destination: Destination) -> None:
        """See `Finder.forget`."""
        self._places.known.pop(destination.name, None)
        self._places.routes.pop(destination.name, None)

    def find(self, destination: Destination) -> Flow[None]:
        """Ask for the queues of the name.

        Raises:
            ConnectionLostError: there is no connection any more.
        """
        places, name = self._places, destination.name
        if places.refused:
            queues, used = self._listed(name), False
        else:
            try:
                queues, used = yield from self._ask(name)
            except (ConnectionLostError, InterruptedWait):
                raise
            except JMSError as error:
                places.refused, queues, used = True, self._listed(name), False
                log.log(
                    logging.WARNING if places.made is None else logging.INFO,
                    "the broker does not say which queues an address has: what is sent to a queue whose address has "
                    "another name, or to one of a topic's kind, may be confirmed and lost: let this user ask the "
                    "management (permission `manage`), or give the broker's file (policies=): %s",
                    error,
                )
        self.forget(destination)
        places.known[name] = monotonic() + FRESH
        route = route_to(name, queues, used=used)
        if route is not None:
            places.routes[name] = route

    def _ask(self, name: str) -> Flow[tuple[tuple[BoundTo, ...], bool]]:
        management = self._management()
        try:
            for _ in range(_TRIES - 1):
                try:
                    return (yield from management.behind(name))
                except InvalidDestinationError:
                    pass
            return (yield from management.behind(name))
        finally:
            management.close()

    def _listed(self, name: str) -> tuple[BoundTo, ...]:
        address, _, queue = name.rpartition(QUALIFIED)
        made = self._places.made or ()
        on = [each for each in made if each.address == (address or name)]
        return queues_of(name, on, [each for each in made if each.name == queue], made=True)


def route_to(name: str, queues: tuple[BoundTo, ...], *, used: bool) -> Destination | None:
    """The destination by which what is sent reaches these queues; None: by the name, as a queue.

    Args:
        name: the queue's, as the application says it.
        queues: that it means; none: it is not there.
        used: its address has queues; where none is meant, Artemis would make none, as they are of a topic.
    """
    address, named, _ = name.rpartition(QUALIFIED)
    if not queues:
        return Queue(f"{name}{QUALIFIED}{name}") if used and not named else None
    first = queues[0]
    if first.anycast and first.address == (address or name):
        return None
    whole = f"{first.address}{QUALIFIED}{first.name}"
    if first.anycast:
        return Queue(whole)
    others = first.address == name and first.name != name  # of an address that has queues of other names
    return Topic(name if others else whole)
