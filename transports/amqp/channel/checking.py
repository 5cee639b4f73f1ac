"""Checks what a link asks for against the broker's dialect."""

from __future__ import annotations

from redelivery.model.errors import UnsupportedError
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import LinkSpec


def check_link(spec: LinkSpec, dialect: AmqpDialect) -> None:
    """Raise UnsupportedError where the broker cannot do what a link asks for."""
    can = dialect.capabilities
    if spec.selector is not None and not can.selectors:
        raise UnsupportedError("this broker has no selectors over AMQP")
    if spec.browse and not can.browse:
        raise UnsupportedError("this broker has no browsing over AMQP: it would consume what it shows")
    if spec.exclusive and not dialect.exclusive_option:
        raise UnsupportedError("this broker has no exclusive consumers over AMQP")
    if spec.no_local and not can.no_local:
        raise UnsupportedError("this broker has no no_local over AMQP")
    kept = spec.subscription is not None and spec.subscription.durable
    if spec.no_local and kept and not dialect.durable_no_local:
        raise UnsupportedError(
            f"{spec.subscription}: this broker forgets what a durable subscription with no_local has kept"
        )
