"""The parts of ActiveMQ Classic's XML that decide about redelivery, expiry or dead letters, and are not modelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redelivery.policies.files.places import Decisive, Place, decisive
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element

_PLUGIN: Final = "a plug-in can change, expire, refuse or remove messages"

ENTRY: Final[Mapping[str, Decisive]] = {
    "expireMessagesPeriod": decisive("the broker looks for expired messages each so many ms; 0: never", "(?!30000$).*"),
    "maxExpirePageSize": decisive("of so many messages of a queue the expired ones are found", "(?!400$).*"),
}
"""Attributes and elements of a ``policyEntry``."""

BROKER: Final[Mapping[str, Decisive]] = {
    "deleteAllMessagesOnStartup": decisive("each start deletes all messages, dead letters too", "true"),
    "persistent": decisive("nothing is stored: messages, dead letters and counts are gone after a restart", "false"),
    "offlineDurableSubscriberTimeout": decisive(
        "a durable subscription that is offline for so long is deleted with its messages", "(?!-1$|0$).*"
    ),
    "enableMessageExpirationOnActiveDurableSubs": decisive(
        "messages of active durable subscriptions expire where they wait", "true"
    ),
    "useMirroredQueues": decisive("each queue has a topic that gets its messages too, dead letters too", "true"),
    "destinationInterceptors": decisive("an interceptor sends messages to other destinations, whose entries count"),
    "persistenceAdapter": decisive("it names a bean that is not read"),
}
"""Attributes of the ``broker``."""

_STORES: Final[Mapping[str, Decisive]] = {
    "rewriteOnRedelivery": decisive("the store keeps the count of a redelivered message over a restart", "true"),
    "ignoreMissingJournalfiles": decisive("messages of lost journal files are left out without an error", "true"),
}

PLUGINS: Final[Mapping[str, str]] = {
    "destinationPathSeparatorPlugin": "it changes the separator in names, and with that which entries match",
    "runtimeConfigurationPlugin": "what is changed in the file counts without a restart: this is what stands there now",
    "partitionBrokerPlugin": "it sends clients to other brokers, whose rules count",
}
HARMLESS: Final = frozenset(
    {
        *("authorizationPlugin", "simpleAuthenticationPlugin", "jaasAuthenticationPlugin", "destinationsPlugin"),
        *("jaasCertificateAuthenticationPlugin", "jaasDualAuthenticationPlugin", "statisticsBrokerPlugin"),
        *("loggingBrokerPlugin", "connectionDotFilePlugin", "destinationDotFilePlugin", "udpTraceBrokerPlugin"),
        *("multicastTraceBrokerPlugin", "traceBrokerPathPlugin", "virtualSelectorCacheBrokerPlugin"),
    }
)
"""Plug-ins that decide about none of it: who may do what, statistics, logs."""


def skip_plugin(element: Element, title: str, report: ReadingReport) -> None:
    """Note a plug-in, with how it decides."""
    own = element.name in HARMLESS
    known = PLUGINS.get(element.name, _PLUGIN)
    options = " ".join(f'{name}="{text}"' for name, text in element.attributes.items() if name not in ("id", "xmlns"))
    name = title if own or element.name not in PLUGINS else f"{element.name} {options}".strip()
    report.skip(name, element.place, "" if own else known)


def skip_of_entry(element: Element, report: ReadingReport) -> None:
    """Note what decides in a ``policyEntry``, beside its dead-letter strategy."""
    given = [(name, text, element.at(name)) for name, text in element.attributes.items()]
    given += [(child.name, " ".join(map(_shown, child.children)), child.place) for child in element.children]
    report.skip_decisive(ENTRY, given, part=element.place)


def skip_of_broker(broker: Element, report: ReadingReport) -> None:
    """Note what decides in the attributes and sections of a ``broker``."""
    report.skip_decisive(BROKER, ((name, text, broker.at(name)) for name, text in broker.attributes.items()))
    for section in broker.all("persistenceAdapter", "persistenceFactory"):
        for each in section.walk():
            report.skip_decisive(_STORES, ((name, text, each.at(name)) for name, text in each.attributes.items()))
    for section in broker.all("destinationInterceptors"):
        for each in section.walk():
            _skip_interceptor(each, report)


def _skip_interceptor(element: Element, report: ReadingReport) -> None:
    place, name = element.place, element.attributes.get("name", "")
    match element.name:
        case "compositeQueue" | "compositeTopic":
            manner = "instead" if element.attributes.get("forwardOnly", "true") == "true" else "too"
            to = ", ".join(
                f"{each.name}://{each.attributes.get('physicalName', '')}"
                for each in element.walk()
                if each.name in ("queue", "topic")
            )
            why = f"what is sent to {name}, a dead letter too, goes to {to or 'others'} {manner}, whose entries count"
            is_pattern = bool({"*", ">"} & set(name.split(".")))
            report.skip(f"{element.name} {name}", place, why, names=() if is_pattern else (name,))
        case "virtualTopic":
            _skip_virtual_topic(element, name, place, report)
        case "mirroredQueue":
            report.skip(element.name, place, BROKER["useMirroredQueues"].why)


def _skip_virtual_topic(element: Element, name: str, place: Place, report: ReadingReport) -> None:
    prefix = element.attributes.get("prefix", "Consumer.*.")
    if (name, prefix) != ("VirtualTopic.>", "Consumer.*."):  # which each broker has
        why = f"what is sent to topic://{name} goes to the queues {prefix}{name}, whose entries count"
        report.skip(f"virtualTopic {name}", place, why)


def _shown(element: Element) -> str:
    options = " ".join(f'{name}="{text}"' for name, text in element.attributes.items() if name != "xmlns")
    return f"{element.name} {options}".strip()
