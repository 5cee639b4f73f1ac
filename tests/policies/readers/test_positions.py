"""Each attribute of an XML file has its own line and column, in errors, settings and explanations."""

from __future__ import annotations

import time

import pytest
from tests.policies.readers.documents import CLASSIC, classic, policy_entries, read

from redelivery.policies.brokers.formats import read_content
from redelivery.policies.files.places import ConfigFileError
from redelivery.policies.files.xml import parse


def places(text: str, encoding: str = "utf-8") -> dict[str, tuple[int, int]]:
    root = parse(text.encode(encoding), "f.xml")
    return {name: (root.at(name).line, root.at(name).column) for name in root.attributes}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<a b="1" c="2"/>', {"b": (1, 4), "c": (1, 10)}),
        ("<a\n  b = \"1\"\n\tc='2'\n/>", {"b": (2, 3), "c": (3, 2)}),
        ('<a\r\n  b="1"\r  c="2"/>', {"b": (2, 3), "c": (3, 3)}),
        ('<!-- c="0"\n -->  <a b="x>y c=\'9\'" c="2"/>', {"b": (2, 10), "c": (2, 24)}),
        ('<a b="1\n2" c="2"/>', {"b": (1, 4), "c": (2, 4)}),
        ('<ä b="ü" c="€"/>', {"b": (1, 4), "c": (1, 10)}),
        ('<p:a xmlns:p="urn:x" p:b="1" c="2"/>', {"b": (1, 22), "c": (1, 30)}),
    ],
    ids=["one line", "lines", "line ends", "quotes and comments", "a value of two lines", "not ASCII", "prefixes"],
)
def test_an_attribute_has_its_own_line_and_column(text: str, expected: dict[str, tuple[int, int]]) -> None:
    assert places(text) == expected


def test_a_byte_order_mark_and_other_encodings_are_no_hindrance() -> None:
    marked = parse('\ufeff<a b="1"/>'.encode(), "f.xml")
    assert marked.at("b").column - marked.place.column == 3
    assert places('<?xml version="1.0" encoding="latin-1"?>\n<a x="\xe9" b="1"/>', "latin-1")["b"] == (2, 10)
    wide = parse('\ufeff<a\n b="1"/>'.encode("utf-16-le"), "f.xml")
    assert wide.at("b") == wide.place  # of the element, where a byte is not a character


def test_a_wrong_value_is_named_with_its_own_line() -> None:
    text = """
    <policyEntry queue="orders">
      <deadLetterStrategy>
        <individualDeadLetterStrategy
          queuePrefix="DLQ."
          expiration="soon"
          unknownOption="1"/>
      </deadLetterStrategy>
    </policyEntry>"""
    with pytest.raises(ConfigFileError) as caught:
        classic(policy_entries(text))
    first = CLASSIC.format(policy_entries(text)).splitlines().index('          expiration="soon"') + 1
    found = {each.text.partition("=")[0].partition(" of")[0]: each.place for each in caught.value.problems}
    assert found["expiration"].line == first
    assert found["unknown option 'unknownOption'"].line == first + 1
    assert str(found["expiration"]) == f"activemq.xml:{first}:11"


def test_an_explanation_names_the_line_of_each_attribute() -> None:
    text = """
    <plugins><redeliveryPlugin
        fallbackToDeadLetter="true">
      <redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry><redeliveryPolicy
        maximumRedeliveries="1"
        redeliveryDelay="5000"/></defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap>
    </redeliveryPlugin></plugins>"""
    lines = {each.name: each.place.line for each in classic(text).explain("orders").settings if each.place}
    assert lines["maximumRedeliveries"] - lines["fallbackToDeadLetter"] == 2
    assert lines["redeliveryDelay"] == lines["maximumRedeliveries"] + 1


def test_a_property_of_a_spring_bean_has_the_place_of_its_value() -> None:
    bean = """
    <policyEntry queue="orders"><deadLetterStrategy>
      <bean class="org.apache.activemq.broker.region.policy.IndividualDeadLetterStrategy">
        <property name="queuePrefix" value="DLQ."/>
        <property name="expiration"
                  value="soon"/>
      </bean>
    </deadLetterStrategy></policyEntry>"""
    with pytest.raises(ConfigFileError) as caught:
        classic(policy_entries(bean))
    (problem,) = caught.value.problems
    assert problem.place.column == 19


def test_a_match_of_artemis_has_its_own_place() -> None:
    with pytest.raises(ConfigFileError, match=r"^b\.xml:2:5: match='a#b'"):
        read('<core><address-settings><address-setting\n    match="a#b"/></address-settings></core>', "b.xml")


def test_very_many_attributes_on_one_line_take_no_time() -> None:
    attributes = " ".join(f'a{number}="{number}"' for number in range(30_000))
    began = time.monotonic()
    read_content(f'<broker xmlns="http://activemq.apache.org/schema/core" {attributes}/>'.encode(), "f.xml")
    assert time.monotonic() - began < 5
