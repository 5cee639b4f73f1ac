"""The program of each format's file: the maps of the file itself, which keep what the explanation keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.operate.test_policies import SOURCES
from tests.policies.readers.test_corpora import FILES, policies_of

from redelivery import ConfigError
from redelivery.operate.convert import convert
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.brokers.formats import FORMATS, read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import CopyTo, Discard
from redelivery.policies.destinations.examples import OTHER, examples_by_title


def check(policies: BrokerPolicies) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(convert(policies, "python").text, policies.path, "exec"), namespace)  # noqa: S102  # our own text
    expected, found = policies.redelivery_policies, namespace["redelivery_policies"]
    assert {each.pattern: each.value for each in found.entries} == {e.pattern: e.value for e in expected.entries}
    assert (found.default, found.has_default) == (expected.default, expected.has_default)
    strategies = namespace["dead_letter_strategies"]
    assert strategies == policies.dead_letter_strategies
    titles = (*policies.rules.names(), OTHER)
    for example in dict.fromkeys(each for found in examples_by_title(titles).values() for each in found):
        rules = policies.explain(example)
        decision = strategies.strategy_for(example).decide(
            example, persistent=True, expired=False, native_available=True
        )
        if rules.dead_letter is None:
            assert not isinstance(decision, CopyTo) or rules.kept, (str(rules), decision)
        else:
            own = isinstance(decision, Discard) and "own dead-letter destination" in decision.reason
            assert own or not isinstance(decision, Discard), (str(rules), decision)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_of_each_file_that_people_have(path: Path, tmp_path: Path) -> None:
    policies = policies_of(path, tmp_path)
    if isinstance(policies.rules, ClientRules) and policies.rules.returning:
        with pytest.raises(ConfigError, match="no redelivery of its own that could be converted"):
            convert(policies, "python")
        return
    check(policies)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("source", SOURCES)
def test_of_each_format(source: str, to: str) -> None:
    if to == "spring_boot" and SOURCES[source].redelivery_policies.entries:
        with pytest.raises(ConfigError, match="one redelivery policy for all destinations"):
            convert(SOURCES[source], to)
        return
    text = convert(SOURCES[source], to).text
    check(read_url(text.strip()) if to == "uri" else read_content(text.encode(), "converted", format=to))
