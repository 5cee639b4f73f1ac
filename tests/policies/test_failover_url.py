"""ActiveMQ's failover: URLs."""

from __future__ import annotations

import pytest

from redelivery import ConfigError, ReconnectPolicy
from redelivery.policies.failover_url import parse_failover_url


def brokers(url: str) -> list[tuple[str, str, int | None]]:
    return [(each.scheme, each.host, each.port) for each in parse_failover_url(url).servers]


@pytest.mark.parametrize(
    "url",
    [
        "failover:(stomp://a:1,amqp://b:2)",
        "failover://(stomp://a:1,amqp://b:2)",
        "failover:stomp://a:1,amqp://b:2",
        "FAILOVER:( stomp://a:1 , amqp://b:2 )?randomize=false",
    ],
)
def test_the_ways_to_write_a_list(url: str) -> None:
    assert brokers(url) == [("stomp", "a", 1), ("amqp", "b", 2)]


def test_a_broker_keeps_its_own_options_and_an_ipv6_address() -> None:
    found = parse_failover_url("failover:(stomp://[::1]:1?stomp.host=x,amqp://b)?nested.amqp.vhost=y")
    assert [each.host for each in found.servers] == ["::1", "b"]
    assert [dict(each.params) for each in found.servers] == [
        {"stomp.host": "x", "amqp.vhost": "y"},
        {"amqp.vhost": "y"},
    ]


def test_the_options_of_the_connection_are_every_brokers() -> None:
    found = parse_failover_url("failover:(stomp://a,stomp://b)?jms.clientID=me&jms.prefetchPolicy.queuePrefetch=3")
    assert {each.client_id for each in found.servers} == {"me"}
    assert all(each.prefetch is not None and each.prefetch.queue == 3 for each in found.servers)


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ("", ReconnectPolicy()),
        ("initialReconnectDelay=100&maxReconnectDelay=2000", ReconnectPolicy(initial_delay=0.1, maximum_delay=2)),
        ("useExponentialBackOff=false", ReconnectPolicy(multiplier=1)),
        ("useExponentialBackOff=true&backOffMultiplier=3", ReconnectPolicy(multiplier=3)),
        ("reconnectDelayExponent=1.5", ReconnectPolicy(multiplier=1.5)),
        (
            "maxReconnectAttempts=4&startupMaxReconnectAttempts=1",
            ReconnectPolicy(maximum_attempts=4, startup_maximum_attempts=1),
        ),
        ("timeout=3000&randomize=false", ReconnectPolicy(timeout=3, randomize=False)),
        ("timeout=-1", ReconnectPolicy()),
    ],
)
def test_activemqs_options(options: str, policy: ReconnectPolicy) -> None:
    assert parse_failover_url(f"failover:(stomp://a)?{options}").reconnect == policy


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("failover:", "there is no broker in it"),
        ("failover:()", "there is no broker in it"),
        ("failover:(stomp://a,,stomp://b)", "nothing between two commas"),
        ("failover:(stomp://a", "its parentheses do not match"),
        ("failover:stomp://a)", "its parentheses do not match"),
        ("failover:(stomp://a)x", "behind the ')'"),
        ("failover:(failover:(stomp://a))", "stands in another one"),
        ("failover:(vm://a)", "vm:// does not come back"),
        ("failover:(a:61613)", "begins with a scheme"),
        ("failover:(stomp://a:x)", "port"),
        ("failover:(stomp://a)?priorityBackup=true", "priorityBackup: this client has no such option"),
        ("failover:(stomp://a)?updateURIsSupported=false", "over OpenWire only"),
        ("failover:(stomp://a)?maxReconnectAttempt=3", "maxReconnectAttempts"),
        ("failover:(stomp://a)?maxReconnectAttempts=x", "maxReconnectAttempts='x'"),
        ("failover:(stomp://a)?timeout", "written name=value"),
        ("failover:(stomp://a)?timeout=1&timeout=2", "timeout stands twice"),
        ("failover:(stomp://a)?backOffMultiplier=2&reconnectDelayExponent=2", "two names of one option"),
        ("failover:(stomp://a?jms.clientID=me,stomp://b)", "different jms"),
    ],
)
def test_what_is_wrong_is_said(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=None) as raised:
        parse_failover_url(url)
    assert message in str(raised.value)


def test_no_password_is_shown() -> None:
    found = parse_failover_url("failover:(stomp://me:secret1@a,amqp://me:secret2@b)?timeout=5")
    assert found.masked == "failover:(stomp://me:****@a,amqp://me:****@b)?timeout=5"
    assert "secret" not in repr(found)
    with pytest.raises(ConfigError) as raised:
        parse_failover_url("failover:(stomp://me:secret1@a:x)")
    assert "secret" not in str(raised.value)
