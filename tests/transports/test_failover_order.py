"""In which order one attempt tries the URLs of a failover list."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.failover import attempt_order

A, B, C, D = URLS = ("stomp://a", "stomp://b", "stomp://c", "stomp://d")
IN_ORDER = ReconnectPolicy(randomize=False)
PRIORITY = ReconnectPolicy(randomize=False, priority_backup=True)


def test_without_randomize_the_list_is_the_order() -> None:
    assert attempt_order(URLS, IN_ORDER) == URLS


def test_the_url_that_has_just_failed_is_the_last() -> None:
    assert attempt_order(URLS, IN_ORDER, failed=B) == (A, C, D, B)
    assert attempt_order((A,), IN_ORDER, failed=A) == (A,)
    assert attempt_order(URLS, IN_ORDER, failed="stomp://other") == URLS


def test_priority_urls_come_first_with_priority_backup_only() -> None:
    assert attempt_order(URLS, PRIORITY, priority=(D, B)) == (B, D, A, C)
    assert attempt_order(URLS, IN_ORDER, priority=(D, B)) == URLS


def test_a_priority_url_that_has_just_failed_is_the_last_as_well() -> None:
    assert attempt_order(URLS, PRIORITY, priority=(A, B), failed=A) == (B, C, D, A)


def test_every_order_is_as_likely_as_any_other() -> None:
    rng = random.Random(1)  # noqa: S311 - an order, no secret
    counts = Counter(attempt_order(URLS, ReconnectPolicy(), rng=rng) for _ in range(24_000))
    assert len(counts) == 24
    assert all(850 < count < 1150 for count in counts.values())


def test_clients_do_not_all_begin_with_the_same_url() -> None:
    assert len({attempt_order(URLS, ReconnectPolicy())[0] for _ in range(200)}) == 4


@given(
    st.lists(st.sampled_from(URLS), min_size=1, unique=True),
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(URLS)),
    st.none() | st.sampled_from(URLS),
    st.integers(),
)
def test_each_url_is_tried_once_and_its_class_comes_before_chance(
    urls: list[str], randomize: bool, priority_backup: bool, priority: set[str], failed: str | None, seed: int
) -> None:
    policy = ReconnectPolicy(randomize=randomize, priority_backup=priority_backup)
    rng = random.Random(seed)  # noqa: S311 - an order, no secret
    order = attempt_order(urls, policy, priority=priority, failed=failed, rng=rng)
    assert sorted(order) == sorted(urls)
    classes = [(url == failed, priority_backup and url not in priority) for url in order]
    assert classes == sorted(classes)
