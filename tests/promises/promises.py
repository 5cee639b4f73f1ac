"""What the brokers' own documents promise about redelivery and dead letters, condensed; each by a name for its tests.

``pytest.mark.promise("artemis-delay")`` marks the tests of a promise. ``scripts/promises-table`` writes docs/seeds.md.
"""

from __future__ import annotations

from typing import Final

ARTEMIS: Final = "Artemis: message redelivery and undelivered messages"
HORNETQ: Final = "HornetQ: message redelivery and undelivered messages"
QPID: Final = "Qpid's Java broker: handling undeliverable messages"
CLASSIC: Final = "ActiveMQ Classic: message redelivery and dead-letter handling"
SEEN: Final = "Seen on the real brokers under such files (Artemis 2.44, Classic 5.18, Broker-J 9.2, HornetQ 2.4)"

PROMISES: Final[dict[str, tuple[str, str]]] = {
    "artemis-two-remedies": (ARTEMIS, "delayed redelivery and a dead letter address can be combined"),
    "artemis-redelivery-defaults": (
        ARTEMIS,
        "redelivery-delay is 0 by default, redelivery-delay-multiplier 1.0, redelivery-collision-avoidance-factor 0.0, "
        "max-redelivery-delay ten times redelivery-delay",
    ),
    "artemis-factor-range": (ARTEMIS, "redelivery-collision-avoidance-factor must lie between 0.0 and 1.0"),
    "artemis-wildcards": (ARTEMIS, "address-setting matches may have wildcards"),
    "artemis-overtaking": (ARTEMIS, "later messages are delivered while a cancelled one waits for its redelivery"),
    "artemis-growth": (ARTEMIS, "each delay is the previous one times the multiplier, at most max-redelivery-delay"),
    "artemis-example-1": (
        ARTEMIS,
        "delay 5000, multiplier 2, maximum 15000, factor 0: waits 5000, 10000, 15000 (20000 is capped)",
    ),
    "artemis-example-2": (
        ARTEMIS,
        "delay 1000, multiplier 1, maximum 15000, factor 0.5, with (-, 0.25), (+, 0.75), (-, 0.05) drawn: "
        "875, 1375, 975",
    ),
    "artemis-example-setting": (ARTEMIS, "match exampleQueue: multiplier 1.5, delay 5000, factor 0.15, maximum 50000"),
    "artemis-journal-records": (
        ARTEMIS,
        "a redelivery writes two journal records; max-redelivery-records=1 is advised with very short delays",
    ),
    "artemis-attempts-default": (ARTEMIS, "max-delivery-attempts is 10 by default, and -1 is without an end"),
    "artemis-removal": (ARTEMIS, "without a dead-letter-address the message is removed after the attempts"),
    "artemis-endless-address": (ARTEMIS, "an address may set -1 against a global setting"),
    "artemis-example-dead-letter": (ARTEMIS, "match exampleQueue: dead-letter-address deadLetterAddress, 3 attempts"),
    "artemis-properties": (ARTEMIS, "dead letters carry _AMQ_ORIG_ADDRESS, _AMQ_ORIG_QUEUE, _AMQ_ORIG_MESSAGE_ID"),
    "artemis-auto-create": (
        ARTEMIS,
        "auto-create-dead-letter-resources makes the address and a MULTICAST queue DLQ.<address> with the filter "
        "_AMQ_ORIG_ADDRESS = '<address>'; it is off by default",
    ),
    "artemis-auto-created": (
        ARTEMIS,
        "a queue that was made for dead letters is read by its name or as DLA::queue, and is deleted by the settings "
        "of auto-created queues",
    ),
    "artemis-example-auto-create": (
        ARTEMIS,
        "match #: dead-letter-address DLA, 3 attempts, an empty prefix and the suffix .DLQ",
    ),
    "artemis-count-persistence": (
        ARTEMIS,
        "the delivery count is not persisted before delivery unless persist-delivery-count-before-delivery is true",
    ),
    "hornetq-example-setting": (HORNETQ, "match jms.queue.exampleQueue: multiplier 1.5, delay 5000, maximum 50000"),
    "hornetq-example-growth": (HORNETQ, "delay 5000, multiplier 2, maximum 15000: waits 5000, 10000, 15000"),
    "hornetq-dead-letter": (
        HORNETQ,
        "match jms.queue.exampleQueue: dead-letter-address jms.queue.deadLetterQueue, 3 attempts; 10 by default, -1 "
        "endless, removed without an address",
    ),
    "hornetq-properties": (HORNETQ, "dead letters have _HQ_ORIG_ADDRESS and _HQ_ORIG_QUEUE"),
    "hornetq-count-persistence": (HORNETQ, "persist-delivery-count-before-delivery is false by default"),
    "qpid-maximum": (
        QPID,
        "the maximum delivery count is a property of a queue; beyond it a message goes to the queue's dead-letter "
        "queue, or is discarded where there is none",
    ),
    "qpid-rollback-only": (
        QPID,
        "it is enforced where the broker handles rollback or recover; a client that just closes its connection sees "
        "the message again",
    ),
    "qpid-names": (QPID, "the dead-letter exchange of a queue is <queue>_DLE, its dead-letter queue <queue>_DLQ"),
    "qpid-arguments": (QPID, "x-qpid-maximum-delivery-count and x-qpid-dlq-enabled set both when a queue is declared"),
    "qpid-levels": (
        QPID,
        "the broker sets true and 5, the virtual host dev-only false and 0, its dev-only-main-queue true and 3, its "
        "dev-only-other-queue and localhost's localhost-queue nothing: 3, disabled, 5",
    ),
    "qpid-stock-ticker": (
        QPID,
        "a stock ticker: without a maximum, a BytesMessage among TextMessages blocks for ever an application that "
        "rolls it back",
    ),
    "qpid-reject-behaviour": (QPID, "AMQP 0-x clients need the reject behaviour server, or system"),
    "qpid-depth": (QPID, "dead-letter queues take resources: somebody must look at them, and warn of their depth"),
    "classic-redelivered": (
        CLASSIC,
        "messages are redelivered when a transacted session is rolled back, and when recover() is called",
    ),
    "classic-closed": (CLASSIC, "messages are redelivered when a transacted session is closed before its commit"),
    "classic-preferred-policy": (
        CLASSIC,
        "the broker sends its preferred delivery policy to the client, which can override it",
    ),
    "classic-poison": (
        CLASSIC,
        "beyond maximumRedeliveries the client sends a poison acknowledgement, and the broker moves the message to "
        "ActiveMQ.DLQ",
    ),
    "classic-individual": (CLASSIC, "individualDeadLetterStrategy has a prefix for queues and topics, by wildcards"),
    "classic-expired": (CLASSIC, "expired messages become dead letters unless processExpired is false"),
    "classic-non-persistent": (CLASSIC, "non-persistent messages do only with processNonPersistent=true"),
    "classic-discarding": (
        CLASSIC,
        "the discarding plug-in drops everything, or what names or regular expressions match as a whole, and reports "
        "every reportInterval drops (0: never)",
    ),
    "classic-broker-redelivery": (
        CLASSIC,
        "redeliveryPlugin sends again by the scheduler, with a policy for each destination",
    ),
    "classic-fallback": (CLASSIC, "fallbackToDeadLetter (true) says what becomes of a message without a policy"),
    "classic-exceeded": (CLASSIC, "sendToDlqIfMaxRetriesExceeded (true); false drops it"),
    "classic-order": (CLASSIC, "broker redelivery gives up the order, for throughput"),
    "classic-scheduler": (CLASSIC, "redeliveryPlugin needs schedulerSupport"),
    "seen-artemis-delays": (SEEN, "Artemis and HornetQ: 500, twice, at most 1500 is 500, 1000, 1500, 1500"),
    "seen-artemis-total": (SEEN, "Artemis and HornetQ: attempts are deliveries in all; -1 and 0 are endless"),
    "seen-artemis-maximum": (SEEN, "Artemis and HornetQ: the maximum delay is ten times the delay where it is not set"),
    "seen-artemis-merge": (SEEN, "Artemis and HornetQ: settings merge field by field"),
    "seen-artemis-order": (SEEN, "Artemis: `orders.#` covers `orders`, and `stock.*` comes before `stock.#`"),
    "seen-artemis-unbound": (SEEN, "Artemis: removed without a dead-letter address, or with one that has no queue"),
    "seen-artemis-cap": (SEEN, "Artemis: the maximum comes after collision avoidance, which never exceeds it"),
    "seen-artemis-refused": (SEEN, "Artemis: a collision avoidance factor of 1.5 is refused (AMQ229228)"),
    "seen-artemis-suffix": (SEEN, "Artemis: prefix and suffix are as written; `DLA::stocks.DLQ` reads such a queue"),
    "seen-artemis-again": (
        SEEN,
        "Artemis: what fails in a queue that was made for dead letters goes to `DLA::DLQ.DLA`, where it comes back as "
        "its own dead letter without an end",
    ),
    "seen-artemis-early": (
        SEEN,
        "Artemis: a consumer of `DLQ.orders` that comes before the first dead letter makes a queue of that name with "
        "an address of its own, and the dead letters of `orders` are lost",
    ),
    "seen-hornetq-expiry": (SEEN, "HornetQ has `expiry-delay`, which its document does not name"),
    "seen-classic-plugin-count": (SEEN, "Classic: maximumRedeliveries=3 of the redelivery plug-in is 4 deliveries"),
    "seen-classic-plugin-endless": (
        SEEN,
        "Classic: maximumRedeliveries=-1 of the redelivery plug-in is without an end",
    ),
    "seen-classic-plugin-exponential": (
        SEEN,
        "Classic: delays of the redelivery plug-in grow with useExponentialBackOff, up to maximumRedeliveryDelay",
    ),
    "seen-classic-plugin-expired": (SEEN, "Classic: what expires is a dead letter at once, also with that plug-in"),
    "seen-classic-refused": (
        SEEN,
        "Classic does not start with the redelivery plug-in without schedulerSupport, or with a delay under 1000",
    ),
    "seen-classic-gone": (SEEN, "Classic: fallbackToDeadLetter=false without a policy: the message is gone"),
    "seen-classic-whole-name": (SEEN, "Classic: dropOnly matches the whole original name, dots are any character"),
    "seen-classic-topic": (SEEN, "Classic: with useQueueForQueueMessages=false a dead letter goes to a topic"),
    "seen-classic-loop": (SEEN, "Classic: an individual strategy on `>` sends what fails on DLQ.x to DLQ.DLQ.x"),
    "seen-broker-j-maximum": (SEEN, "Broker-J: a maximum of 3 is 3 deliveries, and 0 of a queue turns it off"),
    "seen-broker-j-levels": (SEEN, "Broker-J: the queue comes before the virtual host, and that before the broker"),
    "seen-broker-j-discarded": (SEEN, "Broker-J: discarded without an alternate binding"),
    "seen-broker-j-this-name": (SEEN, "Broker-J: `${this:name}` in queue.defaultAlternateBinding does not route"),
    "seen-broker-j-closing": (SEEN, "Broker-J: a closed or lost connection counts, for prefetched messages too"),
}

