"""Files of each format in which what fails and what expires has different fates, and where `explain` says they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.policies.readers.documents import address_settings, classic, policy_entries, read

from redelivery.policies.brokers.formats import read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import DestinationRules

DESTINATIONS: Final = (
    "orders",
    "orders.new",
    "orders.old",
    "shop.new",
    "shop.a.new",
    "Z",
    "any.other.destination",
    "topic://orders",
    "topic://orders.new",
    "topic://news",
)

HORNETQ: Final = """
<configuration xmlns="urn:hornetq"><address-settings>
  <address-setting match="#"><dead-letter-address>jms.queue.DLQ</dead-letter-address></address-setting>
  <address-setting match="jms.queue.orders.*">
    <expiry-address>jms.queue.EXP</expiry-address><max-delivery-attempts>-1</max-delivery-attempts>
  </address-setting>
  <address-setting match="jms.queue.*.new"><max-delivery-attempts>3</max-delivery-attempts>
    <dead-letter-address>jms.queue.NEW</dead-letter-address></address-setting>
  <address-setting match="jms.topic.orders"><expiry-address>jms.queue.DLQ</expiry-address></address-setting>
</address-settings></configuration>"""
WILDFLY: Final = """
<server xmlns="urn:jboss:domain:19.0"><profile><subsystem xmlns="urn:jboss:domain:messaging-activemq:16.0"><server>
  <address-setting name="#" dead-letter-address="jms.queue.DLQ"/>
  <address-setting name="jms.queue.orders.*" expiry-address="jms.queue.EXP" max-delivery-attempts="-1"/>
  <address-setting name="jms.queue.*.new" max-delivery-attempts="3" dead-letter-address="jms.queue.NEW"/>
  <address-setting name="jms.topic.orders" expiry-address="jms.queue.DLQ"/>
