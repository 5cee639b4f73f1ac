"""Regular expressions of files as keys of our maps: what a key matches, its expression matches too."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policies.readers.documents import read

import redelivery
from redelivery.policies.destinations.patterns import matches
from redelivery.policies.files.expression_keys import keys_of

PIECES = (
    "a",
    "b",
    r"\.",
    "[.]",
    ".",
    ".*",
    ".+",
    "[^.]+",
    "^",
    "$",
    r"(\.|$)",
    "(a|b)",
    "(?:b|a.a)",
    "a|b",
    "(?i)",
    "x*",
)
NAMES = ("a", "b", "a.a", "a.b", "ab", "a.b.a", "b.a.b", "aa.b", "", "a.", ".a", "A", "b.ab.a.b", "a.b.b", "x", "axa")


def found(expression: str, name: str, within: bool) -> bool:
    compiled = re.compile(expression)
    return bool(compiled.search(name) if within else compiled.fullmatch(name))


@pytest.mark.parametrize("within", [True, False])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=6), more=st.text("ab.", max_size=6))
def test_a_key_stands_for_nothing_else_than_its_expression(within: bool, pieces: list[str], more: str) -> None:
    expression = "".join(sorted(pieces, key=lambda each: each != "(?i)"))
    try:
        re.compile(expression)
    except re.error:
        return
    keys = keys_of(expression, within=within)
    for name in (each for each in (*NAMES, more) if all(each.split("."))):
        named = any(matches(key, name) for key in keys.keys)
        said = found(expression, name, within)
        assert (named is said) if keys.complete else (said or not named), (expression, keys, name)


@pytest.mark.parametrize(
    ("expression", "within", "keys", "complete"),
    [
        (r"^orders\.", True, ("orders.*.>",), True),
        (r"^orders\..*$", True, ("orders.*.>",), True),
        (r"orders\..*", False, ("orders.*.>",), True),
        (r"orders\.[^.]+", False, ("orders.*",), True),
        (r"^(orders|stock)$", True, ("orders", "stock"), True),
        (r"^orders(\.|$)", True, ("orders.*.>", "orders"), True),
        (".*", True, (">",), True),
        ("", True, (">",), True),
        (".+", False, (">",), True),
        ("^orders", True, ("orders.>",), False),  # orders2 too
        ("orders.*", False, ("orders.>",), False),
        ("^orders.eu$", True, ("orders.eu",), False),  # any character
        ("orders", True, (), False),  # anywhere in the name
        ("^(?!amq).*", True, (), False),
        ("(?i)^orders$", True, (), False),
        ("^orders[0-9]+$", True, (), False),
        ("^[abc]{1,3}$", True, (), False),
        ("^" + "[abcdefghij]" * 9, True, (), False),  # too many
    ],
)
def test_what_has_a_key(expression: str, within: bool, keys: tuple[str, ...], complete: bool) -> None:
    found = keys_of(expression, within=within)
    assert (found.keys, found.complete) == (keys, complete)


def policy(name: str, pattern: str, target: str | None, priority: int = 0) -> dict[str, object]:
    given = {} if target is None else {"dead-letter-exchange": "", "dead-letter-routing-key": target}
    return {"name": name, "pattern": pattern, "definition": {"max-length": 9, **given}, "priority": priority}


def strategies(*policies: dict[str, object], queues: tuple[str, ...] = ()) -> redelivery.DeadLetterStrategyMap:
    document = {"queues": [{"name": each} for each in queues], "policies": policies}
    return read(json.dumps(document), "definitions.json").dead_letter_strategies


def place(found: redelivery.DeadLetterStrategyMap, queue: str) -> object:
    strategy = found.strategy_for(queue)
    return strategy.dead_letter_queue if isinstance(strategy, redelivery.SharedDeadLetterStrategy) else type(strategy)


def test_a_policy_counts_for_queues_that_the_definitions_do_not_list() -> None:
    """They used to be discarded: a list of policies alone has no queues."""
    found = strategies(policy("a", r"^orders\.", "D"), policy("b", r"^orders\.eu\.", "E", 1), queues=("orders.own",))
    asked = ("orders.x", "orders.x.y", "orders.eu.x", "orders.eu", "orders.own", "orders", "else")
    discarded = redelivery.DiscardingDeadLetterStrategy
    expected = [redelivery.Queue(each) for each in "DDEDD"] + [discarded, discarded]
    assert [place(found, each) for each in asked] == expected


@pytest.mark.parametrize("pattern", ["orders", "^orders", "^orders-", "(?i)^orders$", "^orders.x$"])
def test_what_no_key_names_is_left_to_the_broker_and_never_discarded(pattern: str) -> None:
    found = strategies(policy("a", pattern, "D"))
    assert found.default == redelivery.BrokerDeadLetterStrategy(configured=True)
    nothing_kept = strategies(policy("a", pattern, None))
    assert nothing_kept.default == redelivery.DiscardingDeadLetterStrategy()


def broker_j(*rules: tuple[str, str | None]) -> redelivery.DeadLetterStrategyMap:
    made = [
        {
            "pattern": pattern,
            "nodeType": "queue",
            "attributes": {"maximumDeliveryAttempts": 3, **({"alternateBinding": {"destination": to}} if to else {})},
        }
        for pattern, to in rules
    ]
    host = {"type": "Memory", "nodeAutoCreationPolicies": made, "queues": [{"name": "a.listed"}]}
    return read(json.dumps(host), "host.json").dead_letter_strategies


def test_queues_that_broker_j_makes_by_a_regular_expression_have_its_strategy() -> None:
    found = broker_j((r"a\.b\..*", "AB"), (r"a\..*", "A"), ("c|d", "CD"))
    asked = ("a.x", "a.b.x", "c", "d", "a.listed", "else")
    discarded = redelivery.DiscardingDeadLetterStrategy
    expected = [redelivery.Queue(each) for each in ("A", "AB", "CD", "CD")] + [discarded, discarded]
    assert [place(found, each) for each in asked] == expected


def test_what_broker_j_keeps_and_no_key_names_is_kept() -> None:
    assert place(broker_j(("a[0-9]+", None), ("b[0-9]+", "B")), "else") == redelivery.Queue("B")
    assert place(broker_j(("a[0-9]+", None)), "else") == redelivery.DiscardingDeadLetterStrategy
