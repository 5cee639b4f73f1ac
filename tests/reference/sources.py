"""The sources of the public names: what another specification or product has already, whose rules ours follow.

A name that is in neither table has no source yet: a test says so. The reference shows the source below the name.
"""

from __future__ import annotations

from typing import Final

_JMS: Final = {
    name: f"jakarta.jms.{java}"
    for name, java in {
        "ConnectionFactory": "ConnectionFactory",
        "Connection": "Connection",
        "ConnectionMetaData": "ConnectionMetaData",
        "Session": "Session",
        "Consumer": "MessageConsumer",
        "Producer": "MessageProducer",
        "QueueBrowser": "QueueBrowser",
        "Message": "Message",
        "Destination": "Destination",
        "Queue": "Queue",
        "Topic": "Topic",
        "TemporaryQueue": "TemporaryQueue",
        "TemporaryTopic": "TemporaryTopic",
        "JMSError": "JMSException",
        "IllegalStateError": "IllegalStateException",
        "InvalidClientIDError": "InvalidClientIDException",
        "InvalidDestinationError": "InvalidDestinationException",
        "InvalidSelectorError": "InvalidSelectorException",
        "MessageFormatError": "MessageFormatException",
        "MessageNotWriteableError": "MessageNotWriteableException",
        "ResourceAllocationError": "ResourceAllocationException",
        "SecurityError": "JMSSecurityException",
        "TransactionRolledBackError": "TransactionRolledBackException",
    }.items()
}
_POLICY: Final = "org.apache.activemq.broker.region.policy"
SOURCES: Final[dict[str, str]] = {
    **{name: f"JMS 3.1, `{java}`" for name, java in _JMS.items()},
    **dict.fromkeys(("Byte", "Short", "Long", "Float"), "JMS 3.1, the types of properties (`setByteProperty`, …)"),
    "AckMode": "JMS 3.1, the modes of `jakarta.jms.Session`; INDIVIDUAL: ActiveMQ's INDIVIDUAL_ACKNOWLEDGE",
    "RedeliveryPolicy": "ActiveMQ, `org.apache.activemq.RedeliveryPolicy`",
    "RedeliveryPolicyMap": f"ActiveMQ, `{_POLICY}.RedeliveryPolicyMap`",
    "PrefetchPolicy": "ActiveMQ, `org.apache.activemq.ActiveMQPrefetchPolicy`",
    "ReconnectPolicy": "ActiveMQ, the options of its failover transport",
    "DeadLetterStrategy": f"ActiveMQ, `{_POLICY}.DeadLetterStrategy`",
    "SharedDeadLetterStrategy": f"ActiveMQ, `{_POLICY}.SharedDeadLetterStrategy`",
    "IndividualDeadLetterStrategy": f"ActiveMQ, `{_POLICY}.IndividualDeadLetterStrategy`",
    "DiscardingDeadLetterStrategy": "ActiveMQ, its plug-in `discardingDLQBrokerPlugin`",
    "DeadLetterStrategyMap": f"ActiveMQ, `{_POLICY}.PolicyMap`",
    "AddressSettings": "Artemis, `org.apache.activemq.artemis.core.settings.impl.AddressSettings`",
    "AddressSettingsMap": "Artemis, the matches of its `address-settings`",
    "ListenerContainer": "Spring, `DefaultMessageListenerContainer`",
    "App": "Spring, `@JmsListener`",
    "otel.TelemetryObserver": "OpenTelemetry, semantic conventions 1.44 for messaging",
    "otel.context_of": "OpenTelemetry, context propagation; W3C Trace Context",
    "otel.observer": "OpenTelemetry, semantic conventions 1.44 for messaging",
    "prometheus.PrometheusObserver": "prometheus-client, its custom collectors",
    "redelivery.spark.listener.PrometheusListener": "Spark, `StreamingQueryListener`",
    "pyspark_redelivery.DefaultSource": "Spark, the Python data source API",
}

OWN: Final = frozenset(
    {
        "connect",
        "Publisher",
        "Health",
        "Capabilities",
        "DeadLetterInfo",
        "Passport",
        "Retry",
        "DeadLetter",
        "Drop",
        "BrokerDeadLetterStrategy",
        "policies.read",
        "policies.write",
        "BrokerPolicies",
        "ConfigError",
        "ConnectError",
        "ConnectionLostError",
        "InDoubtError",
        "ProtocolError",
        "RequestTimeoutError",
        "UnsupportedError",
        "broker.BrokerConfig",
        "broker.EmbeddedBroker",
        "broker.NamedSubscription",
        "testing.FastForward",
        "testing.fast_forward",
        "redelivery_broker",
        "redelivery_durable_broker",
        "web.mount",
        "redelivery.operate.explain.explain",
        "redelivery.operate.explain.Explained",
        "redelivery.operate.convert.convert",
        "redelivery.operate.convert.Conversion",
    }
)
"""Names of this library alone; its events are too."""


def source_of(heading: str) -> str | None:
    """The source of a name, which that of asyncio shares; None: it is this library's own, or unknown."""
    return SOURCES.get(heading.removeprefix("aio."))


def is_decided(heading: str) -> bool:
    """Check whether a name has a source, or is said to be this library's own."""
    name = heading.removeprefix("aio.")
    return name in SOURCES or name in OWN or name.startswith("events.")
