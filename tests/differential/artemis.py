"""What Artemis and HornetQ have in their files, and the scenarios on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tests.differential.scenario import Manner, Scenario

LONG: Final = 2.6  # seconds; longer than the longest delay


def _artemis(name: str, says: str, manner: Manner = "modified-failed", **more: object) -> Scenario:
    queue = f"a.{name}"
    fields: dict[str, object] = {"dead": (f"DLA.{queue}",), **more}
    return Scenario(f"artemis {name}", "artemis", queue, manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


def _no_route(name: str, says: str, where: str) -> Scenario:
    fields = {"manner": "stomp-leave"} if name == "no-route-stomp" else {"manner": "leave"}
    return replace(_artemis(name, says, dead=(where,)), queue=f"topic://a.{name}", **fields)  # type: ignore[arg-type]  # handed through


CREATED: Final = {"auto-create-dead-letter-resources": "true"}
# Delays are long enough that a broker without them is found out.
DOUBLING: Final = {"redelivery-delay": 600, "redelivery-delay-multiplier": 2, "max-redelivery-delay": 1800}
ADDRESSES: Final[Mapping[str, Mapping[str, object]]] = {
    "doubling": {**DOUBLING, "max-delivery-attempts": 5},
    "default-maximum": {"redelivery-delay": 120, "redelivery-delay-multiplier": 4, "max-delivery-attempts": 5},
    "three": {"max-delivery-attempts": 3},
    "ten": {},
    "endless": {"max-delivery-attempts": -1},
    "delayed-endless": {"redelivery-delay": 600, "max-delivery-attempts": -1},
    "removed": {"max-delivery-attempts": 3, "dead-letter-address": None},
    "unbound": {"max-delivery-attempts": 2, "dead-letter-address": "NOBODY"},
    "created": {"max-delivery-attempts": 2, "dead-letter-address": "DLC", **CREATED},
    "suffixed": {
        "max-delivery-attempts": 2,
        "dead-letter-address": "DLC",
        **CREATED,
        "dead-letter-queue-prefix": "",
        "dead-letter-queue-suffix": ".DLQ",
    },
    "created-again": {"max-delivery-attempts": 2, "dead-letter-address": "DLC.again", **CREATED},
    "released": {"redelivery-delay": 600, "redelivery-delay-multiplier": 2, "max-delivery-attempts": 3},
    "modified": {"redelivery-delay": 600, "max-delivery-attempts": 3},
    "undeliverable": {"redelivery-delay": 1200, "max-delivery-attempts": 3},
    "rejected": {"redelivery-delay": 1200, "max-delivery-attempts": 5},
    "rejected-removed": {"dead-letter-address": None},
    "link": {"redelivery-delay": 1200, "max-delivery-attempts": 3},
    "connection": {"redelivery-delay": 1200, "max-delivery-attempts": 3},
    "stomp-drop": {"redelivery-delay": 600, "max-delivery-attempts": 3},
    "stomp-disconnect": {"redelivery-delay": 600, "max-delivery-attempts": 3},
    "stomp-unsubscribe": {"redelivery-delay": 1200, "max-delivery-attempts": 3},
    "stomp-nack": {"max-delivery-attempts": 3},
    "stomp-ack-abort": {"max-delivery-attempts": 3},
    "overtaken": {"redelivery-delay": 600, "max-delivery-attempts": 3},
    "expired": {"expiry-address": "EXP.a.expired"},
    "expired-removed": {"expiry-address": None},
    "expiry-delay": {"expiry-delay": 300, "expiry-address": "EXP.a.expiry-delay"},
    "expiry-delay-own": {"expiry-delay": 5000, "expiry-address": "EXP.a.expiry-delay-own"},
    "max-expiry": {"max-expiry-delay": 300, "expiry-address": "EXP.a.max-expiry"},
    "expired-in-delay": {"redelivery-delay": 1500, "expiry-address": "EXP.a.expired-in-delay"},
}
# Patterns of which several match an address.
MATCHES: Final[Mapping[str, Mapping[str, object]]] = {
    "a.merged.#": {"redelivery-delay": 600, "max-delivery-attempts": 7},
    "a.merged.x": {"max-delivery-attempts": 3, "dead-letter-address": "DLA.a.merged.x"},
    "a.star.#": {"max-delivery-attempts": 4, "dead-letter-address": "DLA.a.star.x"},
    "a.star.*": {"max-delivery-attempts": 2},
    "DLC.again": {"max-delivery-attempts": 2, "dead-letter-address": "DLC.again", **CREATED},
    "a.no-route": {"send-to-dla-on-no-route": "true", "dead-letter-address": "DLA.a.no-route"},
    "a.no-route-stomp": {"send-to-dla-on-no-route": "true", "dead-letter-address": "DLA.a.no-route-stomp"},
    "a.no-route-created": {"send-to-dla-on-no-route": "true", "dead-letter-address": "DLC", **CREATED},
    "DLC.self": {"max-delivery-attempts": 2, "dead-letter-address": "DLC.self"},
}
ARTEMIS: Final = (
    _artemis("doubling", "600 ms, doubled, at most 1800; 5 deliveries", delays=(600, 1200, 1800), patience=LONG),
    _artemis("default-maximum", "120 ms times 4; the maximum is ten times 120", delays=(120, 480, 1200), patience=LONG),
    _artemis("three", "3 deliveries at once"),
    _artemis("ten", "10 deliveries by default"),
    _artemis("endless", "-1: without an end", most=15),
    _artemis("delayed-endless", "-1, with a delay", most=4, delays=(600,), patience=LONG),
    _artemis("removed", "no dead-letter-address"),
    _artemis("unbound", "a dead-letter-address without a queue", dead=("NOBODY",)),
    _artemis("created", "auto-create-dead-letter-resources", dead=("DLC::DLQ.a.created",)),
    _artemis("suffixed", "its prefix and suffix", dead=("DLC::a.suffixed.DLQ",)),
    _artemis(
        "created-again",
        "what fails in such a queue, whose dead-letter-address is its own",
        then=("DLC.again::DLQ.a.created-again", "DLC.again::DLQ.DLC.again"),
        most=8,
        dead=("DLC.again::DLQ.a.created-again",),
    ),
    replace(_artemis("self", "a queue whose dead-letter-address is its own", most=7), queue="DLC.self"),
    _artemis(
        "released", "released: waits the first delay, uncounted", "released", most=4, delays=(600,), patience=LONG
    ),
    _artemis(
        "modified", "modified without delivery-failed: likewise", "modified", most=4, delays=(600,), patience=LONG
    ),
    _artemis(
        "undeliverable",
        "undeliverable-here: to the next link, after the delay, uncounted",
        "undeliverable",
        most=3,
        delays=(1200,),
        patience=0.9,  # so long does the first link wait for it, in vain
    ),
    _artemis("rejected", "rejected: a dead letter at once", "rejected"),
    _artemis("rejected-removed", "rejected without a dead-letter-address", "rejected"),
    _artemis("link", "the link is closed", "close-link", most=5),
    _artemis("connection", "the connection is closed", "close-connection", most=5),
    # Artemis redelivers that at once now and then: what finds the loss first decides.
    _artemis("stomp-drop", "STOMP: the connection is dropped", "stomp-drop", delays=(None,), patience=LONG),
    _artemis("stomp-disconnect", "STOMP: DISCONNECT", "stomp-disconnect", delays=(600,), patience=LONG),
    _artemis("stomp-unsubscribe", "STOMP: UNSUBSCRIBE", "stomp-unsubscribe", most=5),
    _artemis("stomp-nack", "STOMP: NACK", "stomp-nack"),
    _artemis("stomp-ack-abort", "STOMP: ACK in a transaction that is aborted", "stomp-ack-abort"),
    _artemis("overtaken", "later messages overtake", sends=3, delays=(None,), patience=LONG),
    _artemis("expired", "expires, to its expiry-address", "leave", ttl=100, dead=("EXP.a.expired",)),
    _artemis("expired-removed", "expires, without one", "leave", ttl=100, dead=("EXP.a.expired-removed",)),
    _artemis("expiry-delay", "expiry-delay for what has no time to live", "leave", dead=("EXP.a.expiry-delay",)),
    _artemis("expiry-delay-own", "it has one", "leave", ttl=200, dead=("EXP.a.expiry-delay-own",)),
    _artemis("max-expiry", "max-expiry-delay for what has none", "leave", dead=("EXP.a.max-expiry",)),
    _artemis("merged.x", "two matches, merged field by field", delays=(600,), patience=LONG),
    _artemis("star.x", "* comes before #"),
    _no_route("no-route", "send-to-dla-on-no-route, and nobody has subscribed", "DLA.a.no-route"),
    _no_route("no-route-stomp", "the same over STOMP", "DLA.a.no-route-stomp"),
    _no_route("no-route-created", "the same with auto-create-dead-letter-resources", "DLC::DLQ.a.no-route-created"),
    _artemis("expired-in-delay", "expires while it waits", ttl=500, most=1, dead=("EXP.a.expired-in-delay",)),
)


JMS_NO_ROUTE: Final = {"send-to-dla-on-no-route": "true", "dead-letter-address": "jms.queue.DLA.h.no-route"}
JMS_ADDRESSES: Final[Mapping[str, Mapping[str, object]]] = {
    "three": {"dead-letter-address": "jms.queue.DLA.h.three", "max-delivery-attempts": 3},
    "delayed": {"dead-letter-address": "jms.queue.DLA.h.delayed", **DOUBLING, "max-delivery-attempts": 5},
    "removed": {"max-delivery-attempts": 2},
    "endless": {"max-delivery-attempts": -1},
    "expiry-delay": {"expiry-delay": 300, "expiry-address": "jms.queue.EXP.h.expiry-delay"},
}


def _hornetq(name: str, says: str, manner: Manner = "stomp-disconnect", **more: object) -> Scenario:
    fields: dict[str, object] = {"dead": (f"DLA.h.{name}",), **more}
    return Scenario(f"hornetq {name}", "hornetq", f"h.{name}", manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


HORNETQ: Final = (
    _hornetq("three", "3 deliveries, each ended by DISCONNECT"),
    _hornetq("delayed", "600 ms, doubled, at most 1800", delays=(600, 1200, 1800), patience=LONG),
    _hornetq("removed", "no dead-letter-address"),
    _hornetq("endless", "-1: without an end", most=6),
    _hornetq(
        "expiry-delay",
        "expiry-delay for what has no time to live",
        "stomp-leave",
        dead=("EXP.h.expiry-delay",),
        patience=1.5,
    ),
    replace(
        _hornetq("no-route", "send-to-dla-on-no-route, and nobody has subscribed", "stomp-leave"),
        queue="topic://h.no-route",
    ),
)
