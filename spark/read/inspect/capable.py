"""Says at `load()`, or before a batch is planned, and not in a task, that the broker cannot do what a query needs."""

from __future__ import annotations

import logging
from typing import Final

import redelivery
from redelivery.client.operations.attach import check_capable
from redelivery.model.errors import ConfigError, JMSError, UnsupportedError
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import connect
from redelivery.transports.dialects.detect import shares_by_client_id
from redelivery.transports.seam import LinkSpec

log = logging.getLogger(__name__)
_ONCE: Final = ReconnectPolicy(startup_maximum_attempts=1, maximum_attempts=0, warn_after_attempts=0, timeout=5.0)


def check_broker(options: SourceOptions) -> None:
    """Ask the broker, once, where it may be unable to do what the query needs; nothing is made or consumed there.

    One that does not answer now is asked again by the query that is started.

    Raises:
        UnsupportedError: it cannot; the text says what and why.
        ConfigError: an option does not fit the broker, such as its dialect or the client id.
    """
    if not (options.selector or options.subscription or any(each.is_pattern for each in options.destinations)):
        return
    try:
        connection = connect(options, reconnect=_ONCE, patience=5.0)
    except (UnsupportedError, ConfigError):
        raise
    except JMSError as error:
        log.info("the broker was not asked whether it can do what the query needs: %s", error)
        return
    with connection:
        check_connection(connection, options)


def check_connection(connection: redelivery.Connection, options: SourceOptions) -> None:
    """The same of a connection that there is. Raises as `check_broker`."""
    metadata, named = connection.metadata, options.subscription_name
    for place in options.destinations:
        subscription = named if place.scheme == "topic" else None
        check_capable(metadata, LinkSpec(place, options.selector, subscription=subscription))
    if named is None or not named.shared:
        return
    belongs = shares_by_client_id(connection.dialect, metadata.protocol)
    if belongs and options.client_id is None:
        raise UnsupportedError(
            f"{named}: {metadata.provider_name} over {metadata.protocol} keeps one for a client id only: add the "
            "option clientId, or use amqp://"
        )
    if not belongs and options.client_id is not None and (options.receiver == "executor" or options.lanes > 1):
        raise UnsupportedError(
            f"{named}: over {metadata.protocol} {metadata.provider_name} has one connection of a client id, and "
            "several are to consume: leave clientId out, then the subscription is every connection's"
        )
