"""Connections: made, and made again when they are lost, by the client's own means: with back-off, and not for ever."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import Final, TypeAlias

import redelivery
from redelivery.client.entry.sync import Connection
from redelivery.client.entry.sync_core import ConnectionCore
from redelivery.client.options import merge_options
from redelivery.model.errors import (
    ConnectError,
    ConnectionLostError,
    InvalidClientIDError,
    JMSError,
    RequestTimeoutError,
)
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.reconnect import NO_LIMIT, ReconnectPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.spark.options.credentials import read_password, tls_context
from redelivery.spark.options.query import SinkOptions, SourceOptions
from redelivery.transports.failover import is_failover, parse_failover_url
from redelivery.transports.wire.clock import monotonic

Reconnecting: TypeAlias = SourceOptions | SinkOptions
LOST = (ConnectError, ConnectionLostError, RequestTimeoutError)  # what a new connection may cure
_LONGEST_WAIT: Final = 10.0  # seconds
_SEND_TIMEOUT: Final = 30.0  # seconds that a send waits for a connection that is away
_CLIENT_ID_HELD: Final = 90.0  # seconds in which every broker has noticed that a client is dead
_CONNECT_TIMEOUT, _CLOSE_TIMEOUT = 10.0, 15.0


def connect(
    broker: Reconnecting,
    *,
    stopped: threading.Event | None = None,
    comes_back: bool = False,
    reconnect: ReconnectPolicy | None = None,
    redelivery_policy: RedeliveryPolicy | None = None,
    dead_letter_strategy: DeadLetterStrategy | None = None,
    client_id: str | None = None,
    prefetch: PrefetchPolicy | int | None = None,
    application: str | None = None,
    patience: float = 30.0,
    first: int | None = None,
) -> redelivery.Connection:
    """A started connection, which is tried again with back-off until `maxReconnectTime` has passed.

    Args:
        stopped: set when nobody wants it any more, which ends the waiting for the broker.
        comes_back: one that was lost is made again likewise.
        client_id: of a subscription. Where another connection has it, which may be one of a client that has died and of
            which the broker has not learnt it, it is tried again for 90 s at most.
        application: for the passports of its dead letters.
        reconnect: how, where `maxReconnectTime` does not say so.
        patience: seconds that an answer of the broker may take.
        first: the broker of a ``failover:`` list that is asked first, see `connected_to`; None: as the URL says.

    Raises:
        ConnectError: the broker was not reached in that time; the text names it.
        InvalidClientIDError: another connection has the client id, and does not end.
        SecurityError, ProtocolError, ConfigError: what another try would not cure, at once.
        JMSError: it was stopped; of the last try.
    """
    options = merge_options(
        broker.url,
        username=broker.username,
        password=read_password(broker),
        tls=tls_context(broker),
        dialect=broker.dialect,
        redelivery_policy=redelivery_policy,
        dead_letter_strategy=dead_letter_strategy,
        client_id=client_id,
        prefetch=prefetch,
        application=application,
        reconnect=_with_list(broker.url, reconnect or _policy(broker.max_reconnect_time, comes_back=comes_back), first),
        connect_timeout=min(_CONNECT_TIMEOUT, max(1.0, broker.max_reconnect_time)),
        request_timeout=patience,
        close_timeout=min(_CLOSE_TIMEOUT, patience),
    )
    given_up = stopped or threading.Event()
    if first:
        servers = list(options.servers.items())
        servers.insert(0, servers.pop(first % len(servers)))
        options = replace(options, servers=dict(servers))
    core = ConnectionCore(options)
    connection = Connection(core)
    until = monotonic() + min(_CLIENT_ID_HELD, broker.max_reconnect_time)

    def goes_on(error: JMSError) -> bool:
        held = isinstance(error, InvalidClientIDError) and monotonic() < until
        return (held or isinstance(error, LOST)) and not given_up.is_set()

    try:
        core.open(goes_on)
    except LOST as error:
        if given_up.is_set():
            raise
        raise _unreachable(connection, broker, error) from error
    except InvalidClientIDError as error:
        raise InvalidClientIDError(
            f"the client id {client_id!r} is another connection's: does another query read the same subscription? Give "
            f"each query a subscription of its own, or a shared one. The broker says: {error}"
        ) from error
    connection.start()
    return connection


def connected_to(connection: redelivery.Connection) -> int:
    """The number, from 0, of the broker in the URL's list to which it was connected last."""
    core = connection._core
    names = list(core.options.servers)
    return names.index(core.dialer.last) if core.dialer.last in names else 0


def check_reachable(connection: redelivery.Connection, broker: Reconnecting, error: JMSError) -> None:
    """Raise ConnectError where the connection does not come back after ``error``; the text names the broker."""
    try:
        connection.check_open("receive")
    except ConnectionLostError:
        raise _unreachable(connection, broker, error) from error


def _unreachable(connection: redelivery.Connection, broker: Reconnecting, error: JMSError) -> ConnectError:
    seconds = f"{broker.max_reconnect_time:g} s (maxReconnectTime)"
    return ConnectError(f"{connection.url} could not be reached for {seconds}: {error}")


def _with_list(url: str, policy: ReconnectPolicy, first: int | None) -> ReconnectPolicy:
    """The policy with what a ``failover:`` URL says; `maxReconnectTime` bounds it all the same."""
    if not is_failover(url):
        return policy
    said = parse_failover_url(url).reconnect
    most, startup = policy.maximum_attempts, policy.startup_maximum_attempts
    if startup == sys.maxsize:  # only `maxReconnectTime` limits it
        limits = [each for each in (said.startup_maximum_attempts, said.maximum_attempts) if each != NO_LIMIT]
        startup = limits[0] if limits else startup
    return replace(
        policy,
        initial_delay=said.initial_delay,
        maximum_delay=said.maximum_delay,
        multiplier=said.multiplier,
        use_exponential_back_off=said.use_exponential_back_off,
        maximum_attempts=said.maximum_attempts if most == NO_LIMIT else most,
        startup_maximum_attempts=startup,
        randomize=said.randomize and first is None,
        priority_backup=said.priority_backup and most != 0,
    )


def _policy(seconds: float, *, comes_back: bool) -> ReconnectPolicy:
    return ReconnectPolicy(
        maximum_delay=_LONGEST_WAIT,
        maximum_time=max(seconds, 0.001),
        maximum_attempts=-1 if comes_back else 0,
        startup_maximum_attempts=sys.maxsize,  # `maximum_time` is the limit
        timeout=min(_SEND_TIMEOUT, seconds),
    )
