"""Where connections come from."""

from __future__ import annotations

from datetime import timedelta
from ssl import SSLContext

from redelivery.client.connection import Connection
from redelivery.client.options import ExceptionListener, merge_options
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.policies.redelivery_map import RedeliveryPolicyMap


class ConnectionFactory:
    """Options checked once, for many connections; immutable and thread-safe.

    Args:
        url: ``vm://name``, ``stomp://host:61613``, ``stomp+ssl://host:61614``; query options are ActiveMQ's.
        username, password: the login; ``user:password@host`` in the URL works too.
        client_id: the JMS client id.
        redelivery_policy: one policy for all destinations.
        redelivery_policies: or a policy by destination.
        non_blocking_redelivery: other messages overtake those that wait for their redelivery.
        prefetch: how many unacknowledged messages the broker may push, one number or a PrefetchPolicy.
        dead_letter_strategy: what becomes of poisoned and expired messages.
        dialect: whose meaning of the protocol to speak; ``"auto"`` finds out.
        tls: an SSLContext instead of the system's, which verifies.
        connect_timeout, request_timeout, close_timeout: seconds, the bounds of connecting, of every answer, of closing.
        heartbeat: seconds between signs of life; 0 for none.
        exception_listener: called with a JMSError that no call waits for.

    Raises:
        ConfigError: an option is unknown, malformed or contradicts another; the text names it.
    """

    def __init__(
        self,
        url: str,
        *,
        username: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        redelivery_policy: RedeliveryPolicy | None = None,
        redelivery_policies: RedeliveryPolicyMap | None = None,
        non_blocking_redelivery: bool | None = None,
        prefetch: int | PrefetchPolicy | None = None,
        dead_letter_strategy: DeadLetterStrategy | None = None,
        dialect: str = "auto",
        tls: SSLContext | None = None,
        connect_timeout: float | timedelta = 15,
        request_timeout: float | timedelta = 30,
        close_timeout: float | timedelta = 15,
        heartbeat: float | timedelta = 10,
        exception_listener: ExceptionListener | None = None,
    ) -> None:
        self._options = merge_options(
            url,
            username=username,
            password=password,
            client_id=client_id,
            redelivery_policy=redelivery_policy,
            redelivery_policies=redelivery_policies,
            non_blocking_redelivery=non_blocking_redelivery,
            prefetch=prefetch,
            dead_letter_strategy=dead_letter_strategy,
            dialect=dialect,
            tls=tls,
            connect_timeout=connect_timeout,
            request_timeout=request_timeout,
            close_timeout=close_timeout,
            heartbeat=heartbeat,
            exception_listener=exception_listener,
        )

    def create_connection(self, *, start: bool = True) -> Connection:
        """A new connection, started unless ``start=False`` (JMS's stopped connection: it sends, but does not deliver).

        Raises:
            ConnectError: there is no such broker, or it did not answer within connect_timeout.
            SecurityError: the login was refused.
            InvalidClientIDError: the client id is in use.
            ProtocolError: what answers does not speak the protocol; the text says what it looks like.
        """
        connection = Connection(self._options)
        if start:
            connection.start()
        return connection

    def __repr__(self) -> str:
        return f"<ConnectionFactory {self._options.url.masked}>"


def connect(
    url: str,
    *,
    username: str | None = None,
    password: str | None = None,
    client_id: str | None = None,
    redelivery_policy: RedeliveryPolicy | None = None,
    redelivery_policies: RedeliveryPolicyMap | None = None,
    non_blocking_redelivery: bool | None = None,
    prefetch: int | PrefetchPolicy | None = None,
    dead_letter_strategy: DeadLetterStrategy | None = None,
    dialect: str = "auto",
    tls: SSLContext | None = None,
    connect_timeout: float | timedelta = 15,
    request_timeout: float | timedelta = 30,
    close_timeout: float | timedelta = 15,
    heartbeat: float | timedelta = 10,
    exception_listener: ExceptionListener | None = None,
    start: bool = True,
) -> Connection:
    """Connect, and start delivering unless ``start=False``; the options and errors are ConnectionFactory's."""
    factory = ConnectionFactory(
        url,
        username=username,
        password=password,
        client_id=client_id,
        redelivery_policy=redelivery_policy,
        redelivery_policies=redelivery_policies,
        non_blocking_redelivery=non_blocking_redelivery,
        prefetch=prefetch,
        dead_letter_strategy=dead_letter_strategy,
        dialect=dialect,
        tls=tls,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        close_timeout=close_timeout,
        heartbeat=heartbeat,
        exception_listener=exception_listener,
    )
    return factory.create_connection(start=start)
