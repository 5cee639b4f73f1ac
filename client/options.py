"""The options of a connection: the URL's and the keywords', checked and merged once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from ssl import SSLContext
from typing import Final, TypedDict, Unpack

from redelivery.client.arguments import check_flag, seconds
from redelivery.client.observing.observed import Observed
from redelivery.client.observing.passports import Redaction, check_application, check_passport
from redelivery.model.callables import check_takes_one
from redelivery.model.errors import ConfigError, JMSError
from redelivery.model.events import Observer
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.checks import wrong_kind
from redelivery.policies.connection_rules import connection_rules
from redelivery.policies.connection_url import ConnectionURL, parse_connection_url
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.dialects.detect import check_name
from redelivery.transports.failover import is_failover, parse_failover_url
from redelivery.transports.management.address import ManagementAddress, is_encrypted, management_address
from redelivery.transports.seam import TransportOptions

_VIRTUAL_HOSTS: Final = ("wireFormat.host", "amqp.vhost")  # as each transport's own option is called
_ENCRYPTED: Final = {"stomp": "stomp+ssl", "amqp": "amqps"}  # scheme -> the same over TLS

ExceptionListener = Callable[[JMSError], object]  # for asyncio it may be an `async def`


class ConnectionKeywords(TypedDict, total=False):
    """The keywords of `connect` and ConnectionFactory beside the URL; what is left out is as the URL says, or as here.

    username: who logs in; ``user:password@host`` in the URL works too.
    password: that of the login, likewise; no log, error or repr shows it.
    client_id: the JMS client id.
    redelivery_policy: one policy for all destinations.
    redelivery_policies: or a policy by destination: a RedeliveryPolicyMap, or a dict of patterns and policies.
    non_blocking_redelivery: other messages overtake those that wait for their redelivery.
    prefetch: how many unacknowledged messages the broker may push, one number or a PrefetchPolicy.
    dead_letter_strategy: what happens to poisoned and expired messages, of all destinations.
    dead_letter_strategies: or by destination: a DeadLetterStrategyMap, or a dict of patterns and strategies.
    policies: instead of these: what ``redelivery.policies.read(path)`` has read of a broker's or client's
        configuration. What that leaves to the clients is as the URL says.
    vhost: the broker's virtual host; as the URL's path, ``stomp://host/name``, which it overrides.
    declare: False: no queue is made, where this library makes those that are not there (RabbitMQ); to use one that is
        not there is an InvalidDestinationError then. ``queue://orders?declare=false`` says it of one queue.
    dialect: whose meaning of the protocol to speak; ``"auto"``, which is the default, finds out.
    tls: an SSLContext instead of the system's, which verifies; refused where the scheme is not encrypted.
    connect_timeout: seconds (15) until there must be a connection.
    request_timeout: seconds (30) until each answer of the broker must have come.
    close_timeout: seconds (15) that closing takes at most.
    heartbeat: seconds (10) between signs of life; 0 for none.
    management: the broker's management over HTTP, as ``http://user:password@host:15672``; ``https`` uses ``tls``. A
        login that it does not name is the connection's. For what no messaging protocol lets one do; nothing is asked
        there before that.
    exception_listener: called with a JMSError that no call waits for.
    reconnect: a ReconnectPolicy: a connection that is lost comes back by it; without one, and without a ``failover:``
        URL, which brings its own, it is over. ``vm://`` has none: its messages end with their broker.
    deduplicate_sends: every confirmed send, and every transaction that only sends, is sent again after a loss, with an
        id by which the broker drops a second one (Artemis, HornetQ). An answer that does not come, although nothing is
        lost, is waited for during the `timeout` of the policy; without one, four times ``request_timeout`` and
        ``heartbeat`` together. Needs ``reconnect=`` or a ``failover:`` URL.
    observer: called with what happens, as events: see `redelivery.events`. From the thread in which it happens,
        so it must be quick, and must not use the session; what it raises is logged once.
    application: the name and release of the application, as ``"shop 2.4"``, for the passports of its dead letters.
    passport: True: the dead letters that are sent have one, see `redelivery.Passport`; False: they have none; or a
        function that is given each and returns what is written, perhaps with less in it, or None.
    interrupts: while there is a connection of threads, a signal whose handler is Python's (Ctrl-C; what was set before)
        is handled where a call waits, or when it has ended, so that it tears nothing. False leaves signals alone.
    """

    username: str | None
    password: str | None
    client_id: str | None
    redelivery_policy: RedeliveryPolicy | None
    redelivery_policies: RedeliveryPolicyMap | Mapping[str, RedeliveryPolicy] | None
    non_blocking_redelivery: bool | None
    prefetch: int | PrefetchPolicy | None
    dead_letter_strategy: DeadLetterStrategy | None
    dead_letter_strategies: DeadLetterStrategyMap | Mapping[str, DeadLetterStrategy] | None
    policies: BrokerPolicies | None
    dialect: str
    declare: bool | None
    vhost: str | None
    tls: SSLContext | None
    connect_timeout: float | timedelta
    request_timeout: float | timedelta
    close_timeout: float | timedelta
    heartbeat: float | timedelta
    management: str | None
    exception_listener: ExceptionListener | None
    reconnect: ReconnectPolicy | None
    deduplicate_sends: bool
    observer: Observer | None
    application: str | None
    passport: bool | Redaction
    interrupts: bool


# What is not None where it is left out.
CONNECTION_DEFAULTS: Final[ConnectionKeywords] = {
    "dialect": "auto",
    "connect_timeout": 15.0,
    "request_timeout": 30.0,
    "close_timeout": 15.0,
    "heartbeat": 10.0,
    "deduplicate_sends": False,
    "passport": True,
    "interrupts": True,
}


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Everything that a connection was asked for; the password is in no repr."""

    url: ConnectionURL
    transport: TransportOptions
    redelivery_policies: RedeliveryPolicyMap
    non_blocking_redelivery: bool
    prefetch: PrefetchPolicy
    dead_letter_strategies: DeadLetterStrategyMap
    exception_listener: ExceptionListener | None
    observed: Observed | None
    reconnect: ReconnectPolicy | None
    deduplicate_sends: bool
    servers: Mapping[str, TransportOptions] = field(repr=False)  # by URL, passwords masked; `transport` is the first
    priority: tuple[str, ...] = field(repr=False)  # those of them that `reconnect.priority_backup` prefers
    request_timeout: float
    interrupts: bool
    application: str | None
    passport: bool | Redaction
    management: ManagementAddress | None = None
    close_timeout: float = field(default=15.0)


