"""Maps by destination: ActiveMQ's wildcards (its DestinationMapTest), in a total order of our own."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.policies.destinations.explain import why_before
from redelivery.policies.destinations.map import DestinationMap
from redelivery.policies.destinations.patterns import ONE, REST, matches


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("A.B", "A.B", True),
        ("A.B", "A.b", False),
        ("A.*", "A.B", True),
        ("A.*", "A", False),
        ("A.*", "A.B.C", False),
        ("*", "A", True),
        ("*", "A.B", False),
        ("*.*", "A.B", True),
        ("A.>", "A", True),
        ("A.>", "A.B", True),
        ("A.>", "A.B.C", True),
        ("A.>", "AB", False),
        (">", "anything.at.all", True),
        ("#", "anything.at.all", True),
        ("A.#", "A.B.C", True),
        ("A.>.>", "A", True),
        ("A.>.>", "A.B.C.D.E.F", True),
        ("A.>.>", "B", False),
        ("A.*.>", "A.B", True),
        ("A.*.>", "A", False),
        ("A.*.C", "A.B.C", True),
        ("A.*.C", "A.B.D", False),
        ("ord*", "orders", False),
        ("ord*", "ord*", True),
        ("A..B", "A..B", True),
        ("A.*.B", "A..B", True),
        ("A.B", "A..B", False),
        ("A.", "A", False),
        ("A.*", "A.", True),
        # a wildcard consumer: the entry must be equal, or cover all that it consumes
        ("A.*", "A.*", True),
        ("A.>", "A.*", True),
        ("A.*", "A.>", False),
        ("A.B", "A.*", False),
        ("A.>", "A.>", True),
        ("A.*.>", "A.>", False),
        (">", "A.*.B", True),
        ("A.#", "A.>", True),
    ],
)
def test_matches(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected
    assert (DestinationMap({pattern: 1}).get(name) == 1) is expected


@pytest.mark.parametrize(
    ("name", "in_order"),
    [
        # every row that ActiveMQ decides, as it does
        ("A.B", ["A.B", "A.*", "A.>", ">"]),
        ("A.B.C", ["A.B.>", "A.>"]),
        ("A.B.C", ["A.B.*", "A.>"]),
        ("A.B.C", ["A.*.C", "A.>"]),
        ("X.a.b.P.Q", ["X.a.b.P.Q", "X.*.*.P.Q", "X.>"]),
        ("orders.eu.new", ["orders.eu.*", "orders.eu.>", "orders.>"]),
        # those that its hash table decides
        ("A.B", ["A.*", "A.>"]),
        ("A.B.C", ["A.B.*", "A.B.>", "A.*.>"]),
        ("A.B", ["*.*", "*.>", ">"]),
        # those that it decides by the alphabet: here the earlier literal word does
        ("A.B", ["A.*", "*.B"]),
        ("A.B.C", ["A.B.*", "A.*.C"]),
        ("A.B", ["A.>", "*.*"]),
        ("A.B.C", ["A.B.>", "A.*.C"]),
        # the pattern of a wildcard consumer: itself, then what covers it
        ("A.*", ["A.*", "A.*.>", "A.>", "*.*", "*.>", ">"]),
        # a scheme decides between equal patterns only
        ("A.B", ["queue://A.B", "A.B", "queue://A.*", "A.*"]),
        ("A.B", ["A.*", "queue://A.>", "queue://*.B"]),
    ],
)
def test_order(name: str, in_order: list[str]) -> None:
    for seed in range(20):
        shuffled = list(in_order)
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - no secret
        found = DestinationMap({key: key for key in shuffled}).candidates(name)
        assert [entry.pattern for entry in found] == in_order
        assert [entry.value for entry in found] == in_order


words = st.sampled_from(["a", "b", "", ONE])
patterns = st.builds(
    lambda scheme, head, tail: scheme + ".".join([*head, *tail]),
    st.sampled_from(["", "queue://", "topic://"]),
    st.lists(words, min_size=1, max_size=4),
    st.sampled_from([[], [REST]]),
).filter(lambda pattern: pattern != "" and not pattern.endswith("//"))
names = st.lists(st.sampled_from(["a", "b", "", ONE]), min_size=1, max_size=4).map(".".join).filter(bool)


@given(st.sets(patterns, max_size=8), names, st.randoms(use_true_random=False))
def test_the_order_is_total_and_does_not_depend_on_insertion(keys: set[str], name: str, rng: random.Random) -> None:
    one, other = sorted(keys), list(keys)
    rng.shuffle(other)
    first = DestinationMap(dict.fromkeys(one, 0)).candidates(name)
    second = DestinationMap(dict.fromkeys(other, 0)).candidates(name)
    assert [entry.key for entry in first] == [entry.key for entry in second]
    ranks = [entry.rank for entry in first]
    assert all(before < after for before, after in itertools.pairwise(ranks))
    # adding an entry never changes how the others stand to each other
    for key in keys:
        fewer = DestinationMap(dict.fromkeys(keys - {key}, 0)).candidates(name)
        assert [entry.key for entry in fewer] == [entry.key for entry in first if entry.key != key]
    if name in keys:
        assert {entry.pattern for entry in first[:2]} & {name, f"queue://{name}"}


def test_schemes_keep_queues_and_topics_apart() -> None:
    found = DestinationMap({"queue://news": "q", "topic://news": "t", "news": "both"})
    assert [entry.value for entry in found.candidates(Queue("news"))] == ["q", "both"]
    assert [entry.value for entry in found.candidates(Topic("news"))] == ["t", "both"]
    assert found.get("news") == "q"
    assert found.get("topic://news") == "t"
    assert DestinationMap({"topic://orders": 1}).get("orders") is None


def test_keys_may_be_destinations() -> None:
    found = DestinationMap({Topic("news.>"): 1, Queue("orders"): 2})
    assert found.get("topic://news.today") == 1
    assert found.get("orders") == 2


def test_commas_join_several() -> None:
    found = DestinationMap({"queue://other,topic://news,orders.*": 1})
    assert {entry.pattern for entry in found.entries} == {"queue://other", "topic://news", "queue://orders.*"}
    assert found.get("orders.new") == found.get("other") == found.get("topic://news") == 1
    assert found.get("topic://orders.new") is None
    assert {entry.key for entry in found.entries} == {"queue://other,topic://news,orders.*"}
    assert DestinationMap({"a,topic://b,c": 1}).get("topic://c") == 1


def test_a_consumer_of_several_queues_finds_the_entries_of_each() -> None:
    found = DestinationMap({"a": 1, "b.*": 2, "c": 3}).candidates("a,b.x")
    assert [entry.value for entry in found] == [1, 2]


@pytest.mark.parametrize(
    "keys",
    [("a.>", "a.#"), ("a.>", "a.>.>"), ("queue://a", "queue://b,a"), ("a,a",), ("topic://a.*,a.*", "topic://a.*")],
)
def test_the_same_pattern_twice_is_refused(keys: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="hold the pattern"):
        DestinationMap(dict.fromkeys(keys, 0))


@pytest.mark.parametrize(
    "key", ["", " a", "a ", "queue://", "file://a", "a,", "a,,b", "a, b", "a.>.b", "#.a", ">.*", "a\0", 3, None, ("a",)]
)
def test_what_is_no_pattern_is_refused(key: Any) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        DestinationMap({key: 0})


def test_what_is_no_map_or_destination_is_refused() -> None:
    entries: Any = [("a", 1)]
    with pytest.raises(ConfigError, match="list"):
        DestinationMap(entries)
    with pytest.raises(InvalidDestinationError):
        DestinationMap({"a": 1}).get("")


def test_matching_takes_linear_time() -> None:
    # a backtracking matcher would not come back from this
    pattern = ".".join(["*", "a"] * 2000 + ["b", ">"])
    assert not matches(pattern, ".".join(["a"] * 5000))


def test_a_queue_with_its_address_has_what_the_address_has_unless_it_is_named_whole() -> None:
    """``address::queue`` (Artemis): its settings are those of the address, whatever the queue is called."""
    entries = {"orders": 1, "news.*": 2, "orders::eu": 3, "a::b.*": 4, "topic://orders": 5, ">": 6, "*.eu": 7}
    values: DestinationMap[int] = DestinationMap(entries)
    asked = (
        "orders::x.eu",
        "orders::eu",
        "topic://orders::s",
        "news.eu::q",
        "other::orders",
        "a::b.c",
        "orders",
        "x.eu",
    )
    assert [values.get(each) for each in asked] == [1, 3, 5, 2, 6, 4, 1, 7]
    found = values.candidates("orders::eu")
    assert [each.pattern for each in found] == ["orders::eu", "orders", ">"]
    assert why_before(*found[:2]) == "orders::eu comes before orders: it names the queue too, there it is an address"
