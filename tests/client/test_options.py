"""Options: what the URL says, what the keywords say, and that every bad one names itself."""

from __future__ import annotations

import inspect
import re
import ssl
from datetime import timedelta
from inspect import Parameter
from typing import Any

import pytest

from redelivery import (
    ConfigError,
    ConnectionFactory,
    DiscardingDeadLetterStrategy,
    PrefetchPolicy,
    Producer,
    Queue,
    RedeliveryPolicy,
    RedeliveryPolicyMap,
    Session,
    aio,
    connect,
)
from redelivery.client.options import ConnectionOptions, merge_options

DEFAULTS: dict[str, Any] = {
    "username": None,
    "password": None,
    "client_id": None,
    "redelivery_policy": None,
    "redelivery_policies": None,
    "non_blocking_redelivery": None,
    "prefetch": None,
    "dead_letter_strategy": None,
    "dialect": "auto",
    "tls": None,
    "connect_timeout": 15,
    "request_timeout": 30,
    "close_timeout": 15,
    "heartbeat": 10,
    "exception_listener": None,
}
URL = "stomp://localhost:61613"


def merged(url: str = URL, **options: Any) -> ConnectionOptions:
    return merge_options(url, **{**DEFAULTS, **options})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("username", 7),
        ("username", b"bytes"),
        ("password", 7),
        ("client_id", ["a"]),
        ("dialect", None),
        ("dialect", "oracle"),
        ("dialect", 5),
        ("redelivery_policy", 3),
        ("redelivery_policy", {"maximumRedeliveries": 3}),
        ("redelivery_policies", [("orders.>", RedeliveryPolicy())]),
        ("redelivery_policies", 3),
        ("non_blocking_redelivery", "yes"),
        ("non_blocking_redelivery", 1),
        ("prefetch", -1),
        ("prefetch", "100"),
        ("prefetch", True),
        ("prefetch", 1.5),
        ("prefetch", 40_000),
        ("dead_letter_strategy", "ActiveMQ.DLQ"),
        ("dead_letter_strategy", DiscardingDeadLetterStrategy),
        ("dead_letter_strategies", "ActiveMQ.DLQ"),
        ("dead_letter_strategies", [("orders", DiscardingDeadLetterStrategy())]),
        ("dead_letter_strategies", 3),
        ("policies", 3),
        ("policies", {}),
        ("tls", True),
        ("connect_timeout", -1),
        ("connect_timeout", 0),
        ("connect_timeout", timedelta(0)),
        ("connect_timeout", None),
        ("request_timeout", "30"),
        ("request_timeout", float("nan")),
        ("close_timeout", timedelta(seconds=-1)),
        ("close_timeout", float("inf")),
        ("heartbeat", -0.5),
        ("heartbeat", True),
        ("exception_listener", "log"),
        ("deduplicate_sends", 1),
    ],
)
def test_every_bad_option_names_itself(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        merged(**{name: value})


def test_sends_are_not_repeated_on_a_connection_that_does_not_come_back() -> None:
    with pytest.raises(ConfigError, match=r"deduplicate_sends=True .* reconnect=ReconnectPolicy\(\)"):
        merge_options("stomp://broker", deduplicate_sends=True)


def test_two_ways_to_say_the_policy_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"redelivery_policy .* redelivery_policies"):
        merged(redelivery_policy=RedeliveryPolicy(), redelivery_policies=RedeliveryPolicyMap({}))


