"""A file of another product is never read as nothing: the error says what was expected, and what it looks like."""

from __future__ import annotations

import json
from typing import Final

import pytest
from tests.policies.readers.documents import ARTEMIS, CLASSIC, read

import redelivery
from redelivery.policies.brokers.formats import FORMATS, URL

WILDFLY: Final = (
    '<server xmlns="urn:jboss:domain:19.0"><profile><subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0">'
    '<server name="default"><address-setting name="#" dead-letter-address="jms.queue.DLQ"/></server></subsystem>'
    "</profile></server>"
)
FILES: Final = {
    "activemq": CLASSIC.format(""),
    "artemis": ARTEMIS.format("<address-settings/>"),
    "artemis_properties": "addressSettings.x.redeliveryDelay=5",
    "hornetq": '<configuration xmlns="urn:hornetq"><address-settings/></configuration>',
    "wildfly": WILDFLY,
    "kubernetes": "apiVersion: broker.amq.io/v1beta1\nkind: ActiveMQArtemis\n",
    "helm": 'addressSettings: [{match: "#", maxDeliveryAttempts: 3}]',
    "spring_boot": "spring:\n  activemq:\n    broker-url: tcp://h:1\n",
    "spring": '<beans><bean class="org.apache.activemq.ActiveMQConnectionFactory"/></beans>',
    "qpid": "<virtualhosts><default>x</default></virtualhosts>",
    "broker_j": json.dumps({"modelVersion": "9.0", "queues": []}),
    "rabbitmq": json.dumps({"policies": [], "queues": []}),
}
OTHERS: Final = {
    "a build": '<project xmlns="http://maven.apache.org/POM/4.0.0"/>',
    "other XML": "<a/>",
    "other JSON": '{"a": 1}',
    "other properties": "server.port=1",
}


def test_every_format_is_here() -> None:
    assert {name for name in FORMATS if FORMATS[name].expects} == FILES.keys()
    assert all(FORMATS[name].expects for name in FORMATS if name != URL)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_format_is_an_error_that_names_both(kind: str) -> None:
    name = "file.properties" if kind == "artemis_properties" else "file"
    assert read(FILES[kind], name, format=kind).format == kind
    for named in FILES.keys() - {kind}:
        with pytest.raises(redelivery.ConfigError) as caught:
            read(FILES[kind], name, format=named)
        said = str(caught.value)
        assert said.startswith(name), said
        assert f"format={named!r} is {FORMATS[named].expects}; this is " in said
        assert f"which looks like format={kind!r}" in said


@pytest.mark.parametrize("named", FILES)
@pytest.mark.parametrize("what", OTHERS)
def test_what_is_of_no_broker_is_an_error_whatever_it_is_called(what: str, named: str) -> None:
    name = "file.properties" if what == "other properties" else "file"
    with pytest.raises(redelivery.ConfigError, match=r"of no format known here \(activemq, .*|format="):
        read(OTHERS[what], name, format=named)


def test_a_document_without_a_namespace_is_of_the_format_that_is_named() -> None:
    text = "<configuration><address-settings/></configuration>"
    assert [read(text, "x.xml", format=each).broker for each in ("artemis", "hornetq")] == ["Artemis", "HornetQ"]
