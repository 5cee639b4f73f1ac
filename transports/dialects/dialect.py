"""The form of the tables. A field says what the broker does, or which word it uses; nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from redelivery.model.capabilities import Capabilities

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


@dataclass(frozen=True, slots=True)
class StompDialect:
    """STOMP as one broker means it; the defaults are the safest meaning.

    Attributes:
        capabilities: what the sessions may ask for.
        queue_prefix, topic_prefix: how a destination is written.
        any_words: the wildcard for any further words.
        owned_headers: headers of MESSAGE that are the broker's or JMS's own, and so no properties.
        prefetch_header: of SUBSCRIBE, the window in messages; None: there is none.
        default_prefetch: the window where the application asks for none.
        no_local_header: of SUBSCRIBE; None: not supported.
        ack_key: the header of MESSAGE whose value an ACK names, as ``b"\\nname:"``.
        ack_in_transaction: an ACK in a transaction is undone by ABORT and atomic with the SENDs. Otherwise it is
            held back until the COMMIT is confirmed.
        enlist_at_most: deliveries handed out and not in the transaction that make their ACKs enter it before the
            commit, so that the broker goes on; bounded by half the window. 0: acks enter at the commit only.
        nack_is_poison: NACK surely dead-letters.
        parks: an ACK in a transaction that is aborted later frees the window meanwhile.
        commit_ends_parking: a COMMIT makes every delivery of the subscription that is acknowledged in any open
            transaction unknown, so that nothing else may be enlisted or parked then.
        receipt_starves_patterns: a consumer of a pattern that asks for a receipt gets nothing of what is there.
        receipt_in_transaction: a SEND in a transaction is answered at once, not at the commit.
        error_names_receipt: an ERROR says which request it answers.
        error_closes: an ERROR ends the connection.
        length_is_bytes: MESSAGE has content-length exactly where the body is bytes.
        map_transformation: the value of ``transformation`` by which a map is its JSON; None: there are no maps.
        delay_header: of SEND, milliseconds before it may be delivered; None: not supported.
    """

    capabilities: Capabilities
    queue_prefix: str = "/queue/"
    topic_prefix: str = "/topic/"
    any_words: str = ">"
    owned_headers: frozenset[str] = STOMP_HEADERS
    prefetch_header: str | None = None
    default_prefetch: int = 100
    no_local_header: str | None = None
    ack_key: bytes = b"\nack:"
    ack_in_transaction: bool = False
    enlist_at_most: int = 0
    nack_is_poison: bool = False
    parks: bool = False
    commit_ends_parking: bool = False
    receipt_starves_patterns: bool = False
    receipt_in_transaction: bool = False
    error_names_receipt: bool = False
    error_closes: bool = False
    length_is_bytes: bool = False
    map_transformation: str | None = None
    delay_header: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One broker.

    Attributes:
        name: as in ``dialect=``.
        provider: as in the connection's metadata.
        server_prefix: how its STOMP header ``server`` begins, before the version; empty: it is never detected.
        stomp: its STOMP.
    """

    name: str
    provider: str
    server_prefix: str
    stomp: StompDialect
