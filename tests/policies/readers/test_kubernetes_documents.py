"""What belongs to a broker of the operator in a file of many documents: secrets, addresses, and which broker it is."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from tests.policies.readers.documents import address_settings, read, written
from tests.policies.readers.test_kubernetes_files import RESOURCES, of, values

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import convert
from redelivery.operate.diff import diff
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.files.places import ConfigFileError

MOUNTS = """\
deploymentPlan:
  extraMounts: {secrets: [more-bp, other], configMaps: [logging]}
brokerProperties: ['addressSettings."#".redeliveryDelay=1']
"""
MOUNTED = """
---
apiVersion: v1
kind: Secret
metadata: {name: more-bp}
"""


def test_what_is_mounted_is_not_read_and_said() -> None:
    assert [str(each) for each in of(MOUNTS).unread] == [
        "secret 'more-bp' of extraMounts (cr.yaml:6:29)",
        "secret 'other' of extraMounts (cr.yaml:6:38)",
        "configMap 'logging' of extraMounts (cr.yaml:6:59)",
    ]
    assert [bool(each.why) for each in of(MOUNTS).unread] == [True, False, False]  # that of properties decides


@pytest.mark.parametrize(
    "data",
    [
        'stringData: {"b.properties": "addressSettings.\\"#\\".redeliveryDelay=7"}',
        'stringData: {"b.json": \'{"addressSettings": {"#": {"redeliveryDelay": 7}}}\'}',
        f"data: {{b.properties: {b64encode(b'addressSettings.#.redeliveryDelay=7').decode()}}}",
        'stringData: {"b.properties": "addressSettings.#.redeliveryDelay=3", "c.properties":'
        ' "addressSettings.#.redeliveryDelay=7"}',
    ],
)
def test_a_secret_of_properties_in_the_same_file_is_read_after_the_resource(data: str) -> None:
    head = "apiVersion: broker.amq.io/v1beta1\nkind: ActiveMQArtemis\nspec:\n"
    text = head + "".join(f"  {line}\n" for line in MOUNTS.splitlines()) + MOUNTED + data
    assert values(read(text, "cr.yaml"))[1] == [0.007, 0.007]


ADDRESS = """
---
apiVersion: broker.amq.io/v1beta1
kind: ActiveMQArtemisAddress
metadata: {{name: a{namespace}}}
spec: {{addressName: a.b, {spec}}}
"""


@pytest.mark.parametrize(
    ("spec", "queue"),
    [
        ("queueName: q, routingType: anycast", ("a.b", "q", "anycast", None)),
        ("queueName: q", ("a.b", "q", "multicast", None)),
        (
            "queueName: q, queueConfiguration: {routingType: ANYCAST, filterString: x = 1}",
            ("a.b", "q", "anycast", "x = 1"),
        ),
        ("queueName: q, routingType: anycast, queueConfiguration: {maxConsumers: 1}", ("a.b", "q", "multicast", None)),
        ("queueName: q, applyToCrNames: [shop]", ("a.b", "q", "multicast", None)),
        ("queueName: q, applyToCrNames: ['*']", ("a.b", "q", "multicast", None)),
        ("queueName: q, applyToCrNames: [bar]", None),
        ("routingType: anycast", None),
    ],
)
def test_an_address_makes_a_queue_of_the_brokers_that_it_is_for(spec: str, queue: tuple[object, ...] | None) -> None:
    head = "apiVersion: broker.amq.io/v1beta1\nkind: ActiveMQArtemis\nmetadata: {name: shop, namespace: one}\n"
    rules = read(head + ADDRESS.format(spec=spec, namespace=""), "cr.yaml").rules
    assert isinstance(rules, ArtemisRules)
    made = [(q.address, q.name, q.routing, q.filter) for q in rules.queues if q.address not in ("DLQ", "ExpiryQueue")]
    assert made == ([] if queue is None else [queue])
    elsewhere = read(head + ADDRESS.format(spec=spec, namespace=", namespace: two"), "cr.yaml")
    assert "ActiveMQArtemisAddress a, which is for another broker (cr.yaml:6:1)" in map(str, elsewhere.unread)


def test_addresses_alone_are_those_of_the_image_s_broker() -> None:
    found = read(ADDRESS.format(spec="queueName: q", namespace=""), "cr.yaml")
    assert values(found) == (10, [0.0, 0.0], "DLQ", "ExpiryQueue")
    assert "the broker of these addresses is not in this file" in str(found.unread[0])


def test_of_several_brokers_one_is_named(tmp_path: Path) -> None:
    one, two = (
        f"apiVersion: broker.amq.io/v1beta1\nkind: ActiveMQArtemis\nmetadata: {{name: {name}}}\nspec:\n"
        f"  addressSettings: {{addressSetting: [{{match: '#', maxDeliveryAttempts: {number}}}]}}\n"
        for name, number in (("one", 1), ("two", 2))
    )
    path = written(tmp_path, "all.yaml", f"{one}---\n{two}")
    with pytest.raises(redelivery.ConfigError, match=r"2 brokers: one \(1:1\), two \(7:1\); name one: .*all\.yaml#one"):
        redelivery.policies.read(path)
    assert redelivery.policies.read(f"{path}#two").explain("x").maximum == 2
    with pytest.raises(redelivery.ConfigError, match=r"there is no 'three': one .*, two"):
        redelivery.policies.read(f"{path}#three")
    xml = written(tmp_path, "broker.xml", address_settings(**{"#": {"max_delivery_attempts": 3}}))
    with pytest.raises(redelivery.ConfigError, match="there are no parts with names in it"):
        redelivery.policies.read(f"{xml}#one")


def test_a_file_without_a_broker_says_what_is_in_it() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {broker.xml: '<core/>'}\n"
    with pytest.raises(
        ConfigFileError, match=r"nothing among ConfigMap, Service \(ConfigMap c has broker\.xml: write that"
    ):
        read(f"{config}---\n{{apiVersion: v1, kind: Service}}", "all.yaml")


def test_the_embedded_broker_does_what_the_resource_says(tmp_path: Path) -> None:
    text = RESOURCES.replace("deadLetterAddress: orders.dead, autoCreateDeadLetterResources: yes, ", "")
    path = written(tmp_path, "cr.yaml", text.replace("redeliveryDelay: 500", "redeliveryDelay: 10"))
    policies = redelivery.policies.read(path)
    expected = policies.explain("orders.eu")
    assert (expected.maximum, expected.dead_letter) == (4, "DLQ")
    assert diff(policies, read(convert(policies, "artemis").text)) == ()
    with (
        EmbeddedBroker("of-a-resource", config=path) as broker,
        redelivery.connect(broker.vm_url, policies=policies) as connection,
        connection.session("transacted") as session,
    ):
        broker.send("orders.eu", "two chairs")
        consumer, seen = session.consumer("orders.eu"), 0
        while (message := consumer.receive(timeout=0.5)) is not None:
            seen += 1
            session.rollback()
        dead = session.consumer("DLQ").receive(timeout=5)
        assert dead is not None
        assert (seen, dead.body, message) == (4, "two chairs", None)