def test_an_unknown_keyword_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="redelivery_polizy"):
        ConnectionFactory(URL, redelivery_polizy=None)  # type: ignore[call-arg]  # that is the test


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("jms.redeliveryPolicy.maximumRedeliveries=-2", "jms.redeliveryPolicy.maximumRedeliveries"),
        ("jms.redeliveryPolicy.maximumRedelivery=2", "jms.redeliveryPolicy.maximumRedelivery"),
        ("jms.prefetchPolicy.queuePrefetch=many", "jms.prefetchPolicy.queuePrefetch"),
        ("jms.nonBlockingRedelivery=1", "jms.nonBlockingRedelivery"),
        ("jms.useCompression=true", "jms.useCompression"),
        ("jms.clientID=", "jms.clientID"),
    ],
)
def test_every_bad_option_of_the_url_names_itself(query: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        merged(f"{URL}?{query}")


def test_nothing_said_gives_the_documented_defaults() -> None:
    options = merged()
    assert options.redelivery_policies.policy_for(Queue("q")) == RedeliveryPolicy()
    assert options.non_blocking_redelivery is False
    assert options.prefetch == PrefetchPolicy()
    assert (options.request_timeout, options.close_timeout) == (30.0, 15.0)
    transport = options.transport
    assert (transport.scheme, transport.host, transport.port) == ("stomp", "localhost", 61613)
    assert (transport.connect_timeout, transport.heartbeat, transport.dialect) == (15.0, 10.0, "auto")


def test_the_url_speaks_activemqs_names_and_milliseconds() -> None:
    options = merged(
        "stomp://me:secret@broker:61613?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy"
        ".initialRedeliveryDelay=500&jms.prefetchPolicy.queuePrefetch=7&jms.nonBlockingRedelivery=true&jms.clientID=c1"
    )
    policy = options.redelivery_policies.policy_for(Queue("q"))
    assert (policy.maximum_redeliveries, policy.initial_redelivery_delay) == (2, 0.5)
    assert options.prefetch.for_destination(Queue("q")) == 7
    assert options.non_blocking_redelivery is True
    transport = options.transport
    assert (transport.username, transport.password, transport.client_id) == ("me", "secret", "c1")


def test_a_keyword_overrides_the_url() -> None:
    own = RedeliveryPolicy(maximum_redeliveries=9)
    options = merged(
        "stomp://me:secret@broker?jms.redeliveryPolicy.maximumRedeliveries=2&jms.nonBlockingRedelivery=true"
        "&jms.prefetchPolicy.all=7&jms.clientID=c1",
        username="you",
        password="other",  # noqa: S106 - a password of a test
        client_id="c2",
        redelivery_policy=own,
        non_blocking_redelivery=False,
        prefetch=3,
    )
    assert options.redelivery_policies.policy_for(Queue("q")) == own
    assert options.non_blocking_redelivery is False
    assert options.prefetch.for_destination(Queue("q")) == 3
    transport = options.transport
    assert (transport.username, transport.password, transport.client_id) == ("you", "other", "c2")


def test_a_map_by_destination_is_taken_as_it_is() -> None:
    policies = RedeliveryPolicyMap({"orders.>": RedeliveryPolicy(maximum_redeliveries=1)})
    assert merged(redelivery_policies=policies).redelivery_policies is policies


def test_a_plain_dict_by_destination_will_do() -> None:
    policies = merged(redelivery_policies={"orders.>": RedeliveryPolicy(maximum_redeliveries=1)}).redelivery_policies
    assert policies.policy_for("orders.eu").maximum_redeliveries == 1
    assert policies.policy_for("other") == RedeliveryPolicy()
    with pytest.raises(ConfigError, match="orders"):
        merged(redelivery_policies={"orders.>": {"maximumRedeliveries": 3}})


@pytest.mark.parametrize(
    ("scheme", "right"), [("stomp", r"write stomp\+ssl://"), ("amqp", "write amqps://"), ("vm", "leave tls out")]
)
def test_a_tls_context_for_a_plain_scheme_is_refused(scheme: str, right: str) -> None:
    with pytest.raises(ConfigError, match=f"tls= was given, but {scheme}:// .*{right}"):
        merged(f"{scheme}://broker", tls=ssl.create_default_context())


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("user", "username"),
        ("redelivery_polizy", "redelivery_policy"),
        ("clientId", "client_id"),
        ("ssl", "tls"),
        ("ssl_context", "tls"),
    ],
)
def test_an_unknown_keyword_says_which_one_was_meant(given: str, meant: str) -> None:
    options: Any = {given: "x"}
    for call in (ConnectionFactory, connect):
        name = call.__name__
        with pytest.raises(TypeError, match=f"^{name}.. got an unexpected keyword argument '{given}'; .*'{meant}'"):
            call(URL, **options)


@pytest.mark.parametrize(
    ("scheme", "meant"), [("stomps", r"stomp\+ssl"), ("amqp+tls", "amqps"), ("stmop", "stomp"), ("memory", "vm")]
)
def test_an_unknown_scheme_says_which_one_was_meant(scheme: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"{re.escape(scheme)}:// is not known; did you mean {meant}://"):
        connect(f"{scheme}://localhost")