</server></subsystem></profile></server>"""
QPID: Final = """
<broker><maximumDeliveryCount>{}</maximumDeliveryCount><deadLetterQueues>{}</deadLetterQueues><virtualhosts>
  <virtualhost><name>h</name><h><queues><queue><name>orders</name><orders>
    <maximumDeliveryCount>5</maximumDeliveryCount><deadLetterQueues>{}</deadLetterQueues>
  </orders></queue></queues></h></virtualhost></virtualhosts></broker>"""
BROKER_J: Final = """
{{"modelVersion": "9.0", "name": "h", "context": {{{}}},
 "nodeAutoCreationPolicies": [{}],
 "queues": [{{"name": "orders", "maximumDeliveryAttempts": 5, "alternateBinding": {{"destination": "D"}}}},
            {{"name": "Z", "maximumDeliveryAttempts": 0, "expiryPolicy": "DELETE"}}]}}"""
ATTEMPTS: Final = '"queue.maximumDeliveryAttempts": "3"'
ALTERNATE: Final = '"queue.defaultAlternateBinding": "{\\"destination\\": \\"DLQ\\"}"'
ROUTED: Final = '"queue.defaultExpiryPolicy": "ROUTE_TO_ALTERNATE", "qpid.queue.expiryPolicy": "ROUTE_TO_ALTERNATE"'
ALL_QUEUES: Final = (
    '{"pattern": ".+", "nodeType": "queue", "attributes": {"maximumDeliveryAttempts": 4, '
    '"expiryPolicy": "ROUTE_TO_ALTERNATE", "alternateBinding": {"destination": "MADE"}}}'
)
RABBITMQ: Final = """
{{"queues": [{{"name": "orders", "vhost": "/", "arguments": {{"x-queue-type": "quorum", "x-delivery-limit": 4,
   "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "D"}}}},
   {{"name": "orders.new", "vhost": "/", "arguments": {{"x-queue-type": "quorum", "x-delivery-limit": -1}}}},
   {{"name": "Z", "vhost": "/", "arguments": {{"x-message-ttl": 5000}}}}],
 "policies": [{}]}}"""
POLICY: Final = '{"name": "all", "pattern": ".*", "vhost": "/", "definition": {"dead-letter-exchange": ""%s}}'
STRATEGIES: Final = """
<policyEntry queue="orders.>"><deadLetterStrategy><individualDeadLetterStrategy queuePrefix="D."/></deadLetterStrategy>
</policyEntry>
<policyEntry queue="orders"><deadLetterStrategy><sharedDeadLetterStrategy processExpired="false"/></deadLetterStrategy>
</policyEntry>
<policyEntry topic="news"><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>"""
PLUGIN: Final = """
<plugins><redeliveryPlugin sendToDlqIfMaxRetriesExceeded="false" fallbackToDeadLetter="{}">
<redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
  <redeliveryPolicy queue="*.new" maximumRedeliveries="3"/><redeliveryPolicy queue="Z" maximumRedeliveries="-1"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""
CREATED: Final[dict[str, object]] = {"dead_letter_address": "DLA", "auto_create_dead_letter_resources": "true"}
EXPIRED: Final[dict[str, object]] = {"expiry_address": "EXA", "auto_create_expiry_resources": "true"}
SHARED: Final[dict[str, object]] = {"dead_letter_address": "DLQ"}


def artemis(settings: Mapping[str, Mapping[str, object]]) -> BrokerPolicies:
    return read(address_settings(**settings))


FILES: Final[dict[str, BrokerPolicies]] = {
    "artemis: nothing": artemis({"orders": {"max_delivery_attempts": 3}}),
    "artemis: no expiry-address": artemis({"#": SHARED, "orders.#": {"max_delivery_attempts": -1}}),
    "artemis: expiry-address only": artemis({"#": {"expiry_address": "EXP"}, "orders": SHARED}),
    "artemis: both, and of some": artemis(
        {
            "#": {**SHARED, "expiry_address": "EXP", "max_delivery_attempts": 0},
            "orders": {"expiry_address": "DLQ", "max_delivery_attempts": 4},
        }
    ),
    "artemis: created": artemis({"#": CREATED, "orders.#": {**EXPIRED, "expiry_queue_suffix": ".E"}}),
    "artemis: merged": artemis(
        {
            "orders.*": {"dead_letter_address": "D"},
            "*.new": {"expiry_address": "D", "max_delivery_attempts": 3},
            "*.*.new": {"max_delivery_attempts": 4},
        }
    ),
    "hornetq": read(HORNETQ),
    "wildfly": read(WILDFLY),
    "activemq: nothing": classic(""),
    "activemq: strategies": classic(policy_entries(STRATEGIES)),
    "activemq: redelivered, then removed": classic(policy_entries(STRATEGIES) + PLUGIN.format("true")),
    "activemq: removed unless redelivered": classic(policy_entries(STRATEGIES) + PLUGIN.format("false")),
    "activemq: some are dropped": classic(
        policy_entries(STRATEGIES)
        + '<plugins><discardingDLQBrokerPlugin dropAll="false" dropOnly="orders.* news"/></plugins>'
    ),
    "activemq: all are dropped": classic('<plugins><discardingDLQBrokerPlugin dropAll="true"/></plugins>'),
    "qpid: for all": read(QPID.format(3, "true", "true")),
    "qpid: but one": read(QPID.format(3, "true", "false")),
    "qpid: for one": read(QPID.format(0, "false", "true")),
    "broker_j: no alternate": read(BROKER_J.format(ATTEMPTS, "")),
    "broker_j: alternate": read(BROKER_J.format(f"{ATTEMPTS}, {ALTERNATE}", "")),
    "broker_j: routed": read(BROKER_J.format(f"{ATTEMPTS}, {ALTERNATE}, {ROUTED}", "")),
    "broker_j: made": read(BROKER_J.format(ATTEMPTS, ALL_QUEUES)),
    "rabbitmq: no policy": read(RABBITMQ.format("")),
    "rabbitmq: a policy for all": read(RABBITMQ.format(POLICY % ', "dead-letter-routing-key": "DLQ"')),
    "uri": read_url("tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=4"),
}


def place(explained: DestinationRules, text: str | None) -> str | None:
    """The queue's name that `explain` gives: without its address or HornetQ's prefix; of a URL the usual one."""
    if explained.broker == "client":
        return "ActiveMQ.DLQ"
    return None if text is None else text.rpartition("::")[2].removeprefix("jms.queue.")
