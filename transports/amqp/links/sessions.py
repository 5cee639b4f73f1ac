"""A session of AMQP's: where links live."""

from __future__ import annotations

from itertools import count
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError, JMSError, ResourceAllocationError
from redelivery.transports.amqp.links.endpoints import Endpoint, LinkTable
from redelivery.transports.seam import Pending

_numbers: Final = count(1)


class AmqpSession(Endpoint):
    """A session of AMQP. If the peer ends it, all its links are ended."""

    __slots__ = ("_ends_late", "links", "number")

    def __init__(self, table: LinkTable) -> None:
        """Raises ResourceAllocationError where the peer allows no more of them: proton would give the connection up."""
        if table.sessions >= table.most_sessions:
            self._answer_ends(table)
        if table.sessions >= table.most_sessions:
            raise ResourceAllocationError(
                f"the broker allows {table.most_sessions} sessions of AMQP on one connection, and all are open: "
                "use a further connection"
            )
        table.sessions += 1
        self.number = next(_numbers)
        super().__init__(table, table.engine.connection.session(), "the session")
        self.links: set[Endpoint] = set()
        self._ends_late = False

    def suits(self, destination: Destination | None) -> bool:
        """Check that a link to it may live here: not where the broker may know a former queue of that name by it."""
        return self.number > self.table.removed.get(destination, 0)

    @staticmethod
    def distrust(table: LinkTable, queue: Destination) -> None:
        """A queue was made or removed: no session that is there knows the next one of its name."""
        table.removed[queue] = next(_numbers)

    def keep(self) -> None:
        """Keep it for the next links, as its own are ended or ending (`AmqpDialect.keeps_sessions`)."""
        if self.ended is None and self not in self.table.idle:
            self.table.idle.append(self)

    def close(self, pending: Pending | None) -> None:
        """See `Endpoint.close`. It ends when the peer has agreed to it: proton knows no answer to it afterwards."""
        if self.ended is not None or self.opened:
            super().close(pending)
            return
        self._closing, self._ends_late = pending, True
        self.end(IllegalStateError(f"{self.what} is closed"), ours=True)

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`."""
        super().on_opened()
        self._answer_ends(self.table)
        if self._ends_late:
            self.handle.close()

    def on_closed(self, error: JMSError) -> None:
        """See `Endpoint.on_closed`. Where a session is not to follow on its channel, the answer waits for the next."""
        if self.ended is None and self.table.dialect.keeps_sessions:
            self.end(error, ours=False)
            self.table.ended.append(self)
        else:
            super().on_closed(error)

    @staticmethod
    def _answer_ends(table: LinkTable) -> None:
        ended, table.ended = table.ended, []
        for each in ended:
            each.handle.close()
            each.forget()

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`."""
        for link in list(self.links):
            if not ours:
                link.end(error, ours=False)
            link.lose(error)
            self.table.endpoints.pop(link.raw, None)
        self.links.clear()

    def forget(self) -> None:
        """See `Endpoint.forget`."""
        self.table.sessions -= 1
        super().forget()
