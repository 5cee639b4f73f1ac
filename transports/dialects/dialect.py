"""The form of the tables. A field says what the broker does, or which word it uses; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.amqp import AmqpDialect, ReturnLimits, Spellings

Headers: TypeAlias = tuple[tuple[str, str], ...]

ALL_KINDS: Final = frozenset(("text", "bytes", "map", "stream", "none"))
# Of the STOMP specification: never an application's property, on any broker.
STOMP_HEADERS: Final = frozenset(
    (
        "ack",
        "content-length",
        "destination",
        "heart-beat",
        "id",
        "message-id",
        "receipt",
        "receipt-id",
        "redelivered",
        "subscription",
        "transaction",
    )
)
# What JMS keeps in headers, as STOMP brokers write it.
JMS_HEADERS: Final = frozenset(
    (
        *("JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq"),
        *("correlation-id", "expires", "persistent", "priority", "reply-to", "timestamp", "type"),
    )
)


@dataclass(frozen=True, slots=True)
class StompTemporaries:
    """The form of temporary destinations in a broker's STOMP.

    Attributes:
        queue, topic: what stands before the name, for every connection; ``topic`` empty: there are no topics.
        made_queue, made_topic: the same in the SUBSCRIBE that makes one. The maker's own MESSAGEs may have it, too.
        headers: of that SUBSCRIBE.
        named_by_session: the broker's name is the header ``session`` of CONNECTED, a colon, and a number for each made
            by that socket, from 1; otherwise the name is ours.
    """

    queue: str
    topic: str = ""
    made_queue: str = ""
    made_topic: str = ""
    headers: Headers = ()
    named_by_session: bool = False


@dataclass(frozen=True, slots=True)
class AddressQuestion:
    """The way to ask a broker over STOMP which queues its addresses have: messages to its management.

    Attributes:
        node: where they go.
        answers: the address where the answers come; ``reply_to``: how a question says it.
        consume: headers of the SUBSCRIBE there.
        headers: of each question; ``operation``: the header that says what is asked.
        succeeded: the header of an answer, which is ``true`` where there is one.
        takes_nothing: headers of a SUBSCRIBE to which nothing is delivered.
        unnamed: a part of what refuses a queue without a name, on an address where this user may make one.
        attach_failed: a part of what refuses a consumer of a queue that is not there, and is not made.
    """

    node: str
    answers: str
    reply_to: str
    consume: Headers
    headers: Headers
    operation: str
    succeeded: str
    takes_nothing: Headers
    unnamed: str
    attach_failed: str


@dataclass(frozen=True, slots=True)
class StompDialect:
    """STOMP as one broker means it; the defaults are the safest meaning.

    Attributes:
        capabilities: what the sessions may ask for.

        queue_prefix, topic_prefix: how a destination is written.
        existing_queue_prefix: how that of a queue is written that is there, with whatever arguments; empty: as any.
        exchange_prefix, spellings, makes_queues: see `AmqpDialect`.
        impossible: headers with which a queue is never made, so that a refusal says whether it is there.
        absent_refusal: a part, in lower case, of what is said then where it is not.
        other_queue_refusal: a part, in lower case, of what is said where ``queue_prefix`` would make a queue that is
            there with other arguments; empty: nothing is.
        percent_encoded: in MESSAGE the name after the prefix is percent-encoded; in other frames a slash in it is.
        any_words: the wildcard for any further words.
        send_to_queue, send_to_topic: headers of SEND by which the broker knows which it is.
        consume_queue, consume_topic: the same of SUBSCRIBE.
        addresses: how to ask which queues an address has, where ``send_to_queue`` makes one of its name beside those
            that it has; None: a name is a queue.
        splits_qualified: it knows no ``address::queue``: a SEND goes to an address, and a SUBSCRIBE takes from a queue.
        reply_to_is_uri: ``reply-to`` is written ``queue://name``, since the name alone does not say what it is.
        virtual_host: the one to name in CONNECT where the URL says nothing; None: the host of the URL.
        virtual_host_refused: what an ERROR says that answers CONNECT and means that there is no such virtual host.
        sessions_per_wire: how many sessions of a connection may share a socket; 0: any number.
        temporaries: how it has temporary destinations; None: it has none, and ``no_temporaries`` says why.

        owned_headers: headers of MESSAGE that are the broker's or JMS's own, and so no properties.
        owned_prefixes: the same, for all names that begin so: neither shown nor sent again.
        requests: of these, properties that an application may send all the same: they ask the broker for something.
        origin_prefix: names that begin so are shown, on what the broker dead-lettered, but not sent again.
        binary_headers: headers of MESSAGE whose names begin so hold another protocol's bytes, and are not read.
        length_is_bytes: MESSAGE has content-length exactly where the body is bytes.
        opaque_bodies: the broker does not look into bodies: what is text is said by the content type of its sender, and
            without one it is text.
        sections_type: the header `type` of a MESSAGE whose body is the sections of an AMQP one, as they are encoded.
        kind_header: of MESSAGE, the body's kind as a JMS client over AMQP has named it; None: nothing says it.
        max_body: bytes from which a body is confirmed and then lost; 0: there is no such limit.
        longest_text: bytes, two for a character, from which a str is sent as bytes, with its kind, since the broker
            would confirm it and lose it; 0: there is no such limit.
        max_header: bytes of one header's line (name, colon and value, as they are written) beyond which the broker ends
            the connection; 0: there is no such limit.
        max_headers: the same, of the number of headers of one frame.
        max_frame: bytes of a frame from which the broker ends the connection; 0: there is no such limit.
        frame_setting: what that is called in its configuration.
        amqp_bodies: what came over AMQP 1.0 arrives as AMQP's bytes; this says to the user what follows; None: it does
            not.
        map_transformation: the value of ``transformation`` by which a map is its JSON; None: there are no maps.
        maps_lacking: what a broker lacks that closes the connection at that header, and what to do; empty: none does.
        count_header: of MESSAGE, how often it was delivered before; None: there is only ``redelivered``.
        limits, counted_prefetch: of queues that count what goes back to them: see `AmqpDialect`.
        stream: the same; a refusal says it in quotes.
        message_id_header: where the sender's own id stands, which comes before the broker's; None: nowhere.
        makes_message_ids: we make that id at SEND, since the broker has none.
        message_id_separator: of ``message-id``, what stands after it stays the same when the message is delivered
            again; empty: all of it.
        group_header: of MESSAGE; SEND has ``JMSXGroupID``.
        group_sequence_header: of both.
        says_persistent: MESSAGE has ``persistent:true`` where the message is; elsewhere SEND says what it is not.
        timestamp_unit: milliseconds that one unit of ``timestamp`` stands for, where SEND must have it (others may
            have written milliseconds all the same); 0: the broker sets it, in milliseconds.
        expiration_header: of SEND, milliseconds until it expires, where the broker ignores ``expires``.
        delay_header: of SEND, milliseconds before it may be delivered; None: not supported.
        delay_is_time: that is a point of time in epoch milliseconds instead.

        prefetch_header: of SUBSCRIBE, the window; None: there is none.
        prefetch_unit: what the window counts: 1 for messages; more for bytes, and a message of a prefetch stands for
            so many (a prefetch of 1 is 1 byte: then one message at a time is sent).
        unlimited_window: the header's value for no window at all.
        fixed_window: the window where no header sets it, in the same unit.
        default_prefetch: the window in messages where the application asks for none.
        default_window: the same in the unit of the window, where that says more; 0: it follows from the messages.
        needs_extra_subscription: a queue's consumer whose window is used up by what the application holds gets a
            further subscription, since no ACK may leave earlier. (For a topic that would be a second subscriber.)
        unsubscribe_keeps: UNSUBSCRIBE gives nothing back before the connection ends, but for what is NACKed under a
            subscription of the same id: this is a destination for it on which nothing comes.
        no_local_header: of SUBSCRIBE; None: not supported.
        exclusive_header: the same, of a consumer that keeps a queue to itself.
        subscription_header: of SUBSCRIBE, the name of a durable subscription, and of the UNSUBSCRIBE that removes it.
        shared_headers: of SUBSCRIBE, beside it, where the subscription is shared; volatile_headers: where not durable.
        shared_needs_client_id: a subscription that belongs to none is no shared durable one.
        subscription_changes: a consumer of another topic or selector makes it a new one; elsewhere it must be removed
            before.
        selector_prefix: stands before every selector.
        selector_names: JMS's names in a selector that the broker calls otherwise.

        acks_topics_itself: an ACK names a message and not a consumer, so that of two consumers of a topic on one socket
            only one can acknowledge it: they subscribe with ``ack:auto``. (What a consumer that is no durable
            subscription's has not acknowledged is lost with it in any case.)
        acks_browsers_itself: browsers subscribe with ``ack:auto``, as an ACK of some messages ends the connection.
        ack_key: the header of MESSAGE whose value an ACK names, as ``b"\\nname:"``.
        ack_in_transaction: an ACK in a transaction is undone by ABORT and atomic with the SENDs. Otherwise it is
            held back until the COMMIT is confirmed.
        enlist_at_most: deliveries dispatched and not in the transaction that make their ACKs enter it before the
            commit, so that the broker goes on; bounded by half the window. 0: acks enter at the commit only.
        lone_ack_commits: an ACK outside a transaction is answered when it is done, or refused and undone, and the
            answer names it: a commit of one delivery and nothing else is that ACK.
        nack_is_poison: NACK dead-letters (surely: `Capabilities.native_poison`; or where the broker is set up for it).
        nack_headers: of such a NACK.
        parks: an ACK in a transaction that is aborted later frees the window meanwhile.
        commit_ends_parking: a COMMIT makes every delivery of the socket that is acknowledged in any open transaction
            unknown, so that nothing else may be enlisted or parked then.
        receipt_starves_patterns: a consumer of a pattern, or of `a,b`, that asks for a receipt gets nothing of what is
            there.
        receipt_in_transaction: a SEND in a transaction is answered at once, not at the commit.
        releases_as_new: what goes back at UNSUBSCRIBE comes with ``redelivered:false``, though it was delivered.
        commit_confirms_sends: the answer to COMMIT says that every SEND in it is done. Otherwise each SEND is answered
            after it, and may be refused while others are not.
        error_names_receipt: an ERROR says which request it answers.
        error_closes: an ERROR ends the connection.
        closes_silently: for what, during a request, it ends the connection without an ERROR; empty: for nothing known.
        silence_limit: seconds without a byte from us after which it ends the connection, agreed or not; 0: no limit.
    """

    capabilities: Capabilities
    queue_prefix: str = "/queue/"
    topic_prefix: str = "/topic/"
    existing_queue_prefix: str = ""
    exchange_prefix: str = ""
    spellings: Spellings | None = None
    makes_queues: bool = True
    impossible: Headers = ()
    absent_refusal: str = ""
    other_queue_refusal: str = ""
    percent_encoded: bool = False
    any_words: str = ">"
    send_to_queue: Headers = ()
    send_to_topic: Headers = ()
    consume_queue: Headers = ()
    consume_topic: Headers = ()
    addresses: AddressQuestion | None = None
    splits_qualified: bool = False
    reply_to_is_uri: bool = False
    virtual_host: str | None = None
    virtual_host_refused: str | None = None
    sessions_per_wire: int = 0
    temporaries: StompTemporaries | None = None
    no_temporaries: str = "none are known of this broker"
    owned_headers: frozenset[str] = STOMP_HEADERS
    owned_prefixes: tuple[str, ...] = ()
    requests: frozenset[str] = frozenset()
    origin_prefix: str | None = None
    binary_headers: bytes = b""
    length_is_bytes: bool = False
    opaque_bodies: bool = False
    sections_type: str | None = None
    kind_header: str | None = None
    max_body: int = 0
    longest_text: int = 0
    max_frame: int = 0
    frame_setting: str = ""
    amqp_bodies: str | None = None
    max_header: int = 0
    max_headers: int = 0
    map_transformation: str | None = None
    maps_lacking: str = ""
    count_header: str | None = None
    limits: ReturnLimits | None = None
    stream: str = ""
    counted_prefetch: int = 0
    message_id_header: str | None = None
    makes_message_ids: bool = False
    message_id_separator: str = ""
    group_header: str = "JMSXGroupID"
    group_sequence_header: str = "JMSXGroupSeq"
    says_persistent: bool = True
    timestamp_unit: int = 0
    expiration_header: str | None = None
    delay_header: str | None = None
    delay_is_time: bool = False
    prefetch_header: str | None = None
    prefetch_unit: int = 1
    unlimited_window: str | None = None
    fixed_window: int = 0
    default_prefetch: int = 100
    default_window: int = 0
    needs_extra_subscription: bool = False
    unsubscribe_keeps: str | None = None
    no_local_header: str | None = None
    exclusive_header: str | None = None
    subscription_header: str = ""
    shared_headers: Headers = ()
    volatile_headers: Headers = ()
    shared_needs_client_id: bool = False
    subscription_changes: bool = True
    selector_prefix: str = ""
    selector_names: Headers = ()
    acks_topics_itself: bool = False
    acks_browsers_itself: bool = False
    ack_key: bytes = b"\nack:"
    ack_in_transaction: bool = False
    enlist_at_most: int = 0
    lone_ack_commits: bool = False
    nack_is_poison: bool = False
    nack_headers: Headers = ()
    parks: bool = False
    commit_ends_parking: bool = False
    receipt_starves_patterns: bool = False
    receipt_in_transaction: bool = False
    releases_as_new: bool = False
    commit_confirms_sends: bool = True
    error_names_receipt: bool = False
    error_closes: bool = False
    closes_silently: str = ""
    silence_limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Dialect:
    """One broker.

    Attributes:
        name: as in ``dialect=``.
        provider: as in the connection's metadata.
        server_prefix: how its STOMP header ``server`` begins, before the version; empty: it is never detected.
        product: what its AMQP connection calls itself (the property ``product``); empty: it is not detected by that.
        anonymous: its AMQP connection has no ``product``, and an empty container id and host name, which others that
            say nothing leave out.
        stomp: its STOMP; None: it has none.
        amqp: its AMQP 1.0; None: it has none.
        stomp_since, amqp_since: the same of later versions, the newest first, each with that which it begins with.
        queue_of_topic: a queue that the broker fills from a topic, as its users write it; None: there is no such name.
        counted_properties: of a message, what the broker changes with each delivery; not a part of what was sent.
        virtual_host: how AMQP's open names one of its virtual hosts, with ``{}`` for the name, which STOMP writes as it
            is; empty: it has none.
        system: what OpenTelemetry's semantic conventions call it (``messaging.system``).
    """

    name: str
    provider: str
    server_prefix: str = ""
    product: str = ""
    anonymous: bool = False
    stomp: StompDialect | None = None
    amqp: AmqpDialect | None = None
    stomp_since: tuple[tuple[tuple[int, ...], StompDialect], ...] = ()
    amqp_since: tuple[tuple[tuple[int, ...], AmqpDialect], ...] = ()
    queue_of_topic: str | None = None
    counted_properties: frozenset[str] = frozenset()
    virtual_host: str = ""
    system: str = "jms"
