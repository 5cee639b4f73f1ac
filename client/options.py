"""The options of a connection: the URL's and the keywords', checked and merged once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from ssl import SSLContext

from redelivery.client.durations import seconds
from redelivery.model.errors import ConfigError, JMSError
from redelivery.policies.connection_url import ConnectionURL, parse_connection_url
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, DeadLetterStrategy
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.policies.redelivery_map import RedeliveryPolicyMap
from redelivery.transports.base import TransportOptions
from redelivery.transports.dialects.detect import check_name

ExceptionListener = Callable[[JMSError], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that a connection was asked for; the password is in no repr."""

    url: ConnectionURL
    transport: TransportOptions
    redelivery_policies: RedeliveryPolicyMap
    non_blocking_redelivery: bool
    prefetch: PrefetchPolicy
    dead_letter_strategy: DeadLetterStrategy
    exception_listener: ExceptionListener | None
    request_timeout: float
    close_timeout: float = field(default=15.0)


def merge_options(
    url: str,
    *,
    username: str | None,
    password: str | None,
    client_id: str | None,
    redelivery_policy: RedeliveryPolicy | None,
    redelivery_policies: RedeliveryPolicyMap | None,
    non_blocking_redelivery: bool | None,
    prefetch: int | PrefetchPolicy | None,
    dead_letter_strategy: DeadLetterStrategy | None,
    dialect: str,
    tls: SSLContext | None,
    connect_timeout: float | timedelta,
    request_timeout: float | timedelta,
    close_timeout: float | timedelta,
    heartbeat: float | timedelta,
    exception_listener: ExceptionListener | None,
) -> Options:
    """What the URL says, overridden by what the keywords say.

    Raises:
        ConfigError: an option is unknown, malformed, or contradicts another; the text names it.
    """
    parsed = parse_connection_url(url)
    if redelivery_policy is not None and redelivery_policies is not None:
        raise ConfigError("give redelivery_policy (for all destinations) or redelivery_policies (a map), not both")
    _check("redelivery_policy", redelivery_policy, RedeliveryPolicy)
    _check("redelivery_policies", redelivery_policies, RedeliveryPolicyMap)
    _check("dead_letter_strategy", dead_letter_strategy, DeadLetterStrategy)
    _check("tls", tls, SSLContext)
    check_name(dialect)
    for name, text in (("username", username), ("password", password), ("client_id", client_id), ("dialect", dialect)):
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"{name} must be a text, not a {type(text).__name__}")
    if non_blocking_redelivery is not None and not isinstance(non_blocking_redelivery, bool):
        raise ConfigError(f"non_blocking_redelivery={non_blocking_redelivery!r} is neither True nor False")
    if exception_listener is not None and not callable(exception_listener):
        raise ConfigError("exception_listener must be callable: it is called with a JMSError")
    wait = seconds("request_timeout", request_timeout)
    goodbye = seconds("close_timeout", close_timeout)
    policies = redelivery_policies or RedeliveryPolicyMap(
        {}, default=redelivery_policy or parsed.redelivery_policy or RedeliveryPolicy()
    )
    return Options(
        url=parsed,
        transport=TransportOptions(
            scheme=parsed.scheme,
            host=parsed.host,
            port=parsed.port,
            username=parsed.username if username is None else username,
            password=parsed.password if password is None else password,
            client_id=parsed.client_id if client_id is None else client_id,
            dialect=dialect,
            tls=tls,
            connect_timeout=seconds("connect_timeout", connect_timeout),
            request_timeout=wait,
            close_timeout=goodbye,
            heartbeat=seconds("heartbeat", heartbeat),
            params=parsed.params,
        ),
        redelivery_policies=policies,
        non_blocking_redelivery=bool(
            parsed.non_blocking_redelivery if non_blocking_redelivery is None else non_blocking_redelivery
        ),
        prefetch=PrefetchPolicy.of(parsed.prefetch if prefetch is None else prefetch),
        dead_letter_strategy=dead_letter_strategy or BrokerDeadLetterStrategy(),
        exception_listener=exception_listener,
        request_timeout=wait,
        close_timeout=goodbye,
    )


def _check(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise ConfigError(f"{name} must be a {kind.__name__}, not a {type(value).__name__}")
