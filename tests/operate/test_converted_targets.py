"""The queues for dead letters, and for what expires, after a conversion: each is made, or a sentence says that not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from xml.etree import ElementTree as Tree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.operate.test_conversions import SOURCES
from tests.policies.readers.documents import read
from tests.policies.writers.generated import RULES
from tests.run.forms import brief, examples

from redelivery.operate.convert import convert
from redelivery.policies.brokers.formats import FORMATS, read_content
from redelivery.policies.brokers.policies import BrokerPolicies

Unmade = Callable[[str], set[str]]
_DEAD: Final = ("dead-letter-address", "expiry-address")


def _elements(text: str) -> Iterator[Tree.Element]:
    for each in Tree.fromstring(text).iter():  # noqa: S314  # what we wrote
        each.tag = each.tag.rpartition("}")[2]
        yield each


def in_artemis(text: str) -> set[str]:
    """As the broker sees the document: by the standard library, and by nothing of ours."""
    elements = list(_elements(text))
    there = {each.get("name") for each in elements if each.tag == "address" and list(each.iter("queue"))}
    return {target for target in _addresses(elements, first=True) if target not in there}


def in_hornetq(text: str) -> set[str]:
    elements = list(_elements(text))
    there = {each.findtext("address") for each in elements if each.tag == "queue"}
    return {target for target in _addresses(elements, first=False) if target not in there}


def _addresses(elements: list[Tree.Element], *, first: bool) -> Iterator[str]:
    """The addresses for what fails or expires; ``first``: of several settings with one match the first counts."""
    given: dict[str, dict[str, str]] = {}
    for setting in (each for each in elements if each.tag == "address-setting"):
        match, values = setting.get("match", ""), {each.tag: each.text or "" for each in setting}
        if match not in given or not first:
            given[match] = values
    for match, values in given.items():
        wider = [more for one, more in given.items() if _covers(one.split("."), match.split("."))]  # they are merged
        for name, created in zip(_DEAD, ("dead-letter", "expiry"), strict=True):
            creates = f"auto-create-{created}-resources"
            found = [values[creates]] if creates in values else [each.get(creates) for each in wider]
            if name in values and "true" not in found:
                yield values[name]


def _covers(general: list[str], match: list[str]) -> bool:
    """Check whether all that the second one matches is matched by the first one."""
    if not general or general[0] == "#":
        return bool(general) or not match
    head = match[0] if match else "#"
    return head != "#" and general[0] in ("*", head) and _covers(general[1:], match[1:])


def in_broker_j(text: str) -> set[str]:
    found: set[str] = set()
    document = json.loads(text)
    for node in document["virtualhostnodes"]:
        host = json.loads(node["virtualHostInitialConfiguration"])
        there = {each["name"] for each in host["queues"]}
        contexts = [each.get("context", {}) for each in (document, host, *host["queues"])]
        given = [each.get("queue.defaultAlternateBinding") for each in contexts]
        targets = [json.loads(each)["destination"] for each in given if each]
        made = [*host["queues"], *(each["attributes"] for each in host.get("nodeAutoCreationPolicies", []))]
        targets += [each["alternateBinding"]["destination"] for each in made if each.get("alternateBinding")]
        found |= {each for each in targets if each not in there}
    return found


def in_rabbitmq(text: str) -> set[str]:
    document = json.loads(text)
    there = {each["name"] for each in document["queues"]}
    assert all(each["definition"].get("delivery-limit", 0) >= 0 for each in document["policies"])  # 3 refuses others
    return {
        each["definition"]["dead-letter-routing-key"]
        for each in document["policies"]
        if each["definition"].get("dead-letter-exchange") == ""
    } - there


UNMADE: Final[Mapping[str, Unmade]] = {
    "artemis": in_artemis,
    "hornetq": in_hornetq,
    "broker_j": in_broker_j,
    "rabbitmq": in_rabbitmq,
}


@pytest.mark.parametrize("to", UNMADE)
@pytest.mark.parametrize("source", SOURCES)
def test_a_conversion_makes_the_queues_that_it_names(source: str, to: str) -> None:
    policies = SOURCES[source][0]
    if policies.format != to:
        assert UNMADE[to](convert(policies, to).text) == set()


@pytest.mark.parametrize("order", [("anycast", "multicast"), ("multicast", "anycast")])
def test_a_queue_that_a_file_of_artemis_makes_twice_is_one(order: tuple[str, str]) -> None:
    """Seen on Artemis 2.44: it is multicast, in either order."""
    queues = "".join(f'<{each}><queue name="nine"/></{each}>' for each in order)
    policies = read(f'<core><addresses><address name="nine">{queues}</address></addresses></core>', "broker.xml")
    made = convert(policies, "artemis_properties").text
    assert made.split() == ['addressConfigurations."nine".queueConfigs."nine".routingType=MULTICAST']
    assert read_content(made.encode(), "converted").rules == policies.rules


# Clients have no queues, and the values of a chart hold no more than it puts into its templates, which is refused.
_OTHERS: Final = ("uri", "spring", "spring_boot", "helm")
PAIRS: Final = [(source, to) for source in RULES for to in FORMATS if to not in (source, *_OTHERS)]


@settings(max_examples=examples(100 if brief() else 5000), deadline=None)
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_between_all_formats_each_target_is_made_or_said_and_the_result_is_read(
    pair: tuple[str, str], data: st.DataObject
) -> None:
    source, to = pair
    rules = data.draw(RULES[source])
    assume(not getattr(rules, "returning", None))  # of a client without a redelivery of its own, which is refused
    made = convert(BrokerPolicies("made up", source, rules), to)
    again = read_content(made.text.encode(), "converted", format=to)
    unmade = {*again.rules.unmade(), *(UNMADE[to](made.text) if to in UNMADE else ())}
    assert {each for each in unmade if not any(each in line for line in made.lost)} == set()
