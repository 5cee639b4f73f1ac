"""The form of the tables for AMQP 1.0. A field says what the broker does, or which word it uses; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass

from redelivery.model.capabilities import Capabilities


@dataclass(frozen=True, slots=True)
class DepthQuestion:
    """The question for the number of messages on a queue: a message, whose answer comes to its ``reply_to``.

    Attributes:
        address: where it is sent.
        properties: of it; ``{queue}`` in a value stands for the queue's name.
        body: of it.
        path_separator: what stands before it in a queue's name is no part of the name; empty: all of it is.
        success: the property that only an answer with a result has, and its value.
        field: where in the answer's map the number stands; None: the answer is a JSON array of it.
    """

    address: str
    properties: tuple[tuple[str, str], ...]
    body: str | dict[str, object]
    success: tuple[str, object]
    path_separator: str = ""
    field: str | None = None


@dataclass(frozen=True, slots=True)
class ReturnLimits:
    """Queues that count how often a message goes back to them, and give it up beyond a limit.

    Attributes:
        kind: what their ``type`` is called.
        limit: the argument of a queue that sets it; without ``x-``, the key of a policy.
        exchange, key: the same, of where the message goes then; without the first it is deleted.
        usual: the limit where nothing sets one.
        said: parts of a refusal by which a queue may be one of them.
        exchange_said: a regular expression whose first group is the exchange that a refusal says.
    """

    kind: str
    limit: str
    exchange: str
    key: str
    usual: int
    said: tuple[str, ...]
    exchange_said: str


@dataclass(frozen=True, slots=True)
class OperationsNode:
    """A management node whose operations are called by name, with their arguments in JSON; so it makes queues.

    Attributes:
        address: where it is asked.
        properties: of each question; ``operation`` is the one that names the operation.
        succeeded: of an answer, the property that is true where it did it.
        exists: how the refusal begins that a queue is there already.
        forbidden: a part of the refusal of who may not.
    """

    address: str
    properties: tuple[tuple[str, str], ...]
    operation: str
    succeeded: str
    exists: str
    forbidden: str


@dataclass(frozen=True, slots=True)
class EntityNode:
    """A management node of entities with types and attributes (AMQP Management, working draft 9); so it makes queues.

    Attributes:
        address: where it is asked.
        queue: the type of a queue's entity.
        kind: the attribute that says which kind of queue it is.
        limit: the attribute of how often a message is delivered before it is a dead letter; 0: no limit.
        letters: the attribute of where dead letters go, a map; destination: the key in it.
        needed: a part of the refusal to delete what something else needs.
    """

    address: str
    queue: str
    kind: str
    limit: str
    letters: str
    destination: str
    needed: str


@dataclass(frozen=True, slots=True)
class Spellings:
    """The spellings of a broker's own clients for what is no queue's or topic's name here.

    Attributes:
        queues: what stands before the name of a queue, which is not made then.
        exchanges: what stands before an exchange, and a slash and a routing key behind that.
        encoded: those of them behind which all is percent-encoded; behind the others a slash is.
    """

    queues: tuple[str, ...]
    exchanges: tuple[str, ...]
    encoded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AmqpDialect:
    """AMQP 1.0 as one broker means it; the defaults are the safest meaning.

    Attributes:
        capabilities: what the sessions may ask for.
        queue_prefix, topic_prefix: how a destination's address is written.
        existing_queue_prefix: how others may write that of a queue; empty: not otherwise.
        exchange_prefix: how the address of an exchange begins.
        spellings: names that mean what they mean to the broker's own clients; None: each name is a name.
        makes_queues: the broker may make a queue that is used and is not there, whatever a client asks for.
        other_queue_refusal: a part, in lower case, of what is said of an address that makes a queue where there is one
            with other arguments: that one is then written with ``existing_queue_prefix``. Empty: none are refused.
        any_words: the wildcard for any further words.
        queue_capability, topic_capability: of the terminus; None: the address says it all.
        temporary_queue_capability, temporary_topic_capability: of a dynamic node; None: there are none.
        default_prefetch: the credit where the application asks for none.
        most_credit: more than this at once makes the broker stop; 0: no limit.
        durable_nodes: a queue that a link makes outlives the broker only where its terminus says so.
        topic_waits_for_credit: what is published to a topic before its consumer has given credit is not for it.
        rejected_is_poison: the outcome `rejected` surely dead-letters (elsewhere it only counts, or deletes).
        expires_released: what has expired and is released goes where the broker puts what expires.
        bare_rejection: what it means that a message is rejected without a reason: there is no room; empty: nothing.
        released_is_unrouted: a send is answered with `released` where no queue takes it.
        modified: the outcome `modified` is understood; otherwise `released` stands for it.
        drain: a drained link is answered.
        drain_overlaps: a drain may be answered by the end of the one before, or missed while that ends.
        redelivered_by_first_acquirer: `first-acquirer=false` says what was delivered before, not by the count.
        session_per_link: a refused link ends its whole session, so that each needs one of its own.
        session_end_counts: a delivery is counted as failed only where its whole session ends (then all of the session
            are), so that a consumer's needs one of its own, and the broker's count is an upper bound.
        end_drops_answers: with the end of a session goes what the broker has not written of it, the answer too.
        end_waits_for_senders: the end of a session that has sending links is answered late, unless they are detached.
        keeps_sessions: the beginning of a session is missed where one of the same channel has just ended, so that
            sessions without links are kept for others and not ended.
        percent_encoded: names in addresses are percent-encoded.
        slash: how a slash in a name is written.
        management: queues are looked up, and made where there is none, at the broker's management node: addresses make
            none, and a queue is taken as it is. A topic's consumer has a queue that is made there, as temporary ones.
        queues: the management node of another kind by which queues are made; None: there is none.
        count_annotation: of a message, how often it was delivered before and failed, where the queue counts.
        limits: what such queues do beyond a limit; None: there are none, or they have no limit that nobody has set.
        stream: what the ``type`` of a queue is called that keeps what is consumed; empty: there is none.
        counted_prefetch: the credit of such a queue's consumer where the application asks for none: whatever goes back
            counts, also what was prefetched only; 0: as of any.
        exclusive_option: stands behind the address of a consumer that keeps a queue to itself; empty: there is none.
        origin_prefix: of the annotations that say where a dead letter of the broker's own came from; None: it has none.
        delay_annotation: of a message, when it may be delivered; None: not supported.
        delay_is_time: that annotation is a point of time in epoch milliseconds, not a delay.
        depth: how the depth of a queue is asked for; None: the broker does not know, or not surely.
        duplicate_refusal: a part of what the broker says when it refuses a transaction for a message of which it has
            the duplicate id, and for nothing else; None: it does not refuse it, or does not say why.
        durable_no_local: a durable subscription with no_local is the same one when its consumer is there again.
        finds_global: a shared durable subscription that is of no client id is found by the name of its link alone (the
            look-up wants a capability of the link's own, which proton cannot write).
        unsupported: why this broker's AMQP cannot be used at all; None: it can.
    """

    capabilities: Capabilities
    queue_prefix: str = ""
    topic_prefix: str = ""
    existing_queue_prefix: str = ""
    exchange_prefix: str = ""
    spellings: Spellings | None = None
    makes_queues: bool = True
    other_queue_refusal: str = ""
    any_words: str = ">"
    queue_capability: str | None = "queue"
    topic_capability: str | None = "topic"
    temporary_queue_capability: str | None = "temporary-queue"
    temporary_topic_capability: str | None = "temporary-topic"
    default_prefetch: int = 100
    most_credit: int = 0
    durable_nodes: bool = False
    topic_waits_for_credit: bool = False
    rejected_is_poison: bool = False
    expires_released: bool = False
    bare_rejection: str = ""
    released_is_unrouted: bool = False
    modified: bool = True
    drain: bool = True
    drain_overlaps: bool = False
    redelivered_by_first_acquirer: bool = False
    session_per_link: bool = False
    session_end_counts: bool = False
    end_drops_answers: bool = False
    end_waits_for_senders: bool = False
    keeps_sessions: bool = False
    percent_encoded: bool = False
    slash: str = "/"
    management: bool = False
    queues: OperationsNode | EntityNode | None = None
    count_annotation: str | None = None
    limits: ReturnLimits | None = None
    stream: str = ""
    counted_prefetch: int = 0
    exclusive_option: str = ""
    origin_prefix: str | None = None
    delay_annotation: str | None = None
    delay_is_time: bool = False
    depth: DepthQuestion | None = None
    duplicate_refusal: str | None = None
    durable_no_local: bool = True
    finds_global: bool = False
    unsupported: str | None = None
