"""Opening a transport without a connection."""

from __future__ import annotations

from redelivery.client.session.epoch import Bare
from redelivery.client.sync.driver import NEVER, run
from redelivery.transports.seam import Transport


def open_transport(transport: Transport) -> None:
    """See `Transport.open`."""
    run(transport.open(), Bare(transport), transport.new_waiter(), NEVER)
