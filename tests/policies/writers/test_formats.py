"""A format is a row of one table, and nobody outside the folders of brokers asks which rules it has."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.policies.readers.documents import address_settings, read

import redelivery
from redelivery.model.destinations import Destination
from redelivery.operate.convert import convert
from redelivery.operate.diff import diff
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.formats import FORMATS, Format
from redelivery.policies.brokers.patterns import Losses, patterns
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import (
    DestinationRules,
    Rules,
    at_once,
    listed_delays,
    policy_at_once,
    strategy_to,
)
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.kinds import whole

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class TinyRules(Rules):
    """Of a broker that counts to the same number for all queues."""

    most: int | None = None

    broker = "Tiny"
    dialect = "tiny"

    def rules_for(self, destination: Destination) -> DestinationRules:
        delays = listed_delays(at_once, self.most)
        return DestinationRules(self.broker, destination, "failures", self.most, delays, "DEAD")

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        return RedeliveryPolicyMap({}, default=policy_at_once(self.most))

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        return DeadLetterStrategyMap({">": strategy_to("DEAD")})

    def names(self) -> tuple[str, ...]:
        return ()


def read_tiny(root: Json, report: ReadingReport) -> TinyRules:
    given = ((name, value.text, value.place) for name, value in root.items())
    return TinyRules(**report.settings({"most": ("most", whole(1))}, given, "tiny").fields)


def to_tiny(policies: BrokerPolicies, losses: Losses) -> TinyRules:
    *others, last = patterns(policies)
    for each in others:
        losses.add(f"{each.key} is lost")
    return TinyRules(last.policy.maximum_redeliveries + 1)


TINY = Format(
    "json",
    recognizes=lambda root, _: root.get("most") is not None,
    read=read_tiny,
    write=lambda rules: json.dumps({"most": rules.most}),
    convert_to=to_tiny,
    unsaid=lambda _rules, to, losses: losses.add(f"tiny says no more to {to}"),
)


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast("dict[str, Format[Any]]", FORMATS), "tiny", TINY)


@pytest.mark.usefixtures("_tiny")
def test_a_format_of_one_row_is_read_written_compared_and_converted() -> None:
    policies = read('{"most": 3}')
    assert (policies.format, policies.broker) == ("tiny", "Tiny")
    assert redelivery.policies.write(policies) == '{"most": 3}'
    assert simulate(policies, "orders").total == 3
    more = replace(policies, rules=TinyRules(4))
    assert [each.title for each in diff(policies, more)] == ["(all others)"]
    assert "max-delivery-attempts>3<" in convert(policies, "artemis").text
    assert convert(policies, "artemis").lost[-1] == "tiny says no more to artemis"
    other = read(address_settings(**{"#": {"max_delivery_attempts": 5}}))
    assert convert(other, "tiny").text == '{"most": 5}'
    with pytest.raises(redelivery.ConfigError, match=r":1:\d+: most=0 must be an integer from 1"):
        read('{"most": 0}')


# The embedded broker obeys some of them by what only they say.
NARROWED = {"broker/engine/rules/chosen.py: ArtemisRules", "broker/engine/rules/classic.py: ClassicRules"}


def asked_types(path: Path) -> set[str]:
    """The names of rules' classes that a file asks for by isinstance, or by match."""
    found, text = set(), path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "Rules" in text else ():
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                found |= {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}
            case ast.MatchClass(cls=ast.Name(id=name)):
                found.add(name)
    return {f"{path.relative_to(ROOT)}: {name}" for name in found if name.endswith("Rules") and name != "Rules"}


def test_only_a_brokers_own_folder_asks_which_rules_it_has() -> None:
    rooms = ("policies", "broker", "operate", "cli", "client", "testing", "spark")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    outside = [path for path in paths if "policies/brokers/" not in str(path)]
    assert set().union(*map(asked_types, outside)) == NARROWED
