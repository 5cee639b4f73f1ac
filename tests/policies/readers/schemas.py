"""The settings that each broker's own schema has, and which of them say nothing about what is read here.

``OTHERS`` was gone through name by name: capacity, paging, security, clusters, names, statistics, prefetch, priority.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Final

from defusedxml import ElementTree

_XSD: Final = "{http://www.w3.org/2001/XMLSchema}"
_STATISTIC: Final = re.compile("(available|persistent|queueDepth|total|unacknowledged)[A-Z][a-z]+")

OTHERS: Final = {
    "artemis address-setting": """
        auto-create-addresses auto-create-jms-queues auto-create-jms-topics auto-create-queues auto-delete-addresses
        auto-delete-addresses-delay auto-delete-addresses-skip-usage-check auto-delete-created-queues
        auto-delete-jms-queues auto-delete-jms-topics auto-delete-queues auto-delete-queues-delay config-delete-diverts
        default-address-routing-type default-consumer-window-size default-consumers-before-dispatch
        default-delay-before-dispatch default-exclusive-queue default-group-buckets default-group-first-key
        default-group-rebalance default-group-rebalance-pause-dispatch default-max-consumers default-queue-routing-type
        enable-ingress-timestamp enable-metrics id-cache-size initial-queue-buffer-size management-browse-page-size
        management-message-attribute-size-limit max-read-page-bytes max-read-page-messages max-size-bytes
        max-size-bytes-reject-threshold max-size-messages message-counter-history-day-limit page-limit-bytes
        page-limit-messages page-max-cache-size page-size-bytes prefetch-page-bytes prefetch-page-messages
        redistribution-delay retroactive-message-count slow-consumer-check-period slow-consumer-threshold
        slow-consumer-threshold-measurement-unit""",
    "artemis queue": """
        name max-consumers exclusive group-rebalance group-rebalance-pause-dispatch group-buckets group-first-key
        consumers-before-dispatch delay-before-dispatch user""",
    "hornetq address-setting": """
        max-size-bytes message-counter-history-day-limit page-max-cache-size page-size-bytes redistribution-delay
        slow-consumer-check-period slow-consumer-threshold""",
    "activemq policyEntry": """
        advisoryForConsumed advisoryForDelivery advisoryForDiscardingMessages advisoryForDispatched
        advisoryForFastProducers advisoryForSlowConsumers advisoryWhenFull allConsumersExclusiveByDefault
        alwaysRetroactive blockedProducerWarningInterval consumersBeforeDispatchStarts cursorMemoryHighWaterMark
        destination dispatchPolicy doOptimzeMessageStorage durableTopicPrefetch enableAudit gcInactiveDestinations
        gcWithNetworkConsumers inactiveTimeoutBeforeGC inactiveTimoutBeforeGC includeBodyForAdvisory lazyDispatch
        maxAuditDepth maxBrowsePageSize maxDestinations maxPageSize maxProducersToAudit maxQueueAuditDepth memoryLimit
        messageGroupMapFactory messageGroupMapFactoryType minimumMessageSize networkBridgeFilterFactory
        optimizeMessageStoreInFlightLimit optimizedDispatch pendingDurableSubscriberPolicy pendingQueuePolicy
        pendingSubscriberPolicy prioritizedMessages producerFlowControl queue queueBrowserPrefetch queuePrefetch
        reduceMemoryFootprint sendAdvisoryIfNoConsumers sendFailIfNoSpace sendFailIfNoSpaceAfterTimeout
        storeUsageHighWaterMark strictOrderDispatch subscriptionRecoveryPolicy tempQueue tempTopic
        timeBeforeDispatchStarts topic topicPrefetch useCache useConsumerPriority usePrefetchExtension
        useTopicSubscriptionInflightStats id""",
    "rabbitmq policy": """
        federation-upstream federation-upstream-pattern federation-upstream-set ha-mode ha-params ha-promote-on-failure
        ha-promote-on-shutdown ha-sync-batch-size ha-sync-mode initial-cluster-size max-in-memory-bytes
        max-in-memory-length queue-leader-locator queue-master-locator queue-mode queue-version shards-per-node
        stream-filter-size-bytes stream-max-segment-size-bytes target-group-size""",
    "qpid queue": """
        alertRepeatGap alertThresholdMessageAge alertThresholdMessageSize alertThresholdQueueDepthBytes
        alertThresholdQueueDepthMessages creatingLinkInfo defaultFilters exclusive maximumDistinctGroups
        maximumLiveConsumers maximumQueueDepthBytes maximumQueueDepthMessages messageGroupDefaultGroup
        messageGroupKeyOverride messageGroupType noLocal owner consumers publishingLinks queueFlowStopped
        bindingCount consumerCount consumerCountWithCredit empty held leastSignificantOldestEntry
        logSubject messageContent messageInfo messageInfoById messageOnTheQueue messagesOnTheQueue notificationChecks
        oldestMessageAge oldestMessageArrivalTime producerCount unused virtualHost""",
}


def names_of_artemis(home: Path) -> dict[str, set[str]]:
    """Artemis' settings, of the schema in its server's jar."""
    (jar,) = (home / "lib").glob("artemis-server-2.*.jar")
    root = _in_jar(jar, "schema/artemis-configuration.xsd")
    types = {each.get("name"): each for each in root.iter(f"{_XSD}complexType")}
    setting = types["addressSettingType"]
    queue = types["queueType"]
    return {
        "artemis address-setting": {each.get("name", "") for each in setting.iter(f"{_XSD}element")},
        "artemis queue": {
            each.get("name") or each.get("ref") or ""
            for kind in ("element", "attribute")
            for each in queue.iter(_XSD + kind)
        }
        - {"filter"},
    }


def names_of_hornetq(home: Path) -> dict[str, set[str]]:
    """HornetQ's."""
    (jar,) = (*home.glob("hornetq-server-*.jar"), *(home / "lib").glob("hornetq-server-*.jar"))
    root = _in_jar(jar, "schema/hornetq-configuration.xsd")
    setting = next(each for each in root.findall(f"{_XSD}element") if each.get("name") == "address-setting")
    return {
        "hornetq address-setting": {each.get("name", "") for each in setting.iter(f"{_XSD}element")}
        - {"address-setting"}
    }


