"""Checks what a link asks for against the broker's dialect."""

from __future__ import annotations

from redelivery.model.errors import UnsupportedError
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Link


def check_link(link: Link, dialect: AmqpDialect) -> None:
    """Raise UnsupportedError where the broker cannot do what a link asks for."""
    can = dialect.capabilities
    if link.selector is not None and not can.selectors:
        raise UnsupportedError("this broker has no selectors over AMQP")
    if link.browse and not can.browse:
        raise UnsupportedError("this broker has no browsing over AMQP: it would consume what it shows")
    if link.exclusive and not dialect.exclusive_option:
        raise UnsupportedError("this broker has no exclusive consumers over AMQP")
    if link.no_local and not can.no_local:
        raise UnsupportedError("this broker has no no_local over AMQP")
    kept = link.subscription is not None and link.subscription.durable
    if link.no_local and kept and not dialect.durable_no_local:
        raise UnsupportedError(
            f"{link.subscription}: this broker forgets what a durable subscription with no_local has kept"
        )
