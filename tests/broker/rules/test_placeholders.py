"""Placeholders in a broker's file have the values that the caller of the embedded broker gives, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import address_settings, written

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig


@pytest.fixture
def file(tmp_path: Path) -> Path:
    settings = {"max_delivery_attempts": "${tries}", "dead_letter_address": "DLQ"}
    addresses = '<addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>'
    text = address_settings(orders=settings).replace("</core>", addresses + "</core>")
    return written(tmp_path, "broker.xml", text)


def test_the_broker_obeys_the_value_of_a_placeholder(file: Path) -> None:
    rules = EmbeddedBroker("placeholders", config=file, properties={"tries": "2"}).core.config.rules
    assert rules is not None
    bench = Bench(rules)
    bench.send("orders")
    assert bench.fail("orders") == 2
    assert bench.engine.depth("DLQ") == 1


def test_nothing_else_is_looked_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("tries", "2")
    with pytest.raises(redelivery.ConfigError, match=r"the placeholder \$\{tries\} has no value"):
        EmbeddedBroker(config=file)
    with pytest.raises(redelivery.ConfigError, match="properties: 'tries' is 2: use a str"):
        EmbeddedBroker(config=file, properties={"tries": 2})  # type: ignore[dict-item]  # wrong on purpose


@pytest.mark.parametrize("config", [None, BrokerConfig()])
def test_properties_without_a_file_are_refused(config: BrokerConfig | None) -> None:
    with pytest.raises(redelivery.ConfigError, match="pass its name as config= too"):
        EmbeddedBroker(config=config, properties={"tries": "2"})