def names_of_activemq(home: Path) -> dict[str, set[str]]:
    """Classic's, and the elements that can stand in ``plugins``."""
    (jar,) = (home / "lib").glob("activemq-spring-*.jar")
    root = _in_jar(jar, "activemq.xsd")
    elements = {each.get("name"): each for each in root.findall(f"{_XSD}element")}
    (plugins,) = [each for each in elements["broker"].iter(f"{_XSD}element") if each.get("name") == "plugins"]
    entry = elements["policyEntry"]
    return {
        "activemq policyEntry": {each.get("name", "") for each in entry.iter(f"{_XSD}attribute")},
        "activemq plugins": {(each.get("ref") or "").removeprefix("tns:") for each in plugins.iter(f"{_XSD}element")}
        - {""},
    }


def names_of_qpid(home: Path) -> dict[str, set[str]]:
    """Broker-J's attributes of a queue: the getters that its interface declares."""
    (jar,) = (home / "lib").glob("qpid-broker-core-*.jar")
    with zipfile.ZipFile(jar) as packed:
        code = packed.read("org/apache/qpid/server/model/Queue.class").decode("latin-1")
    getters = re.findall(r"(?<=[\x00-\x7f])(?:get|is)([A-Z][A-Za-z]+)(?=[\x00-\x1f])", code)
    names = {each[0].lower() + each[1:] for each in getters}
    return {"qpid queue": {each for each in names if not _STATISTIC.match(each)}}


def _in_jar(jar: Path, name: str) -> ElementTree.Element:
    with zipfile.ZipFile(jar) as packed:
        return ElementTree.fromstring(packed.read(name))