def merge_options(url: str, **given: Unpack[ConnectionKeywords]) -> ConnectionOptions:
    """The options of the URL, overridden by those of the keywords.

    Raises:
        ConfigError: an option is unknown, malformed, or contradicts another; the text names it.
    """
    failover = parse_failover_url(url) if is_failover(url) else None
    urls = (url,) if failover is None else failover.urls
    brokers = [parse_connection_url(each) for each in urls]
    parsed = brokers[0]
    given = {**CONNECTION_DEFAULTS, **given}
    username, password, client_id = given.get("username"), given.get("password"), given.get("client_id")
    dialect, tls = given["dialect"], given.get("tls")
    exception_listener, observer = given.get("exception_listener"), given.get("observer")
    reconnect = given.get("reconnect") or (None if failover is None else failover.reconnect)
    if reconnect is not None:
        _check_reconnect(reconnect, parsed.scheme, listed=failover is not None)
    _check_deduplicate(given["deduplicate_sends"], reconnect)
    _check("tls", tls, SSLContext)
    if tls is not None and not is_encrypted(given.get("management")):  # which may be what it is for
        for each in brokers:
            _check_encrypted(each.scheme)
    check_name(dialect)
    vhost = given.get("vhost")
    texts = (("username", username), ("password", password), ("client_id", client_id), ("vhost", vhost))
    for name, text in (*texts, ("dialect", dialect)):
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"{name} must be a str, not a {type(text).__name__}")
    if given.get("non_blocking_redelivery") is not None:
        check_flag("non_blocking_redelivery", given["non_blocking_redelivery"])
    check_flag("interrupts", given["interrupts"])
    check_application(given.get("application"))
    check_passport(given["passport"])
    check_exception_listener(exception_listener)
    wait = seconds("request_timeout", given["request_timeout"])
    goodbye = seconds("close_timeout", given["close_timeout"])
    rules = connection_rules(
        parsed,
        policies=given.get("policies"),
        redelivery_policy=given.get("redelivery_policy"),
        redelivery_policies=given.get("redelivery_policies"),
        dead_letter_strategy=given.get("dead_letter_strategy"),
        dead_letter_strategies=given.get("dead_letter_strategies"),
        prefetch=given.get("prefetch"),
        non_blocking_redelivery=given.get("non_blocking_redelivery"),
        vhost=_virtual_host(parsed, vhost),
    )
    first = TransportOptions(
        scheme=parsed.scheme,
        host=parsed.host,
        client_id=parsed.client_id if client_id is None else client_id,
        dialect=dialect,
        declare=_declare(given.get("declare"), parsed.scheme),
        tls=tls,
        connect_timeout=_more_than_0("connect_timeout", given["connect_timeout"]),
        request_timeout=wait,
        close_timeout=goodbye,
        heartbeat=seconds("heartbeat", given["heartbeat"]),
        made=rules.dead_letter_strategies.queues,
    )
    names = _names(brokers)
    servers = {
        which: replace(
            first,
            scheme=each.scheme,
            host=each.host,
            port=each.port,
            username=each.username if username is None else username,
            password=each.password if password is None else password,
            params=each.params,
            vhost=_virtual_host(each, vhost),
        )
        for which, each in zip(names, brokers, strict=True)
    }
    return ConnectionOptions(
        url=parsed if failover is None else replace(parsed, masked=failover.masked),
        transport=servers[names[0]],
        servers=servers,
        priority=tuple(
            name for name, each in zip(names, urls, strict=True) if failover is None or each in failover.priority
        ),
        reconnect=reconnect,
        deduplicate_sends=given["deduplicate_sends"],
        interrupts=given["interrupts"],
        application=given.get("application"),
        passport=given["passport"],
        redelivery_policies=rules.redelivery_policies,
        non_blocking_redelivery=rules.non_blocking_redelivery,
        prefetch=rules.prefetch,
        dead_letter_strategies=rules.dead_letter_strategies,
        exception_listener=exception_listener,
        observed=None if observer is None else Observed(observer),
        request_timeout=wait,
        management=management_address(given.get("management"), servers[names[0]], tls=tls, timeout=wait),
        close_timeout=goodbye,
    )


