"""Temporary destinations: the broker removes them with the connection, and after a loss they are made anew.

A destination is a value, so the one that is made anew is another one, with the name that the broker has given it.
Consumers go over to it; to send to the old one, or to ask for a reply there, is an error that says so.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import ConnectionLostError, InvalidDestinationError, JMSError, RequestTimeoutError
from redelivery.model.messages import Message
from redelivery.transports.seam import Flow, Transport, Waiter

log = logging.getLogger(CONNECTIONS)
_REMEMBERED: Final = 1000  # names that are gone; of older ones the broker knows nothing either, and says so itself


class Temporaries:
    """The temporary destinations of one connection."""

    def __init__(self) -> None:
        self._made: dict[Destination, Transport] = {}  # by the application, and on which transport
        self._gone: dict[Destination, Destination | None] = {}  # of lost connections: what stands for each now
        self._newest: Transport | None = None  # on which they were made anew
        self._unowned: set[Destination] = set()  # of these those that no session has made
        self._lock = threading.Lock()  # between its sessions and the one who connects again

    def made(self, destination: Destination, transport: Transport) -> bool:
        """There is another one; False where its connection was lost meanwhile."""
        with self._lock:
            if self._newest is not transport:
                return False
            self._made[destination] = transport
            return True

    def renew(self, transport: Transport, waiter: Waiter) -> Flow[None]:
        """Make them all anew. What the broker refuses is gone for good.

        Raises:
            ConnectionLostError, RequestTimeoutError: the transport is of no use.
        """
        with self._lock:
            self._newest = transport
            self._unowned.clear()
            old = list(self._made)
        for destination in old:
            new: Destination | None = None
            try:
                new = yield from transport.temporary(type(destination), waiter)
                log.info("%s was removed with its connection; it is %s now", destination, new)
            except (ConnectionLostError, RequestTimeoutError):
                raise
            except JMSError as error:
                log.warning("%s was removed with its connection, and cannot be made anew: %s", destination, error)
            self._replace(destination, new, transport)
            if new is not None:
                self._unowned.add(new)

    def take(self, destination: Destination, transport: Transport, waiter: Waiter) -> Flow[Destination]:
        """The destination in its place for a session that consumes it: made once more where only its maker can.

        ``waiter``: the session's.

        Raises:
            InvalidDestinationError: nothing.
            JMSError: as `Transport.temporary`.
        """
        now = self.now(destination)
        if now not in self._unowned or not transport.peer.capabilities.temporaries_of_session:
            return now
        new = yield from transport.temporary(type(now), waiter)
        self._unowned.discard(now)
        self._replace(now, new, transport)
        return new

    def now(self, destination: Destination) -> Destination:
        """The destination in its place. Raises InvalidDestinationError: nothing."""
        if destination not in self._gone:
            return destination
        new = self._gone[destination]
        if new is None:
            raise _problem(destination, "and could not be made anew")
        return new

    def replaced(self, destination: Destination) -> bool:
        """Check whether another one stands for it, which its consumer has as soon as its session has come back."""
        return self._gone.get(destination) is not None

    def check(self, message: Message) -> None:
        """Raise InvalidDestinationError where it goes to one that is gone, or asks for a reply there."""
        if self._gone:
            self.check_destination(message.destination)
            self.check_destination(message.reply_to, "reply_to: ")

    def check_destination(self, destination: Destination | None, where: str = "") -> None:
        """Raise InvalidDestinationError where it is gone."""
        if isinstance(destination, TemporaryQueue | TemporaryTopic) and destination in self._gone:
            new = self._gone[destination]
            raise _problem(destination, f"its consumers have {new} now" if new else "and could not be made anew", where)

    def check_own(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where another connection made it: that one alone consumes it (JMS 3.1 §6.2)."""
        if isinstance(destination, TemporaryQueue | TemporaryTopic) and destination not in self._made:
            raise InvalidDestinationError(
                f"{destination}: only the connection that made it can consume it; others send to it"
            )

    def _replace(self, old: Destination, new: Destination | None, transport: Transport) -> None:
        with self._lock:
            del self._made[old]
            if new is not None:
                self._made[new] = transport
            for each, current in self._gone.items():
                if current == old:
                    self._gone[each] = new
            self._gone[old] = new
            for each in list(self._gone)[:-_REMEMBERED]:
                del self._gone[each]


def _problem(destination: Destination, now: str, where: str = "") -> InvalidDestinationError:
    return InvalidDestinationError(
        f"{where}{destination} was removed by the broker when its connection was lost: {now} "
        "(consumer.destination, or make another one)"
    )