# What stands in a column of the table beside, or instead of, tests.
NOTES: Final[dict[str, dict[str, str]]] = {
    "artemis-journal-records": {
        "embedded": "advice about Artemis' journal, not behaviour: the embedded broker's store has no such records"
    },
    "qpid-maximum": {"real": "Broker-J, where `alternateBinding` names the dead-letter queue:"},
    "qpid-rollback-only": {
        "real": "not there any more: Broker-J counts the end of a connection too, which is a row of its own below"
    },
    "artemis-auto-created": {
        "real": "by its name as a queue, as long as no queue of that name has another address, which is a row of its "
        "own below:"
    },
    "qpid-reject-behaviour": {
        "embedded": "a setting of AMQP 0-x clients; the embedded broker speaks AMQP 1.0 and STOMP",
        "real": "not run: no client here speaks AMQP 0-x",
    },
    "qpid-stock-ticker": {"real": "the old broker cannot be had; Broker-J's maximum is a row of its own"},
    "qpid-depth": {"real": "`redelivery doctor`, which warns of it on any broker"},
    "classic-preferred-policy": {
        "values": "the client's own policy counts, whatever the broker's file says: `redelivery policy simulate FILE "
        "DESTINATION --client URL` shows both",
        "embedded": "not there: only OpenWire has such a command, and STOMP and AMQP 1.0 have none",
        "real": "not there over STOMP and AMQP 1.0",
    },
    "qpid-names": {
        "embedded": "the queue only: an exchange is AMQP 0-x's, and the embedded broker has none:",
        "real": "not there any more: Broker-J has no `deadLetterQueues`, an `alternateBinding` has any name",
    },
    "qpid-arguments": {"real": "not run: Broker-J reads them where a queue is declared over AMQP 0-9-1 or 0-10 only"},
    "qpid-levels": {"real": "Broker-J, with a queue over its virtual host:"},
}
