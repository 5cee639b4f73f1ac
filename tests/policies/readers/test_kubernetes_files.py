"""The operator's resources: what its image and ``applyRule`` make of them, as its launch script merges them."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.policies.readers.documents import address_settings, read

from redelivery.operate.convert import convert
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.places import ConfigFileError

RESOURCES = """\
apiVersion: broker.amq.io/v1beta1
kind: ActiveMQArtemis
metadata: {name: shop, namespace: one}
spec:
  deploymentPlan: {size: 1, image: placeholder}
  acceptors: [{name: amqp, port: 5672}]
  addressSettings:
    applyRule: merge_all
    addressSetting:
    - match: '#'
      maxDeliveryAttempts: 3
      redeliveryDelay: 500
      maxSizeBytes: 10m
    - {match: orders.#, deadLetterAddress: orders.dead, autoCreateDeadLetterResources: yes, sendToDlaOnNoRoute: on}
  brokerProperties:
  - addressSettings."orders.#".redeliveryMultiplier=2.0
  - broker-0.addressSettings."orders.#".maxDeliveryAttempts=4
---
apiVersion: v1
kind: List
items:
- apiVersion: broker.amq.io/v1beta1
  kind: ActiveMQArtemisAddress
  metadata: {name: eu}
  spec: {addressName: orders.eu, queueName: orders.eu, routingType: ANYCAST}
- {apiVersion: v1, kind: Service, metadata: {name: shop}}
"""


def of(spec: str, kind: str = "broker.amq.io/v1beta1", **options: object) -> BrokerPolicies:
    head = f"apiVersion: {kind}\nkind: {'Broker' if 'arkmq' in kind else 'ActiveMQArtemis'}\nmetadata: {{name: shop}}\n"
    return read(head + "spec:\n" + "".join(f"  {line}\n" for line in dedent(spec).splitlines()), "cr.yaml", **options)


def settings(rule: str, *entries: str) -> str:
    lines = "".join(f"  - {{{each}}}\n" for each in entries)
    return f"addressSettings:\n  applyRule: {rule}\n  addressSetting:\n{lines}"


def values(found: BrokerPolicies, name: str = "orders") -> tuple[object, ...]:
    said = found.explain(name)
    return said.maximum, [each.seconds for each in said.delays][:2], said.dead_letter, said.expired


def test_each_setting_says_where_it_stands_and_what_the_image_brings() -> None:
    found = read(RESOURCES, "cr.yaml")
    assert (found.format, found.broker) == ("kubernetes", "Artemis")
    said = str(found.explain("orders.eu"))
    assert "queue://orders.eu (Artemis): 4 deliveries over 3.5 s, then orders.dead::DLQ.orders.eu" in said
    assert "redelivery-delay = 500, from address-setting '#' (cr.yaml:12:24)" in said
    assert "redelivery-delay-multiplier = 2.0, from address-setting 'orders.#' (cr.yaml:16:5)" in said
    assert "max-delivery-attempts = 4, from address-setting 'orders.#' (cr.yaml:17:5)" in said
    assert "expiry-address = ExpiryQueue, from address-setting '#' (the image's broker.xml)" in said
    rules = found.rules
    assert isinstance(rules, ArtemisRules)
    assert [(each.name, each.routing) for each in rules.queues] == [
        ("DLQ", "anycast"),
        ("ExpiryQueue", "anycast"),
        ("orders.eu", "anycast"),
    ]
    assert [str(each) for each in found.unread] == ["Service shop (cr.yaml:26:3)", "acceptors (cr.yaml:6:14)"]


@pytest.mark.parametrize(
    ("rule", "queue", "management"),
    [
        ("merge_all", (3, [0.0, 0.0], "DLQ", "ExpiryQueue"), (3, "DLQ")),
        ("merge_replace", (3, [0.0, 0.0], None, None), (3, "DLQ")),
        ("replace_all", (3, [0.0, 0.0], None, None), (3, None)),
    ],
)
def test_the_rule_says_what_stays_of_the_image_s_settings(
    rule: str, queue: tuple[object, ...], management: tuple[object, ...]
) -> None:
    found = of(settings(rule, "match: '#', maxDeliveryAttempts: 3"))
    assert values(found) == queue
    said = found.explain("activemq.management.x")
    assert (said.maximum, said.dead_letter) == management


def test_without_settings_the_image_s_count_whatever_the_rule_says() -> None:
    for spec in ("addressSettings: {applyRule: replace_all}", "version: 2.44.0", "addressSettings:"):
        assert values(of(spec)) == (10, [0.0, 0.0], "DLQ", "ExpiryQueue")


def test_the_default_rule_is_merge_all_and_another_one_is_none() -> None:
    spec = settings("merge_all", "match: '#', redeliveryDelay: 5")
    assert of(spec).rules == of(spec.replace("  applyRule: merge_all\n", "")).rules
    with pytest.raises(ConfigFileError, match=r"cr\.yaml:6:16: applyRule='merge': use one of merge_all, merge_rep"):
        of(spec.replace("merge_all", "merge"))


def test_the_same_in_json_and_in_the_group_that_the_operator_has_now() -> None:
    spec = settings("merge_all", "match: '#', redeliveryDelay: 5")
    json = (
        '{"apiVersion": "broker.amq.io/v1beta1", "kind": "ActiveMQArtemis", "spec": {"addressSettings":'
        ' {"addressSetting": [{"match": "#", "redeliveryDelay": 5}]}}}'
    )
    found = {of(spec).rules, of(spec, "broker.arkmq.org/v1beta2").rules, read(json, "cr.json").rules}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("match: '#', maxDeliveryAttempts: '3'", "maxDeliveryAttempts='3': Kubernetes takes integers only"),
        ("match: '#', maxDeliveryAttempts: 1.5", "maxDeliveryAttempts=1.5: Kubernetes takes integers only"),
        ("match: '#', redeliveryDelay: yes", "redeliveryDelay=True: Kubernetes takes integers only"),
        ("match: '#', redeliveryDelay: 3000000000", "redeliveryDelay=3000000000: .*integers only of 32 bits"),
        ("match: '#', redeliveryDelay: -1", "redeliveryDelay=-1 must be an integer from 0"),
        ("match: '#', maxDeliveryAttempts: -2", "maxDeliveryAttempts=-2 must be an integer from -1"),
        ("match: '#', deadLetterAddress: 010", "deadLetterAddress=8: Kubernetes takes strings only"),
        ("match: '#', deadLetterAddress: on", "deadLetterAddress=True: Kubernetes takes strings only"),
        ("match: '#', autoCreateExpiryResources: 1", "autoCreateExpiryResources=1: Kubernetes takes booleans only"),
        ("match: '#', deadLetterAdress: D", "unknown option 'deadLetterAdress' .*; did you mean 'deadLetterAddress'"),
        ("match: '#', dead-letter-address: D", "unknown option 'dead-letter-address' of an addressSetting"),
        ("match: '#', redeliveryDelayMultiplier: 2", "v1beta1 has no redeliveryDelayMultiplier, and Kubernetes drops"),
        ("match: '#', noExpiry: true", "v1beta1 has no noExpiry, .*write it as one of the brokerProperties"),
        ("match: '#', deadLetterAddress: '{{ .Values.dla }}'", "deadLetterAddress is a template .*helm template"),
        ("match: 5", "match=5: not a str: write it in quotes"),
        ("redeliveryDelay: 5", r"no match \(an unquoted # begins a comment\): write it in quotes"),
        ("match: 'a.#.b'", "match='a.#.b': '#' can only be the last word"),
    ],
)
def test_what_kubernetes_or_the_broker_refuses_is_an_error_with_its_place(entry: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"cr\.yaml:8:\d+: {says}"):
        of(settings("merge_all", entry))


def test_an_unquoted_number_sign_is_a_comment() -> None:
    with pytest.raises(ConfigFileError, match="an unquoted # begins a comment"):
        of("addressSettings:\n  addressSetting:\n  - match: #\n    redeliveryDelay: 5\n")


def test_null_is_not_given() -> None:
    assert values(of(settings("merge_all", "match: '#', deadLetterAddress: null, redeliveryDelay: ~"))) == (
        10,
        [0.0, 0.0],
        "DLQ",
        "ExpiryQueue",
    )


@pytest.mark.parametrize(
    ("version", "multiplier", "fits"),
    [("v2alpha3", "2", True), ("v2alpha4", "1.5", False), ("v2alpha5", "1.5", True), ("v2alpha5", "'1.5'", False)],
)
def test_older_versions_have_a_multiplier(version: str, multiplier: str, fits: bool) -> None:
    spec = settings("merge_all", f"match: '#', redeliveryDelay: 100, redeliveryDelayMultiplier: {multiplier}")
    if fits:
        delays = values(of(spec, f"broker.amq.io/{version}"))[1]
        assert delays == [0.1, round(0.1 * float(multiplier), 6)]
    else:
        with pytest.raises(ConfigFileError, match=r"redeliveryDelayMultiplier=.*: Kubernetes takes"):
            of(spec, f"broker.amq.io/{version}")


@pytest.mark.parametrize(
    ("version", "spec", "says"),
    [
        ("v2alpha1", settings("merge_all", "match: '#'"), "v2alpha1 has no addressSettings: Kubernetes drops them"),
        ("v2alpha5", "brokerProperties: [a=b]", "v2alpha5 has no brokerProperties"),
        ("v1beta3", "version: x", "unknown option 'v1beta3' of the versions of broker.amq.io; did you mean 'v1beta2'"),
        ("v1beta1", "addressSettings: [a]", "addressSettings is not an object"),
        ("v1beta1", "addressSettings: {addressSettings: []}", "unknown option 'addressSettings' of addressSettings"),
        ("v1beta1", "addressSettings: {addressSetting: {match: x}}", "addressSetting is not a list"),
        ("v1beta1", "brokerProperties: {a: b}", "brokerProperties is not a list"),
        ("v1beta1", "brokerProperties: [a: b]", "brokerProperties has an object, not a str: write it in quotes"),
        ("v1beta1", "brokerProperties: ['{{ .x }}']", "cr.yaml:5:22: a template .*helm template"),
        ("v1beta1", "deadLetterSettings: {}", "unknown option 'deadLetterSettings' of the spec of ActiveMQArtemis"),
        ("v1beta1", "restricted: true\n" + settings("merge_all", "match: x"), "a restricted broker has no addressSet"),
    ],
)
def test_what_a_version_does_not_have_is_an_error(version: str, spec: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        of(spec, f"broker.amq.io/{version}")


def test_a_restricted_broker_has_nothing_of_the_image() -> None:
    found = of("restricted: true\nbrokerProperties: ['addressSettings.\"#\".maxDeliveryAttempts=2']")
    assert values(found) == (2, [0.0], None, None)
    again = convert(found, "kubernetes").text
    assert "restricted: true" in again
    assert read(again, "again.yaml").rules == found.rules


def test_properties_count_after_the_settings_and_those_of_one_pod_where_it_is_alone() -> None:
    spec = settings("merge_all", "match: '#', redeliveryDelay: 100") + (
        "brokerProperties:\n"
        '- addressSettings."#".redeliveryDelay=200\n'
        '- broker-0.addressSettings."#".redeliveryDelay=300\n'
        '- broker-1.addressSettings."#".redeliveryDelay=400\n'
    )
    assert values(of(spec))[1] == [0.3, 0.3]
    several = of(spec + "deploymentPlan: {size: 2}\n")
    assert values(several)[1] == [0.2, 0.2]
    assert [str(each) for each in several.unread] == [
        'broker-0.addressSettings."#".redeliveryDelay=300, for pod 0 only (cr.yaml:11:5)',
        'broker-1.addressSettings."#".redeliveryDelay=400, for pod 1 only (cr.yaml:12:5)',
    ]


def test_a_property_that_stands_twice_is_an_error_as_it_is_the_operator_s() -> None:
    line = '- addressSettings."#".redeliveryDelay='
    with pytest.raises(ConfigFileError, match=r"cr\.yaml:7:5: .*redeliveryDelay stands twice"):
        of(f"brokerProperties:\n{line}1\n{line}2\n")


def test_several_lines_in_one_property_have_its_place() -> None:
    text = '|\n    addressSettings."#".redeliveryDelay=5\n    addressSettings."#".maxDeliveryAttempts=2\n'
    found = of(f"brokerProperties:\n- {text}")
    assert (values(found)[0], values(found)[1]) == (2, [0.005])
    assert "max-delivery-attempts = 2, from address-setting '#' (cr.yaml:6:5)" in str(found.explain("x"))


def test_an_empty_file_with_other_wildcards_is_written_so_that_it_is_read() -> None:
    source = read(
        '<core xmlns="urn:activemq:core"><wildcard-addresses><delimiter>/</delimiter></wildcard-addresses></core>'
    )
    again = read(convert(source, "kubernetes").text, "cr.yaml")
    assert again.explain("orders").summary == source.explain("orders").summary


def test_what_artemis_alone_has_is_written_as_properties() -> None:
    source = read(
        address_settings(
            **{
                "#": {"redelivery_delay": 5000, "redelivery_delay_multiplier": 2.0, "no_expiry": "true"},
                "orders.#": {"expiry_delay": 5_000_000_000, "dead_letter_address": "010", "max_delivery_attempts": -1},
            }
        )
    )
    made = convert(source, "kubernetes")
    assert made.lost == ()
    again = read(made.text, "cr.yaml")
    for name in ("orders", "orders.eu", "other"):
        assert again.explain(name).summary == source.explain(name).summary
        ours, theirs = again.rules, source.rules
        assert isinstance(ours, ArtemisRules)
        assert isinstance(theirs, ArtemisRules)
        assert ours.settings_for(name) == theirs.settings_for(name)
    for part in ('deadLetterAddress: "010"', 'redeliveryMultiplier=2.0"', 'expiryDelay=5000000000"', "replace_all"):
        assert part in made.text
