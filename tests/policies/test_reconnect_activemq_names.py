"""ReconnectPolicy in the words of ActiveMQ's failover transport."""

from __future__ import annotations

import json

import pytest

from redelivery.model.errors import ConfigError
from redelivery.policies.reconnect import ReconnectPolicy


def test_every_option_is_read_from_texts_and_values() -> None:
    texts = {
        "initialReconnectDelay": "50",
        "maxReconnectDelay": "60000",
        "useExponentialBackOff": "TRUE",
        "reconnectDelayExponent": "1.5",
        "maxReconnectAttempts": "7",
        "startupMaxReconnectAttempts": "3",
        "warnAfterReconnectAttempts": "5",
        "timeout": "2500",
        "randomize": "false",
        "priorityBackup": "true",
    }
    expected = ReconnectPolicy(
        initial_delay=0.05,
        maximum_delay=60.0,
        use_exponential_back_off=True,
        multiplier=1.5,
        maximum_attempts=7,
        startup_maximum_attempts=3,
        warn_after_attempts=5,
        timeout=2.5,
        randomize=False,
        priority_backup=True,
    )
    assert ReconnectPolicy.from_activemq(texts) == expected
    values = {name: json.loads(text.lower()) for name, text in texts.items()}
    assert ReconnectPolicy.from_activemq(values) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("backOffMultiplier", "3", ReconnectPolicy(multiplier=3)),
        ("reconnectDelayExponent", "3", ReconnectPolicy(multiplier=3)),
        ("timeout", "-1", ReconnectPolicy()),
        ("timeout", "0", ReconnectPolicy()),  # ActiveMQ looks at it if it is above 0
        ("warnAfterReconnectAttempts", "-1", ReconnectPolicy(warn_after_attempts=0)),
        ("maxReconnectAttempts", "-1", ReconnectPolicy()),
    ],
)
def test_values_with_a_meaning_of_their_own(name: str, value: str, expected: ReconnectPolicy) -> None:
    assert ReconnectPolicy.from_activemq({name: value}) == expected


def test_javas_longest_delay_is_a_delay() -> None:
    policy = ReconnectPolicy.from_activemq({"maxReconnectDelay": str(2**63 - 1)})
    assert policy.maximum_delay > 10**11


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("initialReconnectDelay", "-1"),
        ("initialReconnectDelay", "0.5"),
        ("initialReconnectDelay", ""),
        ("initialReconnectDelay", "10ms"),
        ("initialReconnectDelay", "9223372036854775808"),
        ("initialReconnectDelay", True),
        ("maxReconnectDelay", "-1"),
        ("timeout", "-2"),
        ("timeout", None),
        ("useExponentialBackOff", "yes"),
        ("reconnectDelayExponent", "0.9"),
        ("reconnectDelayExponent", "nan"),
        ("backOffMultiplier", "two"),
        ("maxReconnectAttempts", "-2"),
        ("maxReconnectAttempts", "2147483648"),
        ("startupMaxReconnectAttempts", "many"),
        ("warnAfterReconnectAttempts", "1.0"),
        ("randomize", "1"),
        ("priorityBackup", ""),
    ],
)
def test_a_bad_value_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^p.{name}="):
        ReconnectPolicy.from_activemq({name: value}, prefix="p.")


def test_the_two_names_of_the_multiplier_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"^p\.reconnectDelayExponent and p\.backOffMultiplier are the same option"):
        ReconnectPolicy.from_activemq({"backOffMultiplier": "2", "reconnectDelayExponent": "2"}, prefix="p.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("backup", "no spare connections are kept"),
        ("backupPoolSize", "no spare connections are kept"),
        ("trackMessages", "no message is sent again unasked"),
        ("maxCacheSize", "no message is sent again unasked"),
        ("updateURIsSupported", "OpenWire clients only; write all URLs into the list"),
        ("rebalanceUpdateURIs", "OpenWire clients only; write all URLs into the list"),
        ("updateURIsURL", "not read from a file"),
        ("reconnectSupported", "only OpenWire clients"),
        ("trackTransactionProducers", "a transaction ends with its connection"),
    ],
)
def test_what_has_no_meaning_here_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"^p\.{name} does not exist here: .*{reason}.*\. Remove p\.{name}$"):
        ReconnectPolicy.from_activemq({name: "false"}, prefix="p.")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("initialReconnectdelay", "initialReconnectDelay"),
        ("initial_reconnect_delay", "initialReconnectDelay"),
        ("reconnectDelay", "initialReconnectDelay"),
        ("maximumReconnectAttempts", "maxReconnectAttempts"),
        ("maxReconnectAttempt", "maxReconnectAttempts"),
        ("randomise", "randomize"),
        ("failover.randomize", "randomize"),
        ("failover.maxReconnectAttempts", "maxReconnectAttempts"),
        ("useReconnectBackOff", "useExponentialBackOff"),
        ("reconnectBackOffMultiplier", "reconnectDelayExponent"),
    ],
)
def test_an_unknown_name_says_which_one_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option 'p.{name}'; did you mean 'p.{meant}'"):
        ReconnectPolicy.from_activemq({name: "1"}, prefix="p.")


def test_an_unknown_name_that_resembles_none_lists_them() -> None:
    with pytest.raises(ConfigError, match=r"unknown option 'wireFormat'; known are initialReconnectDelay, .*randomize"):
        ReconnectPolicy.from_activemq({"wireFormat": "1"})
