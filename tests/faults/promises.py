"""What each pair promises when its client or its broker is killed, and where a duplicate may come from."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.conformance.pairs import Kind
from tests.faults.account import Promise

_ATOMIC = Promise("sends and acknowledgements are one transaction: each output once, whatever is killed")
_HIDES = "the connection dropped, and the broker delivered it to nobody until it was started again"
_ACK_AFTER_SEND = "killed between an output's confirmation and its input's acknowledgement"
_ACK_ON_ITS_WAY = "killed before the acknowledgement, which nobody confirms, had arrived"
_ACK_AFTER_COMMIT = "killed between the COMMIT of the sends and their inputs' ACKs"

PROMISES: dict[str, Promise] = {
    "stomp-activemq": replace(_ATOMIC, marked_when=("client",)),
    "amqp-activemq": _ATOMIC,
    "stomp-stored": replace(_ATOMIC, marked_when=("client",)),
    "amqp-stored": replace(_ATOMIC, marked_when=("client",)),
    "amqp-artemis": _ATOMIC,
    "amqp-qpid": _ATOMIC,
    "stomp-artemis": Promise(
        "an ACK counts at once there, so it follows the confirmed COMMIT of the sends: none lost, one output twice "
        "where the two are parted",
        window=_ACK_AFTER_COMMIT,
        hides=_HIDES,
    ),
    "stomp-hornetq": Promise("as stomp-artemis", window=_ACK_AFTER_COMMIT, hides=_HIDES),
    "stomp-rabbitmq": Promise(
        "COMMIT is not atomic there, so the ACKs follow the confirmed sends: none lost, one output twice where the "
        "two are parted",
        window=_ACK_AFTER_COMMIT,
        behind="the broker was killed before it had written an acknowledgement of which it had told us",
        behind_when=("broker",),
        young=3.0,
    ),
    "amqp-rabbitmq": Promise(
        "no transactions: each output is confirmed before its input is acknowledged, which nobody confirms",
        window=_ACK_AFTER_SEND,
        behind=_ACK_ON_ITS_WAY,
        behind_when=("client", "broker"),
        young=3.0,
    ),
}
for _pair in ("stomp-rabbitmq", "amqp-rabbitmq"):
    PROMISES[f"{_pair}4"] = replace(PROMISES[_pair], text=f"as {_pair}", young=10.0)

_CONFIRMED = Promise(
    "each output is confirmed before its input is acknowledged, which the broker confirms: none lost, one output twice "
    "where the two are parted",
    window=_ACK_AFTER_SEND,
    marked_when=("client",),
)
_UNCONFIRMED = Promise(
    "each output is confirmed before its input is acknowledged, which nobody confirms: none lost, one output twice "
    "where the two are parted",
    window=_ACK_AFTER_SEND,
    behind=_ACK_ON_ITS_WAY,
    behind_when=("client", "broker"),
    marked_when=("client",),
)
# With quorum queues, which RabbitMQ 4 has beside its usual ones.
QUORUM: Final = "quorum"
# Beside transactions, on a pair with a store; with AUTO a listener sends.
MODES: Final = ("auto", "client", "individual")


def promise_of(kind: Kind, mode: str) -> Promise:
    """What counts for programs of that mode. Of these, over STOMP CLIENT alone acknowledges by a transaction."""
    if not kind.stored or mode not in MODES:
        return PROMISES[kind.name]
    return _CONFIRMED if (kind.protocol, mode) == ("stomp", "client") else _UNCONFIRMED
