"""Queues that are there are taken as they are, where the address that makes one refuses those of other arguments.

RabbitMQ 3 has two addresses for a queue: one makes it, and refuses a queue that is there with other arguments; the
other one makes none, and takes what is sent to a queue that is not there without a word. So only such a refusal proves
that the second one can be used. A link to the first one is tried, in a session of its own, which a refusal ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.transports.amqp.links.endpoints import Found, LinkTable
from redelivery.transports.amqp.links.senders import Sender
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.links.terminus import describe, link_name
from redelivery.transports.dialects.amqp import AmqpDialect

# To look by a consumer's link would delete a queue that goes with its last consumer.
_CANNOT_LOOK: Final = (
    "over AMQP this broker does not say whether a queue is there without making it, and takes what is sent to one that "
    "is not: use stomp://, or a newer version of it"
)


class Prober:
    """Probes nodes for one connection; for the holder of the connection's lock."""

    def __init__(self, table: LinkTable, dialect: AmqpDialect) -> None:
        self._table = table
        self._dialect = dialect
        self._session: AmqpSession | None = None  # free for the next one

    def ensure(self, name: str, found: Found, *, make: bool = True) -> None:
        """See `Nodes.ensure`."""
        existing = self.existing(name)
        if not make:
            found(UnsupportedError(f"queue://{name}: declare=False: {_CANNOT_LOOK}"), None)
            return
        session = self._taken()
        refusal = self._dialect.other_queue_refusal
        probe = LinkProbe(
            session, name, refusal, self._free, lambda error, other: found(error, existing if other else None)
        )
        describe(probe.handle.target, Queue(name), self._dialect)
        probe.open(None)

    def existing(self, name: str) -> str:
        """The address of a queue that makes none."""
        return self._dialect.existing_queue_prefix + name.replace("/", self._dialect.slash)

    def _taken(self) -> AmqpSession:
        session, self._session = self._session, None
        if session is None or session.ended is not None:
            session = AmqpSession(self._table)
            session.open(None)
        return session

    def _free(self, session: AmqpSession) -> None:
        self._session = session


class LinkProbe(Sender):
    """A link that is opened to see whether it can be."""

    __slots__ = ("_done", "_found", "_refusal")

    def __init__(
        self,
        session: AmqpSession,
        name: str,
        refusal: str,
        done: Callable[[AmqpSession], None],
        found: Callable[[JMSError | None, bool], None],
    ) -> None:
        super().__init__(session, f"looking for queue://{name}", link_name("probe"))
        self._done = done
        self._found = found
        self._refusal = refusal

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`: it is there now, if it was not before."""
        super().on_opened()
        self.close(None)
        self._done(self.session)
        self._found(None, False)

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`: what is refused for another reason is refused to the link, in better words."""
        super().on_end(error, ours)
        if not self.opened:
            self._found(error if ours else None, not ours and self._refusal in str(error).lower())
