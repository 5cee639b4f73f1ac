"""The settings of Artemis and HornetQ that decide about redelivery, expiry or dead letters, and are not modelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redelivery.policies.brokers.artemis.names import camel_case
from redelivery.policies.files.places import Decisive, decisive
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element

_KEPT_LAST: Final = "of the messages with one key the queue keeps the last one only, of dead letters too"
_NUMBER: Final = "(?!-1$).*"

ADDRESS_SETTINGS: Final[Mapping[str, Decisive]] = {
    "address-full-policy": decisive("an address that is full takes no message, and no dead letter", "drop|fail"),
    "page-full-policy": decisive("an address whose pages are full takes no message, and no dead letter", "drop|fail"),
    "slow-consumer-policy": decisive(
        "a check ends the connection of a consumer that acknowledges fewer messages a second than "
        "slow-consumer-threshold, if so many come or lie there; what it had is redelivered",
        "kill",
    ),
    "default-ring-size": decisive("a queue keeps so many messages: older ones are removed, dead letters too", _NUMBER),
    "default-last-value-queue": decisive(_KEPT_LAST, "true"),
    "last-value-queue": decisive(_KEPT_LAST, "true"),
    "default-last-value-key": decisive(_KEPT_LAST, ".+"),
    "default-non-destructive": decisive("a message is removed by its expiry only, and never by a consumer", "true"),
    "default-purge-on-no-consumers": decisive("a queue is emptied when its last consumer goes", "true"),
    "auto-delete-queues-message-count": decisive("a queue made by the broker is deleted with its messages", "(?!0$).*"),
    "auto-delete-queues-skip-usage-check": decisive("a queue that nobody has used is deleted", "true"),
    "config-delete-queues": decisive("a queue that is no longer in the file is deleted with its messages", "force"),
    "config-delete-addresses": decisive("an address that is no longer in the file is deleted with its queues", "force"),
}
"""Elements of an ``address-setting``."""

QUEUES: Final[Mapping[str, Decisive]] = {
    "ring-size": ADDRESS_SETTINGS["default-ring-size"],
    "last-value": decisive(_KEPT_LAST, "true"),
    "last-value-key": decisive(_KEPT_LAST, ".+"),
    "non-destructive": ADDRESS_SETTINGS["default-non-destructive"],
    "purge-on-no-consumers": ADDRESS_SETTINGS["default-purge-on-no-consumers"],
    "enabled": decisive("the queue takes no message: as a dead-letter queue it loses them", "false"),
    "durable": decisive("the queue and its messages are gone after a restart", "false"),
}
"""Attributes and elements of a ``queue``."""

CORE: Final[Mapping[str, Decisive]] = {
    "message-expiry-scan-period": decisive(
        "nobody looks for expired messages: one expires as it is delivered", "-.*|0"
    ),
    "persistence-enabled": decisive(
        "nothing is stored: messages, dead letters and counts are gone after a restart", "false"
    ),
    "transaction-timeout": decisive("a transaction (XA, AMQP) that is open for longer is rolled back, and redelivered"),
    "connection-ttl-override": decisive(
        "a client that is silent for so long is disconnected, and redelivered", _NUMBER
    ),
}
"""Elements of ``core``."""

_OF_BEANS: Final = {"address-full-policy": "addressFullMessagePolicy", "page-full-policy": "pageFullMessagePolicy"}


def _camel(known: Mapping[str, Decisive]) -> dict[str, Decisive]:
    return {camel_case(name): each for name, each in known.items()}


CAMEL_SETTINGS: Final[Mapping[str, Decisive]] = _camel(ADDRESS_SETTINGS)
"""Elements of an ``address-setting`` as the operator's custom resources spell them."""
PROPERTY_SETTINGS: Final[Mapping[str, Decisive]] = {
    _OF_BEANS.get(name, camel_case(name)): each for name, each in ADDRESS_SETTINGS.items()
}
"""The same as ``broker.properties`` spells them; ``PROPERTY_QUEUES``: those of a queue."""
PROPERTY_QUEUES: Final[Mapping[str, Decisive]] = _camel(QUEUES)
PROPERTIES: Final[Mapping[str, Decisive]] = {
    **_camel(CORE),
    "connectionTTLOverride": CORE["connection-ttl-override"],
    "divertConfigurations": decisive("a divert sends messages, dead letters too, elsewhere"),
    "bridgeConfigurations": decisive("a bridge takes messages, dead letters too, elsewhere"),
    "brokerPlugins": decisive("a plug-in can change, refuse, expire or remove messages"),
    "incomingInterceptorClassNames": decisive("an interceptor can change or refuse what clients send"),
    "outgoingInterceptorClassNames": decisive("an interceptor can change or refuse what the broker sends"),
}
"""The first words of properties that are not about an address."""

_ACCEPTOR: Final[Mapping[str, Decisive]] = {
    "amqpTreatRejectAsUnmodifiedDeliveryFailed": decisive(
        "a message that an AMQP client rejects is redelivered: it is no dead letter at once", "true"
    ),
    "amqpUseModifiedForTransientDeliveryErrors": decisive(
        "an address that is full rejects what an AMQP client sends: the client takes it for refused for good", "false"
    ),
}
_PLUGINS: Final = frozenset(  # that only look, or log
    {
        "LoggingActiveMQServerPlugin",
        "NotificationActiveMQServerPlugin",
        "CorrelationTracingPlugin",
        "JmxQueueMetricPlugin",
    }
)
_PLUGIN: Final = "a plug-in can change, refuse, expire or remove messages"
_INTERCEPTOR: Final = "an interceptor can change or refuse what clients and broker send each other"


def skip_decisive(core: Element, report: ReadingReport) -> None:
    """Note what decides in the sections of the core, but for its address settings and queues."""
    attributes = ((name, text, core.at(name)) for name, text in core.attributes.items())  # as WildFly has them
    report.skip_decisive(CORE, (*attributes, *((each.name, each.text, each.place) for each in core.children)))
    interceptors = [one for each in core.children if each.name.endswith("interceptors") for one in each.children]
    for element in core.walk():
        match element.name:
            case "broker-plugin" if element.attributes.get("class-name", "").rpartition(".")[2] not in _PLUGINS:
                name = f"broker-plugin {element.attributes.get('class-name', '')}"
                report.skip(name, element.at("class-name"), _PLUGIN)
            case "divert":
                _divert(element, report)
            case "bridge":
                queue = _text(element, "queue-name")
                why = f"it takes the messages of {queue} elsewhere: dead letters too"
                report.skip(f"bridge {_name(element)}", element.place, why, names=(queue,))
            case "class-name" | "class" if element in interceptors:
                report.skip(f"interceptor {element.attributes.get('name', element.text)}", element.place, _INTERCEPTOR)
            case "acceptor":
                options = element.text.replace("?", ";").split(";")
                given = (each.partition("=") for each in options)
                report.skip_decisive(_ACCEPTOR, ((name, text, element.place) for name, _, text in given))


def _divert(element: Element, report: ReadingReport) -> None:
    address = _text(element, "address") or _text(element, "divert-address")
    to = _text(element, "forwarding-address")
    manner = "instead" if _text(element, "exclusive") == "true" else "too"
    why = f"what is sent to {address}, a dead letter too, goes to {to} {manner}, whose settings count there"
    report.skip(f"divert {_name(element)}", element.place, why, names=(address,))


def _name(element: Element) -> str:
    return element.attributes.get("name", "") or _text(element, "routing-name")


def _text(element: Element, name: str) -> str:
    found = element.first(name)
    return element.attributes.get(name, "") if found is None else found.text
