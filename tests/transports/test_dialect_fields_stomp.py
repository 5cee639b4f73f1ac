"""Every fact of the STOMP tables names the test that fails where it is wrong: see `planting`, which tries them."""

from __future__ import annotations

import ast
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path

import pytest
from tests.transports.planting import Fact, Facts, facts, tables

from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.dialect import StompDialect

TESTS = Path(__file__).parent.parent
TABLES = {"stomp": StompDialect, "amqp": AmqpDialect}
PROTOCOLS = pytest.mark.parametrize(
    "protocol",
    [each for each in TABLES if each == "stomp" or (Path(__file__).parent / f"dialect_fields_{each}.py").exists()],
)


@cache
def _tests_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def _named(found: Facts) -> list[tuple[str, str, Fact]]:
    return [(broker, field, fact) for broker, table in found.items() for field, fact in table.items()]


@PROTOCOLS
def test_every_value_that_a_broker_s_table_states_names_a_test(protocol: str) -> None:
    missing = [
        f"{name}.{field.name}"
        for name, (table, before) in tables(protocol).items()
        for field in fields(TABLES[protocol])
        if (
            getattr(table, field.name) != getattr(before, field.name)
            if before is not None
            else (field.default is MISSING or getattr(table, field.name) != field.default)
        )
        and field.name not in facts(protocol).get(name, {})
    ]
    assert missing == []


@PROTOCOLS
def test_every_field_names_a_test(protocol: str) -> None:
    of_all = {field for table in facts(protocol).values() for field in table}
    assert {field.name for field in fields(TABLES[protocol])} == of_all


@PROTOCOLS
def test_the_tests_that_are_named_exist(protocol: str) -> None:
    for broker, field, fact in _named(facts(protocol)):
        file, _, test = fact.test.partition("::")
        assert test.partition("[")[0] in _tests_of(TESTS / file), f"{broker}.{field}: there is no {fact.test}"


@PROTOCOLS
def test_what_is_planted_differs_from_the_fact(protocol: str) -> None:
    for broker, field, fact in _named(facts(protocol)):
        assert getattr(tables(protocol)[broker][0], field) != fact.wrong, f"{broker}.{field}"
