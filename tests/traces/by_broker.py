"""The differences that come from a broker or a protocol, each for many scenarios: what they know, count and do.

The groups of targets differ in this:

| targets | what a consumer that closes releases |
|---|---|
| STOMP on ActiveMQ Classic and the embedded broker; RabbitMQ | all of it as delivered before, what nobody saw too |
| STOMP on Artemis and HornetQ | all of it as new |
| AMQP elsewhere | what was delivered, as delivered before |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.conformance.pairs import ON

# Targets. Those that send copies of their own as dead letters are all but the first three of STOMP and vm.
FLAGGED: Final = ("stomp-activemq", "stomp-activemq-copy", "stomp-embedded", "stomp-rabbitmq", "amqp-rabbitmq")
AS_NEW: Final = ("stomp-artemis", "stomp-hornetq")
AMQP: Final = ("amqp-embedded", "amqp-activemq", "amqp-artemis", "amqp-qpid")
STOMP: Final = ("stomp-activemq", "stomp-activemq-copy", "stomp-embedded", "stomp-rabbitmq", *AS_NEW)
COPIES: Final = (*AS_NEW, "stomp-rabbitmq", "amqp-activemq", "amqp-artemis", "amqp-qpid", "amqp-rabbitmq")
REAL: Final = ("stomp-activemq", *COPIES)
EMBEDDED: Final = ("stomp-embedded", "amqp-embedded")

# What these do is stated under the name of another one, which does the same.
ALIKE: Final[Mapping[str, str]] = {"stomp-rabbitmq4": "stomp-rabbitmq", "amqp-rabbitmq4": "amqp-rabbitmq"}

# What is as recorded there on RabbitMQ 4.3, whose classic queues count: the tables are of 4.0, which has a flag.
COUNTED: Final[Mapping[str, frozenset[str]]] = {
    f"amqp-rabbitmq4{ON}4.3": frozenset(
        (
            *("client-session-close-limit", "client-recover-limit-after-session-close"),
            *("kill-client", "predispatch-auto-mode"),
        )
    )
}

# why, what happens instead, targets, scenarios
Row = tuple[str, str, tuple[str, ...], str]

ROWS: Final[tuple[Row, ...]] = (
    (
        "counts",
        "what a closed consumer releases comes as a new message: the broker counts only what a lost connection held",
        AS_NEW,
        """
        client-ack-after-session-close client-ack-after-connection-close
        individual-stale-ack-after-recover individual-listener-throw
        listener-client-throw-close
        listener-close-throw-inside connection-close-poison close-prefetched
        predispatch-off predispatch-limit-not-over predispatch-auto-mode predispatch-prefetch-0 predispatch-nowait
        predispatch-unlimited predispatch-inside-transaction client-poison-nonblocking listener-error-client
        stop-start-during-delay-client two-connections-alternate listener-set-on-other-consumer-during-delay
        artemis-openwire-predispatch
        """,
    ),
    (
        "counts",
        "of a count from the broker only a flag arrives, which counts as 2",
        (*FLAGGED, *AS_NEW),
        """
        client-session-close-limit client-recover-limit-after-session-close kill-no-predispatch kill-client
        predispatch-off predispatch-auto-mode predispatch-unlimited
        """,
    ),
    (
        "counts",
        "without a count a limit cannot be reached across sessions; within a session it holds",
        AS_NEW,
        "session-close-poison artemis-openwire-session-close",
    ),
    (
        "counts",
        "without a count a limit cannot be reached across sessions; within a session it holds",
        FLAGGED,
        """
        session-close-poison connection-close-poison predispatch-prefetch-0 predispatch-nowait
        predispatch-inside-transaction
        """,
    ),
    (
        "counts",
        "when a subscription ends, the broker marks what it had only prefetched as redelivered, too",
        FLAGGED,
        """
        start-again-during-delay listener-close-inside two-sessions-independent dups-ok-receive-close
        consumer-close-rollback consumer-close-rollback-poison consumer-close-during-delay
        consumer-close-unreceived session-close-uncommitted close-prefetched closed-operations selector-delivery-count
        client-ack-after-consumer-close listener-close-throw-inside listener-set-on-other-consumer-during-delay
        stop-start-during-delay-commit-each
        """,
    ),
    (
        "counts",
        "when a subscription ends, the broker marks what it had only prefetched as redelivered, too",
        ("stomp-embedded", "amqp-activemq"),
        "topic-durable-close-reopen",
    ),
    (
        "counts",
        "what a durable subscription releases comes without a flag",
        ("stomp-activemq", "stomp-artemis"),
        "topic-durable-close-reopen",
    ),
    (
        "copies",
        "a copy has an id of its own, so each subscription leaves one",
        ("stomp-activemq-copy", "stomp-artemis", "amqp-activemq", "amqp-artemis", "amqp-qpid"),
        "topic-two-durables-poison",
    ),
    (
        "copies",
        "a poisoned message of a topic leaves a copy, too",
        ("vm", *EMBEDDED, *REAL),
        "topic-dups-ok-listener-throw topic-auto-listener-throw",
    ),
    (
        "copies",
        "a connection has one strategy, so the dead letter of a dead letter goes one queue on",
        ("stomp-activemq-copy", *COPIES),
        "poison-on-the-individual-dlq",
    ),
    (
        "copies",
        "a non-persistent message is dropped, as the strategy says",
        AMQP + AS_NEW,
        "artemis-openwire-non-persistent",
    ),
    (
        "broker",
        "it has no consumers of a pattern of queues: UnsupportedError",
        (*AS_NEW, "stomp-rabbitmq", "amqp-artemis", "amqp-qpid"),
        "policy-wildcard-consumer wildcard-consumer-dlq",
    ),
    (
        "broker",
        "it has no composite queues: UnsupportedError",
        (*AS_NEW, "stomp-rabbitmq", "amqp-artemis", "amqp-qpid"),
        "composite-send-poison",
    ),
    ("broker", "it has no selectors: UnsupportedError", ("stomp-rabbitmq",), "selector-delivery-count"),
    (
        "broker",
        "what expires before a delivery is the broker's to put away, not in our dead-letter queue",
        COPIES,
        "expired-on-queue",
    ),
    (
        "broker",
        "the selector sees the broker's own count, or none",
        (*AS_NEW, "amqp-artemis", "amqp-qpid"),
        "selector-delivery-count",
    ),
    ("broker", "a browser does not see what a consumer holds", ("amqp-artemis", "amqp-qpid"), "browse-during-delay"),
    ("broker", "it delivers by priority", (*AS_NEW, "amqp-artemis"), "priority-supported-batch-rollback"),
    (
        "STOMP",
        "the NACK of an expired or poisoned message becomes a dead letter without a cause",
        ("stomp-embedded",),
        "forward-from-dlq",
    ),
    (
        "STOMP",
        "the NACK of an expired message becomes a dead letter without a cause",
        ("stomp-embedded",),
        "expired-prefetched expired-in-hand-rollback expired-during-delay expired-during-delay-nonblocking",
    ),
    ("copies", "a copy says where it comes from", (*AS_NEW, "amqp-artemis"), "artemis-openwire-max-1"),
    (
        "rule",
        "the limit is not checked where the broker charges prefetched messages, unless preDispatchCheck is asked for",
        AMQP,
        """
        predispatch-prefetch-0 predispatch-nowait predispatch-inside-transaction artemis-openwire-predispatch
        qpid-max-1-prefetched-unseen
        """,
    ),
    (
        "counts",
        "it counts what was only prefetched, too, when a session ends",
        ("amqp-activemq",),
        """
        consumer-close-rollback consumer-close-during-delay session-close-uncommitted
        close-prefetched selector-delivery-count listener-close-throw-inside
        """,
    ),
    (
        "counts",
        "its count charges what nobody saw, and so is a flag, which counts as 2, but for what this process released",
        ("amqp-activemq",),
        "kill-no-predispatch kill-client qpid-max-1-prefetched-unseen",
    ),
    ("copies", "a copy says where it comes from", ("amqp-artemis",), "artemis-openwire-session-close"),
    (
        "copies",
        "the message over the limit is a dead letter at its last rollback",
        ("amqp-activemq", "amqp-artemis", "amqp-qpid"),
        "qpid-max-1-persistent-default",
    ),
    (
        "Qpid",
        "the message over the limit is a dead letter at its last rollback",
        ("amqp-embedded",),
        "qpid-max-1-persistent-default",
    ),
    (
        "copies",
        "a non-persistent message is dropped, as the strategy says",
        ("amqp-artemis", "amqp-qpid"),
        "qpid-max-0",
    ),
    (
        "Qpid",
        "the broker does not count it: its limit is not reached",
        AMQP,
        "qpid-artemis-ten-attempts qpid-brokerj-max3",
    ),
    (
        "Qpid",
        "an AUTO listener's message is redelivered with a count, and reaches the limit",
        AMQP,
        "qpid-listener-auto-throw-max-1",
    ),
    (
        "Qpid",
        "what was delivered counts, what was not does not",
        ("amqp-embedded", "amqp-activemq"),
        "qpid-consumer-close-rollback",
    ),
    (
        "Qpid",
        "what was only prefetched is released before the close",
        ("amqp-embedded", "amqp-qpid"),
        "qpid-session-close",
    ),
    ("Qpid", "the message comes twice, and counts twice", ("amqp-qpid",), "qpid-listener-client-throw"),
    ("STOMP", "no more unacknowledged messages come than the prefetch says", STOMP, "batch-prefetch-1-individual"),
)

# The same, where it may also go as recorded.
CHANCES: Final[tuple[Row, ...]] = (
    (
        "counts",
        "whether a lost connection raises the count of what it held is up to how it was lost",
        AS_NEW,
        "kill-prefetched",
    ),
    (
        "fault",
        "a transaction gets every message, whatever the prefetch",
        ("stomp-rabbitmq",),
        "batch-prefetch-1-commit-frees",
    ),
    (
        "broker",
        "which consumer is given which message is up to the broker",
        ("stomp-hornetq", "amqp-artemis", "amqp-activemq"),
        "two-consumers-one-session-same-queue",
    ),
    ("broker", "which consumer is given which message is up to the broker", AS_NEW, "group-during-delay"),
    (
        "broker",
        "two sessions are two connections: a broker may handle an ACK after a SUBSCRIBE that was written later",
        STOMP,
        "second-consumer-during-delay",
    ),
    ("broker", "which of two queues is delivered first is up to the broker", REAL, "listener-two-consumers"),
)
