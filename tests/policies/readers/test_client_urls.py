"""Connection URLs of ActiveMQ's Java client: its redelivery options, wherever they stand, and no password shown."""

from __future__ import annotations

import pytest

import redelivery
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.files.places import ConfigFileError

OPTIONS = "jms.redeliveryPolicy.maximumRedeliveries=3&jms.redeliveryPolicy.initialRedeliveryDelay=500"


@pytest.mark.parametrize(
    "url",
    [
        f"tcp://host:61616?{OPTIONS}",
        f"failover:(tcp://a:61616,ssl://b:61617?x=y)?{OPTIONS}",
        f"failover:tcp://a:61616?{OPTIONS}",
        f"failover://(tcp://a:61616)?initialReconnectDelay=5&{OPTIONS}",
        f"vm://localhost?{OPTIONS}",
    ],
)
def test_the_options_of_redelivery_are_read(url: str) -> None:
    found = redelivery.policies.read(url).explain("orders")
    assert (found.maximum, [each.seconds for each in found.delays]) == (4, [0.5, 1.0, 1.0])
    assert "4 deliveries over 2.5 s" in str(found)


def test_without_options_the_defaults_of_the_client_count() -> None:
    assert redelivery.policies.read("tcp://host:61616").explain("x").summary.startswith("7 deliveries over 6 s, then")


def test_prefetch_and_non_blocking_redelivery_are_read_and_the_rest_is_listed() -> None:
    url = "tcp://h:1?jms.prefetchPolicy.queuePrefetch=5&jms.nonBlockingRedelivery=true&jms.useAsyncSend=true"
    found = redelivery.policies.read(url)
    assert isinstance(found.rules, ClientRules)
    assert found.rules.prefetch == redelivery.PrefetchPolicy(queue=5)
    assert found.rules.non_blocking is True
    assert [each.name for each in found.unread] == ["jms.useAsyncSend"]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("jms.redeliveryPolicy.maxRedeliveries=3", "did you mean 'jms.redeliveryPolicy.maximumRedeliveries'"),
        ("jms.redeliveryPolicy.redeliveryDelay=soon", "jms.redeliveryPolicy.redeliveryDelay='soon'"),
        ("jms.nonBlockingRedelivery=yes", "jms.nonBlockingRedelivery='yes': use true or false"),
    ],
)
def test_a_bad_option_is_an_error_that_names_it(option: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        redelivery.policies.read(f"tcp://host:61616?{option}")


@pytest.mark.parametrize("host", ["tcp://bob:s3cret@h:1", "failover:(tcp://bob:s3cret@h:1)"])
def test_no_password_is_shown(host: str) -> None:
    found = redelivery.policies.read(f"{host}?jms.password=s3cret&{OPTIONS}")
    with pytest.raises(ConfigFileError) as raised:
        redelivery.policies.read(f"{host}?jms.password=s3cret&jms.redeliveryPolicy.x=1")
    assert "s3cret" not in f"{found!r}{found.explain('x')}{raised.value}"
