"""Files as people have them, of each kind: `explain` says what stands at their head, and nothing decisive is unread.

The shapes are those of public files, taken apart and written anew: ``expect: destination | deliveries | the first
delays in milliseconds | where it is then | where it is when it expired``; ``part:`` the server that is chosen;
``upon:`` what is in the ``broker.xml`` that the properties are put upon.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as Tree
from pathlib import Path
from typing import Final

import pytest
from tests.policies.readers.documents import ARTEMIS, written

import redelivery
from redelivery import Queue
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import TARGETS, convert
from redelivery.operate.diff import diff
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.formats import FORMATS, read_content
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.wildfly.rules import WildFlyRules

CORPUS: Final = Path(__file__).parent / "corpus"
KINDS: Final = ("wildfly", "artemis_properties", "kubernetes", "helm", "spring", "spring_boot")
REFUSING: Final = ("helm", "spring_boot")  # what they cannot hold, and what a client without redelivery has not
FILES: Final = [path for kind in KINDS for path in sorted((CORPUS / kind).iterdir())]
FEWEST: Final = 20
LISTED: Final = 3  # delays
DECISIVE: Final = re.compile(r"redel|deliver|dead|dla|expiry-(?:address|delay)", re.IGNORECASE)


def stated(path: Path, what: str) -> list[str]:
    text = path.read_text(encoding="latin-1")
    return [found.strip() for found in re.findall(rf"\b{what}: (.*?)(?:\",)?$", text, re.MULTILINE)]


def policies_of(path: Path, folder: Path) -> BrokerPolicies:
    upon, part = stated(path, "upon"), stated(path, "part")
    if upon:
        xml = written(folder, "broker.xml", ARTEMIS.format(f"<address-settings>{''.join(upon)}</address-settings>"))
        return redelivery.policies.read(f"{xml},{path}")
    return redelivery.policies.read(f"{path}#{part[0]}" if part else path)


def test_there_are_enough_of_each_kind() -> None:
    assert all(len([path for path in FILES if path.parent.name == kind]) >= FEWEST for kind in KINDS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_explain_says_of_a_file_what_stands_at_its_head_and_every_use_of_it_goes_well(
    path: Path, tmp_path: Path
) -> None:
    found = policies_of(path, tmp_path)
    expected = [[each.strip() for each in line.split("|")] for line in stated(path, "expect")]
    assert expected
    for target, deliveries, delays, dead, expired in expected:
        name = target.encode("latin-1").decode("unicode_escape")
        said = found.explain(Queue(name) if " " in name else name)
        milliseconds = [str(round(each.seconds * 1000)) for each in said.delays[:LISTED]]
        assert [str(said.maximum or "endless"), " ".join(milliseconds)] == [deliveries, delays], target
        assert [said.dead_letter or "removed", said.expired or "removed"] == [dead, expired], target
        assert str(simulate(found, said.destination))
    assert not [each for each in found.unread if DECISIVE.search(each.name)]
    assert diff(found, found) == ()
    for to in TARGETS:
        try:
            text = convert(found, to).text
        except redelivery.ConfigError:
            assert to in REFUSING or "artemis" in path.stem, to
            continue
        if to in FORMATS and FORMATS[to].syntax != "url":
            name = "converted.properties" if FORMATS[to].syntax == "properties" else "converted"
            assert read_content(text.encode(), name, format=to).rules.broker
    if found.rules.is_client:
        return
    with EmbeddedBroker(
        "corpus", config=found.path if not stated(path, "part") else f"{path}#{stated(path, 'part')[0]}"
    ) as own:
        assert own.core.config.rules == found.rules


def values_of(element: Tree.Element) -> dict[str, str]:
    """What an independent reader finds in an address-setting: attributes, or the text of elements."""
    found = {name: text for name, text in element.attrib.items() if name not in ("name", "match")}
    return found | {each.tag.rpartition("}")[2]: (each.text or "").strip() for each in element}


@pytest.mark.parametrize("path", [path for path in FILES if path.parent.name == "wildfly"], ids=lambda path: path.stem)
def test_every_decisive_value_that_another_reader_finds_in_a_file_of_wildfly_is_in_the_rules(path: Path) -> None:
    """For files of one server; placeholders have their defaults."""
    if stated(path, "part"):
        pytest.skip("of several servers one is read")
    rules, checked = redelivery.policies.read(path).rules, 0
    assert isinstance(rules, WildFlyRules)
    for element in Tree.parse(path).iter():  # noqa: S314  # our own file
        if element.tag.rpartition("}")[2] != "address-setting":
            continue
        match = element.attrib.get("match", element.attrib.get("name"))
        (entry,) = (each for each in rules.entries if each.match == match)
        for name, given in values_of(element).items():
            if not DECISIVE.search(name):
                continue
            text = given
            while (plain := re.sub(r"\$\{[^${}:]*:([^${}]*)\}", r"\1", text)) != text:
                text = plain
            field = {"redelivery-multiplier": "redelivery_delay_multiplier"}.get(name, name.replace("-", "_"))
            value = getattr(entry.settings, field)
            if field.endswith("_delay") and value > 0:
                value = round(value * 1000)
            assert str(value).lower().removesuffix(".0") == text.lower().removesuffix(".0"), (match, name)
            checked += 1
    assert checked
