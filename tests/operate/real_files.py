"""Files in the shapes that brokers have in production, with short delays: what is converted and run on real brokers."""

from __future__ import annotations

from typing import Final

from tests.policies.readers.documents import CLASSIC, read

from redelivery.policies.brokers.formats import read_url
from redelivery.policies.brokers.policies import BrokerPolicies

_ARTEMIS: Final = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <name>shop</name><persistence-enabled>true</persistence-enabled>
  <address-settings>
    <address-setting match="activemq.management.#"><dead-letter-address>DLQ</dead-letter-address></address-setting>
    <address-setting match="#">
      <dead-letter-address>DLQ</dead-letter-address><expiry-address>ExpiryQueue</expiry-address>
      <redelivery-delay>0</redelivery-delay><max-delivery-attempts>3</max-delivery-attempts>
    </address-setting>{}
  </address-settings>{}
</core></configuration>"""
_MADE: Final = """<addresses>
  <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
  <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address></addresses>"""
_ORDERS: Final = """
    <address-setting match="orders"><dead-letter-address>ordersDead</dead-letter-address>
      <redelivery-delay>200</redelivery-delay><redelivery-delay-multiplier>2.0</redelivery-delay-multiplier>
    </address-setting>
    <address-setting match="stock.#"><max-delivery-attempts>2</max-delivery-attempts></address-setting>"""
_CREATED: Final = """
    <address-setting match="auto.#"><auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>
      <dead-letter-queue-suffix>.dead</dead-letter-queue-suffix></address-setting>"""
_HORNETQ: Final = """
<configuration xmlns="urn:hornetq"><address-settings>
  <address-setting match="#">
    <dead-letter-address>jms.queue.DLQ</dead-letter-address><expiry-address>jms.queue.ExpiryQueue</expiry-address>
    <redelivery-delay>0</redelivery-delay><max-delivery-attempts>2</max-delivery-attempts>
  </address-setting>
  <address-setting match="jms.queue.orders"><dead-letter-address>jms.queue.ordersDead</dead-letter-address>
  </address-setting></address-settings></configuration>"""
_POLICIES: Final = """
<destinationPolicy><policyMap><policyEntries>{}</policyEntries></policyMap></destinationPolicy>
<plugins><redeliveryPlugin fallbackToDeadLetter="true" sendToDlqIfMaxRetriesExceeded="true">
  <redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry>
    <redeliveryPolicy maximumRedeliveries="1" initialRedeliveryDelay="1000" redeliveryDelay="1000"/>
  </defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""
_OF_THEIR_OWN: Final = """
<policyEntry queue="orders"><deadLetterStrategy>
  <individualDeadLetterStrategy queuePrefix="DLQ." useQueueForQueueMessages="true"/></deadLetterStrategy></policyEntry>
<policyEntry topic=">"/>"""
_SHARED: Final = """
<policyEntry queue="orders"><deadLetterStrategy><sharedDeadLetterStrategy processExpired="false">
  <deadLetterQueue><queue physicalName="ordersDead"/></deadLetterQueue></sharedDeadLetterStrategy>
</deadLetterStrategy></policyEntry>"""
_QPID: Final = """
<broker><deadLetterQueues>true</deadLetterQueues><maximumDeliveryCount>3</maximumDeliveryCount><virtualhosts>
  <default>shop</default><virtualhost><name>shop</name><shop><queues>
    <queue><name>orders</name><orders><maximumDeliveryCount>2</maximumDeliveryCount></orders></queue>
  </queues></shop></virtualhost></virtualhosts></broker>"""
_BROKER_J: Final = """
{"modelVersion": "9.0", "name": "shop", "type": "BDB",
 "context": {"queue.maximumDeliveryAttempts": "3", "queue.defaultAlternateBinding": "{\\"destination\\": \\"DLQ\\"}"},
 "queues": [{"name": "DLQ"}, {"name": "orders", "maximumDeliveryAttempts": 2},
            {"name": "bills", "maximumDeliveryAttempts": 2, "alternateBinding": {"destination": "billsDead"}}]}"""
_RABBITMQ: Final = """
{"rabbitmq_version": "3.12.2", "vhosts": [{"name": "/"}], "permissions": [],
 "policies": [{"name": "dead", "pattern": "^orders", "vhost": "/", "apply-to": "queues", "priority": 1,
               "definition": {"dead-letter-exchange": "dlx", "delivery-limit": 2}}],
 "exchanges": [{"name": "dlx", "vhost": "/", "type": "topic", "durable": true, "arguments": {}}],
 "queues": [{"name": "orders", "vhost": "/", "durable": true, "arguments": {"x-queue-type": "quorum"}},
            {"name": "endless", "vhost": "/", "durable": true, "arguments": {"x-queue-type": "quorum"}},
            {"name": "dead", "vhost": "/", "durable": true, "arguments": {"x-queue-type": "quorum"}}],
 "bindings": [{"source": "dlx", "vhost": "/", "destination": "dead", "destination_type": "queue",
               "routing_key": "#", "arguments": {}}]}"""
_RABBITMQ_POLICIES: Final = """
[{"vhost": "/", "name": "all", "pattern": ".*", "apply-to": "all", "priority": 0,
  "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}}]"""
_URL: Final = "tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.initialRedeliveryDelay=0"

FILES: Final[dict[str, BrokerPolicies]] = {
    "artemis, as it is made": read(_ARTEMIS.format("", _MADE)),
    "artemis, without queues": read(_ARTEMIS.format(_ORDERS, "")),
    "artemis, queues of their own": read(_ARTEMIS.format(_CREATED, _MADE)),
    "hornetq": read(_HORNETQ),
    "classic, queues of their own": read(CLASSIC.format(_POLICIES.format(_OF_THEIR_OWN)), "activemq.xml"),
    "classic, shared": read(CLASSIC.format(_POLICIES.format(_SHARED)), "activemq.xml"),
    "qpid": read(_QPID),
    "broker-j": read(_BROKER_J),
    "rabbitmq": read(_RABBITMQ),
    "rabbitmq, policies": read(_RABBITMQ_POLICIES),
    "client": read_url(_URL),
}
ASKED: Final = ("orders", "stock.new", "auto.x", "bills", "any.other")
"""The queues whose messages fail: named by a file, matched by a pattern, or neither."""
