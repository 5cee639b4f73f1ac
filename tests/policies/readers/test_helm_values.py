"""Values of Helm charts: the shapes of address settings in them, and what such a chart renders."""

from __future__ import annotations

import pytest
from tests.policies.readers.documents import address_settings, read

import redelivery
from redelivery.operate.convert import convert
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.files.places import ConfigFileError

VALUES = """\
replicas: 2
artemis:
  core: {maxRedeliveryRecords: 1}
  addressSettings:
  - match: "#"
    settings:
      deadLetterAddress: DLQ
      maxDeliveryAttempts: 3
      redeliveryDelay: "5000"
      redeliveryDelayMultiplier: 2.5
  addresses:
  - name: DLQ
  - {name: news, type: topic, queues: [all, some]}
"""
SAID = "3 deliveries over 17.5 s, then DLQ"


@pytest.mark.parametrize(
    "settings",
    [
        "- {match: '#', settings: {deadLetterAddress: DLQ, maxDeliveryAttempts: 3, redeliveryDelay: 5000,"
        " redeliveryDelayMultiplier: 2.5}}",
        "- {match: '#', settings: {dead-letter-address: DLQ, max-delivery-attempts: 3, redelivery-delay: 5e3,"
        " redelivery-delay-multiplier: '2.5'}}",
        "- {match: '#', deadLetterAddress: DLQ, maxDeliveryAttempts: 3, redeliveryDelay: 5000,"
        " redeliveryDelayMultiplier: 2.5}",
        "'#': {deadLetterAddress: DLQ, maxDeliveryAttempts: 3, redeliveryDelay: 5000, redeliveryDelayMultiplier: 2.5}",
    ],
    ids=["settings", "kebab", "flat", "by match"],
)
def test_the_shapes_of_settings_mean_the_same(settings: str) -> None:
    found = read(f"addressSettings:\n  {settings}\n", "values.yaml")
    assert (found.format, found.explain("orders").summary) == ("helm", SAID)
    assert found.explain("orders").expired is None


def test_a_value_has_its_place_and_what_is_beside_it_is_read_too() -> None:
    found = read(VALUES, "values.yaml")
    assert "redelivery-delay = 5000, from address-setting '#' (values.yaml:9:24)" in str(found.explain("orders"))
    rules = found.rules
    assert isinstance(rules, ArtemisRules)
    assert rules.max_redelivery_records == 1
    assert [(each.address, each.name, each.routing) for each in rules.queues] == [
        ("DLQ", "DLQ", "anycast"),
        ("news", "all", "multicast"),
        ("news", "some", "multicast"),
    ]


@pytest.mark.parametrize(
    "values",
    [
        "broker:\n  addressSettings:\n    addressSetting: [{match: '#', maxDeliveryAttempts: 3}]\n",
        "spec: {brokerProperties: ['addressSettings.\"#\".maxDeliveryAttempts=3']}\n",
    ],
)
def test_what_has_the_operator_s_shape_is_merged_with_its_image(values: str) -> None:
    said = read(values, "values.yaml").explain("orders")
    assert (said.maximum, said.dead_letter, said.expired) == (3, "DLQ", "ExpiryQueue")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{match: '#', settings: {deadLetterAdress: D}}", "did you mean 'deadLetterAddress'"),
        ("{match: '#', settings: {maxDeliveryAttempts: 1.5}}", "maxDeliveryAttempts='1.5' must be an integer"),
        ("{match: '#', settings: {deadLetterAddress: '{{ .Release.Name }}'}}", "helm template"),
        ("{settings: {deadLetterAddress: D}}", "no match"),
    ],
)
def test_what_is_not_understood_is_an_error(entry: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"values\.yaml:2:\d+: .*{says}"):
        read(f"addressSettings:\n- {entry}\n", "values.yaml")


def test_of_several_settings_one_is_named_by_its_path() -> None:
    values = (
        "a: {addressSettings: {x: {maxDeliveryAttempts: 1}}}\nb: {c: {addressSettings: {x: {maxDeliveryAttempts: 2}}}}"
    )
    with pytest.raises(ConfigFileError, match=r"2 address settings: a \(1:4\), b\.c \(2:8\); name one: values.yaml#a"):
        read(values, "values.yaml")
    assert read(values, "values.yaml", part="b.c").explain("x").maximum == 2


def test_a_large_number_is_written_as_a_str_as_helm_may_render_it_otherwise() -> None:
    source = read(address_settings(**{"#": {"redelivery_delay": 3_600_000, "max_delivery_attempts": 3}}))
    text = convert(source, "helm").text
    assert 'redeliveryDelay: "3600000"' in text
    assert "maxDeliveryAttempts: 3\n" in text
    assert read(text, "values.yaml").explain("x").summary == source.explain("x").summary


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ('<address name="a"><anycast><queue name="q"><filter string="x"/></queue></anycast></address>', "no filters"),
        (
            '<address name="a"><anycast><queue name="q"/></anycast><multicast><queue name="r"/></multicast></address>',
            "no address of two kinds",
        ),
        (
            '<address name="a&amp;b"><anycast><queue name="q"/></anycast></address>',
            "a chart writes it into XML as it is",
        ),
    ],
)
def test_what_a_chart_cannot_render_is_refused(inside: str, says: str) -> None:
    source = read(f'<core xmlns="urn:activemq:core"><addresses>{inside}</addresses></core>')
    with pytest.raises(redelivery.ConfigError, match=says):
        convert(source, "helm")
