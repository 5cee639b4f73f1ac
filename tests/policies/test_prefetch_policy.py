"""PrefetchPolicy: how far a broker may send ahead, with ActiveMQ's names and limits."""

from __future__ import annotations

from typing import Any

import pytest

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import ConfigError
from redelivery.policies.prefetch import GrowingWindow, PrefetchPolicy


def test_each_kind_of_consumer_has_its_number() -> None:
    policy = PrefetchPolicy(queue=1, topic=2, durable_topic=3, browser=4)
    assert policy.for_destination(Queue("q")) == 1
    assert policy.for_destination(Topic("t")) == 2
    assert policy.for_destination(Topic("t"), durable=True) == 3
    assert policy.for_destination(Queue("q"), browser=True) == 4


def test_none_leaves_it_to_the_dialect() -> None:
    assert PrefetchPolicy() == PrefetchPolicy(None, None, None, None) == PrefetchPolicy.of(None)
    assert PrefetchPolicy().for_destination(Queue("q")) is None


def test_one_number_is_for_all() -> None:
    assert PrefetchPolicy.of(7) == PrefetchPolicy(7, 7, 7, 7)
    policy = PrefetchPolicy(queue=0)
    assert PrefetchPolicy.of(policy) is policy


@pytest.mark.parametrize("value", [0, -1, 1 << 41, True, 1.0, "5"])
def test_bad_numbers_of_bytes_are_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=f"max_bytes of a prefetch={value!r}"):
        PrefetchPolicy(max_bytes=value)


def test_a_window_grows_while_messages_are_small_and_shrinks_when_they_are_large() -> None:
    window = GrowingWindow(100, 16_000)
    assert window.size == 10
    assert window.grow(0, 0) == 10
    assert [window.grow(10, 500) for _ in range(5)] == [20, 40, 80, 100, 100]
    assert window.grow(10, 10_000) == 16
    assert window.grow(1, 1_000_000) == 1
    assert [window.grow(1, 0) for _ in range(3)] == [2, 4, 8]


def test_a_window_is_never_larger_than_the_most() -> None:
    window = GrowingWindow(3, 16_000)
    assert [window.size, window.grow(3, 3), window.grow(3, 3)] == [3, 3, 3]


@pytest.mark.parametrize("value", [-1, 32768, True, 1.0, "5"])
def test_bad_numbers_are_refused(value: Any) -> None:
    for name in ("queue", "topic", "durable_topic", "browser"):
        with pytest.raises(ConfigError, match=f"prefetch of {name}={value!r}"):
            PrefetchPolicy(**{name: value})
    with pytest.raises(ConfigError, match="prefetch="):
        PrefetchPolicy.of(value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PrefetchPolicy()),
        ({"queuePrefetch": "1"}, PrefetchPolicy(queue=1)),
        ({"topicPrefetch": 32767, "durableTopicPrefetch": "0"}, PrefetchPolicy(topic=32767, durable_topic=0)),
        ({"queueBrowserPrefetch": "5"}, PrefetchPolicy(browser=5)),
        ({"all": "9"}, PrefetchPolicy(9, 9, 9, 9)),
        ({"queuePrefetch": "0", "all": "9"}, PrefetchPolicy(0, 9, 9, 9)),
    ],
)
def test_activemqs_names(options: dict[str, object], expected: PrefetchPolicy) -> None:
    assert PrefetchPolicy.from_activemq(options) == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"queueprefetch": "1"}, "unknown option 'p.queueprefetch'; did you mean 'p.queuePrefetch'"),
        ({"maximumPendingMessageLimit": "1"}, "p.maximumPendingMessageLimit"),
        ({"all": "many"}, "p.all='many'"),
        ({"queuePrefetch": "-1"}, "p.queuePrefetch=-1"),
        ({"topicPrefetch": "40000"}, "p.topicPrefetch=40000"),
    ],
)
def test_activemqs_names_that_do_not_fit(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        PrefetchPolicy.from_activemq(options, prefix="p.")
