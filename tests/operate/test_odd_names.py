"""Names of queues that elsewhere are a pattern, a topic, or no name: a conversion keeps them, or says it does not."""

from __future__ import annotations

import json
from typing import Final

import pytest
from tests.policies.readers.documents import classic, policy_entries, read

import redelivery
from redelivery.operate.convert import convert
from redelivery.policies.brokers.formats import read_content

NAMES: Final = ("a.*", "a.>", "#", "a,b", "/queue/x", "/topic/t", "topic://t", "C#", "a#b", "<&>\"'", "é.ü", "x\ty")
BROKERS: Final = ("activemq", "artemis", "hornetq", "qpid", "broker_j", "rabbitmq")
PATTERNS: Final = ("a.*", "a.>", "#", "a,b", "/queue/x", "/topic/t", "topic://t")


def broker_j(queue: str, letters: str) -> str:
    given = {"name": queue, "maximumDeliveryAttempts": 3, "alternateBinding": {"destination": letters}}
    return json.dumps({"modelVersion": "9.0", "name": "h", "queues": [given, {"name": letters}]})


def rabbitmq(queue: str, letters: str) -> str:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 2, "x-dead-letter-exchange": ""}
    given = {"name": queue, "vhost": "/", "arguments": {**arguments, "x-dead-letter-routing-key": letters}}
    return json.dumps({"policies": [], "queues": [given, {"name": letters, "vhost": "/", "arguments": {}}]})


@pytest.mark.in_turns("file")
@pytest.mark.parametrize("to", BROKERS)
@pytest.mark.parametrize("file", [broker_j, rabbitmq])
@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_is_converted_as_it_is_or_named_as_lost(name: str, file: object, to: str) -> None:
    for queue, letters in ((name, "D"), ("q", name)):
        source = read(file(queue, letters))  # type: ignore[operator]  # one of both functions
        if source.format == to:
            continue
        made = convert(source, to)
        found = read_content(made.text.encode(), "converted", format=to)
        said = any(name in line or repr(name) in line or "q" in line.split(":")[0] for line in made.lost)
        assert said or found.explain(redelivery.Queue(queue)).maximum == 3
        if queue in PATTERNS:
            assert found.explain("a.other").maximum != 3
            assert any("is lost: elsewhere this is not the name of one queue" in line for line in made.lost)


def test_a_dead_letter_queue_that_is_called_like_an_address_of_jms_is_one_of_classic() -> None:
    entry = '<policyEntry queue="q"><deadLetterStrategy><sharedDeadLetterStrategy><deadLetterQueue>'
    entry += '<queue physicalName="jms.queue.DLQ"/></deadLetterQueue></sharedDeadLetterStrategy></deadLetterStrategy>'
    source = classic(policy_entries(entry + "</policyEntry>"))
    assert source.explain("q").dead_letter == "jms.queue.DLQ"
    old = '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><address-settings><address-setting '
    old += 'match="#"><dead-letter-address>jms.queue.DLQ</dead-letter-address></address-setting></address-settings>'
    made = convert(read(old + "</core></configuration>"), "activemq")
    assert read(made.text, "activemq.xml").explain("q").dead_letter == "jms.queue.DLQ"