def _declare(given: bool | None, scheme: str) -> bool:
    if given is None:
        return True
    check_flag("declare", given)
    if not given and scheme == "vm":
        raise ConfigError("declare=False was given, but a vm:// broker makes each queue that is used: leave it out")
    return given


def _virtual_host(url: ConnectionURL, given: str | None) -> str | None:
    """As the keyword says, or the URL's path. Raises ConfigError: it can have none, or has one in its query, too."""
    vhost = url.vhost if given is None else given
    if vhost is None:
        return None
    if not vhost or not vhost.isprintable():
        raise ConfigError(f"vhost={vhost!r}: use the name of a virtual host, such as '/' or 'prod'")
    if url.scheme == "vm":
        raise ConfigError("vhost= was given, but a vm:// broker has no virtual hosts: leave it out")
    for name in _VIRTUAL_HOSTS:
        if name in url.params:
            raise ConfigError(f"the virtual host is given twice, as {vhost!r} and as {name}: leave one out")
    return vhost


def _names(brokers: Sequence[ConnectionURL]) -> list[str]:
    """The brokers' names: each URL with its password masked, and a number where only the passwords differ."""
    names: list[str] = []
    for each in brokers:
        number = sum(each.masked == other.masked for other in brokers[: len(names)])
        names.append(f"{each.masked} ({number + 1})" if number else each.masked)
    return names


def _check_reconnect(policy: ReconnectPolicy, scheme: str, *, listed: bool) -> None:
    if not isinstance(policy, ReconnectPolicy):
        raise ConfigError(wrong_kind("reconnect", ReconnectPolicy, policy))
    if scheme == "vm":
        raise ConfigError(
            "reconnect= was given, but vm:// does not come back: its messages end with its broker; leave it out here"
        )
    if policy.priority_backup and not listed:
        raise ConfigError(
            "priority_backup=True has no effect with one broker: write a list, failover:(url,url)?priorityBackup=true"
        )


def _check_deduplicate(deduplicate: object, reconnect: ReconnectPolicy | None) -> None:
    check_flag("deduplicate_sends", deduplicate)
    if deduplicate and reconnect is None:
        raise ConfigError(
            "deduplicate_sends=True was given, but a connection that is lost does not come back, so nothing is sent "
            "again: give reconnect=ReconnectPolicy() or a failover: URL too"
        )


def _check_encrypted(scheme: str) -> None:
    """Raise where an SSLContext would be ignored, and a password sent in the clear."""
    if scheme in _ENCRYPTED:
        raise ConfigError(f"tls= was given, but {scheme}:// is not encrypted: write {_ENCRYPTED[scheme]}://")
    if scheme == "vm":
        raise ConfigError("tls= was given, but vm:// does not leave this process: leave tls out")


def _more_than_0(name: str, value: float | timedelta) -> float:
    found = seconds(name, value)
    if not found:
        raise ConfigError(f"{name}=0 leaves no time at all: pass seconds > 0 or a timedelta")
    return found


def check_exception_listener(listener: object) -> None:
    """Raises ConfigError: it cannot be called."""
    if listener is not None and not callable(listener):
        raise ConfigError(f"exception_listener={listener!r} must be callable: it is called with a JMSError")
    check_takes_one(listener, "exception_listener", "a JMSError")


def _check(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise ConfigError(wrong_kind(name, kind, value))
