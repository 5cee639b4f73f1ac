"""Named subscriptions to topics: what their links are called, and the link by which one is found to be removed."""

from __future__ import annotations

from collections.abc import Container
from itertools import count

import proton

from redelivery.model.destinations import SubscriptionName
from redelivery.model.errors import UnsupportedError
from redelivery.transports.amqp.links.endpoints import Endpoint
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.links.terminus import describe_source
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Link


def subscription_name(named: SubscriptionName, taken: Container[str], *, client_id: bool) -> str:
    """The name of a link to a subscription, as Qpid JMS makes it, which is none of ``taken``.

    Brokers cut what follows the first ``|``. ``client_id``: the connection has one, to which the subscription belongs.

    Raises:
        UnsupportedError: its own name has that character.
    """
    if "|" in named.name:
        raise UnsupportedError(f"{named}: over AMQP a subscription's name cannot have a '|', which brokers cut it at")
    if not named.shared:
        return named.name
    volatile = "volatile" if not named.durable else ""
    suffix = volatile if client_id else "-".join(each for each in ("global", volatile) if each)
    for number in count(1):
        numbered = suffix if number == 1 and named.durable else f"{suffix}{number}"
        name = f"{named.name}|{numbered}" if numbered else named.name
        if name not in taken:
            return name
    raise AssertionError("they are counted without end")


class SubscriptionFinder(Endpoint):
    """A link to a durable subscription, which is removed with it when it is closed.

    By its name alone, which has no source then; or, as no such look-up finds one that is not of a client id, as the
    ``known`` consumer's.
    """

    __slots__ = ("name",)

    def __init__(self, session: AmqpSession, name: str, known: Link | None, dialect: AmqpDialect) -> None:
        super().__init__(session.table, session.handle.receiver(name), f"removing the durable subscription {name!r}")
        self.name = name
        if known is None:
            self.handle.source.type = proton.Terminus.UNSPECIFIED
        else:
            describe_source(self.handle.source, known, dialect, client_id=False)
        self.handle.snd_settle_mode = proton.Link.SND_UNSETTLED
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        session.links.add(self)

    def on_delivery(self, handle: object) -> None:
        """Nothing comes, as there is no credit."""