def test_an_unknown_scheme_that_resembles_none_lists_them() -> None:
    with pytest.raises(ConfigError, match=r"kafka:// is not known; known are amqp://.*vm://"):
        connect("kafka://localhost")
    with pytest.raises(ConfigError, match=r"tcp:// is OpenWire.*stomp://host:61613"):
        connect("tcp://localhost:61616")
    with pytest.raises(ConfigError, match=r"ssl:// is OpenWire.*stomp\+ssl://host:61614"):
        connect("ssl://localhost:61617")


@pytest.mark.parametrize(("given", "meant"), [("classic", "activemq"), ("Artemis", "artemis"), ("rabbit", "rabbitmq")])
def test_an_unknown_dialect_says_which_one_was_meant(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"dialect='{given}' .*did you mean '{meant}'"):
        merged(dialect=given)


@pytest.mark.parametrize("option", ["creat", "Create"])
def test_an_unknown_option_of_the_transport_says_which_one_was_meant(option: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option '{option}' of vm://options; did you mean 'create'"):
        connect(f"vm://options?{option}=true")


def test_durations_may_be_timedeltas() -> None:
    options = merged(request_timeout=timedelta(minutes=1), close_timeout=timedelta(milliseconds=250), heartbeat=0)
    assert (options.request_timeout, options.close_timeout, options.transport.heartbeat) == (60.0, 0.25, 0.0)


def test_a_tls_context_reaches_the_transport() -> None:
    context = ssl.create_default_context()
    assert merged("stomp+ssl://broker", tls=context).transport.tls is context


def test_no_repr_shows_the_password() -> None:
    options = merged("stomp://me:hunter2@broker", client_id="c")
    shown = f"{options!r} {options.transport!r} {options.url!r} {ConnectionFactory('stomp://me:hunter2@broker')!r}"
    assert "hunter2" not in shown
    assert "****" in shown


def test_the_signature_lists_every_keyword_with_its_default() -> None:
    shown = inspect.signature(connect).parameters
    assert {each.kind for each in shown.values()} == {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    defaults = {name: each.default for name, each in shown.items() if each.default not in (None, Parameter.empty)}
    assert defaults == {
        "start": True,
        "dialect": "auto",
        "connect_timeout": 15.0,
        "request_timeout": 30.0,
        "close_timeout": 15.0,
        "heartbeat": 10.0,
        "passport": True,
        "deduplicate_sends": False,
        "interrupts": True,
    }
    assert inspect.signature(Producer.send).parameters["ttl"].default is None


@pytest.mark.parametrize("session", [Session, aio.Session], ids=["threads", "asyncio"])
def test_each_kind_of_consumer_and_the_producer_list_their_keywords_with_their_defaults(session: Any) -> None:
    def keywords(name: str) -> dict[str, object]:
        shown = inspect.signature(getattr(session, name)).parameters.values()
        return {each.name: each.default for each in shown if each.kind is Parameter.KEYWORD_ONLY}

    wanted = {"selector": None, "no_local": False, "prefetch": None, "redelivery_policy": None, "bodies": "auto"}
    wanted["body_type"] = None
    for kind in ("consumer", "durable_consumer", "shared_consumer", "shared_durable_consumer"):
        assert keywords(kind) == wanted
    assert keywords("producer") == {"persistent": True, "priority": 4, "ttl": None, "delivery_delay": None}


@pytest.mark.parametrize(
    ("method", "given", "hint"),
    [
        ("consumer", "message_selector", "; did you mean 'selector'?"),
        ("consumer", "nolocal", "; did you mean 'no_local'?"),
        ("consumer", "properties", ""),
        ("producer", "expiration", "; did you mean 'ttl'?"),
        ("producer", "headers", ""),  # a send has properties, a producer has none
    ],
)
def test_an_unknown_keyword_of_a_session_says_which_one_was_meant(method: str, given: str, hint: str) -> None:
    with connect("vm://keywords") as connection, connection.session() as session, pytest.raises(TypeError) as caught:
        getattr(session, method)("q", **{given: "x"})
    assert str(caught.value).endswith(f"{method}() got an unexpected keyword argument '{given}'{hint}")


def test_a_queues_name_for_a_strategy_is_answered_with_the_strategy() -> None:
    with pytest.raises(ConfigError, match=r"must be a DeadLetterStrategy: SharedDeadLetterStrategy\('shop.DLQ'\)$"):
        merged(dead_letter_strategy="shop.DLQ")
