"""Which fault is done to which pair, and how the program works meanwhile: what the tests run, and the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.conformance.pairs import Kind
from tests.faults.harm import HARMS
from tests.faults.refusals import CHECKS

DEDUPLICATED, ASYNCIO = "deduplicate_sends", "asyncio"  # other ways in which the program works
SHORT: Final = ("refused for 0.4 s",)  # on real brokers, in the short form
SHORT_EMBEDDED: Final = ("cut before the answer to a commit", *SHORT)
AIO: Final = ("half open", *SHORT_EMBEDDED)  # with asyncio on real brokers, which see the same bytes; elsewhere all
KILLED: Final = "the broker is killed and started again"
_TRANSACTED: Final = ("commit", "transaction", "rollback")


def impossible(kind: Kind, fault: str) -> bool:
    """There is no such thing there: no transactions, no SASL, or no broker that is a process of its own."""
    if fault == CHECKS:
        return kind.protocol != "amqp"
    if fault == KILLED:
        return not kind.remote or not (kind.real or kind.stored)
    return "transactions" in kind.cannot and any(word in fault for word in _TRANSACTED)


def ways(kind: Kind, fault: str) -> Sequence[str]:
    """The ways in which the program works in a test of that fault; the first one is the usual one."""
    if impossible(kind, fault) or (kind.stored and fault != KILLED):
        return ()
    deduplicated = [] if "duplicate ids" in kind.cannot else [DEDUPLICATED]
    aio = fault in AIO or (fault in HARMS and not kind.real)
    return ["", *deduplicated, *([ASYNCIO] if aio else [])]
