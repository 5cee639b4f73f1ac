"""The inbox of a session: deliveries, and between them the news of links, of the connection and of consumers.

Other threads put them there, in the order in which it happened; the holder of the session acts on them when he takes
them in (`SessionState.take_in`). A transport holds nothing of a session but this: one that the application has dropped
must be collected.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from redelivery.client.ledger import ConsumerState, Received
from redelivery.model.errors import JMSError
from redelivery.transports.seam import Delivery, Link, SessionEvents, Transport, Waiter

# `SessionState.take_in` compares them, in one step: an `__eq__` in Python would let an interrupt lose one.


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnded:
    """The broker has ended a consumer."""

    consumer: ConsumerState
    error: JMSError


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """The connection is gone; nothing is the session's any more."""

    error: JMSError
    at: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Interrupted:
    """The connection is gone, and another one will come; what was delivered goes back to the broker.

    ``planned``: it will be gone when the session is at rest.
    """

    error: JMSError
    planned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """There is another connection."""

    transport: Transport


@dataclass(frozen=True, slots=True, eq=False)
class CloseAsked:
    """The application closes a consumer."""

    consumer: ConsumerState


@dataclass(frozen=True, slots=True, eq=False)
class Returned:
    """A call that had taken these deliveries failed, or was interrupted: nobody has got them."""

    deliveries: tuple[Received, ...]


News: TypeAlias = LinkEnded | Lost | Interrupted | Restored | CloseAsked | Returned


class ReportError(Protocol):
    """The connection's function that is notified of an error that no call waits for."""

    def __call__(self, error: JMSError, *, deadly: bool = False, logged: bool = False) -> None:
        """``deadly``: a listener is called no more because of it. ``logged``: the log has a line about it already."""


class Inbox(deque[Received]):
    """Deliveries and news that the session has not taken in.

    Attributes:
        news: something here may be no delivery; set before that is put here.
        waiter: the place where the session's holder waits and is woken, whichever connection there is.
    """

    __slots__ = ("news", "waiter")

    def __init__(self, waiter: Waiter) -> None:
        super().__init__()
        self.news = False
        self.waiter = waiter

    def notify(self, news: News) -> None:
        """From any thread: the holder of the session takes it in, after what came before it."""
        self.news = True
        self.append(news)  # type: ignore[arg-type]  # `take_in` finds it, by `news`
        self.waiter.wake()


class WeakSessionEvents:
    """`SessionEvents` of a session that may be gone: its inbox and waiter, which know nothing of it."""

    def __init__(self, session: SessionEvents) -> None:
        self.inbox: deque[Delivery] = session.inbox
        self.waiter: Waiter = session.waiter
        self._session = weakref.ref(session)

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """See SessionEvents."""
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents."""
        session = self._session()
        if session is not None:
            session.on_link_closed(link, error)
