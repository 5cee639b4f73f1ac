"""Delivery states of AMQP 1.0 (parts 3.4 and 4.5 of the standard), read and written with proton's C library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cproton_ffi import ffi, lib

from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.servers.amqp.codec.conditions import condition_name
from redelivery.broker.servers.amqp.codec.data import described, encoded, places
from redelivery.model.errors import JMSError, MessageFormatError
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.amqp.links.dispositions import (
    ACCEPTED,
    DECLARED,
    MODIFIED,
    REJECTED,
    RELEASED,
    TRANSACTIONAL,
    enlist,
    explain,
    refusal,
)

RECEIVED: Final = 0x23
_NAMES: Final[dict[object, int]] = {
    "amqp:accepted:list": ACCEPTED,
    "amqp:rejected:list": REJECTED,
    "amqp:released:list": RELEASED,
    "amqp:modified:list": MODIFIED,
}


@dataclass(frozen=True, slots=True)
class AmqpOutcome:
    """A receiver's outcome of a delivery: accepted, rejected, released or modified.

    ``settled``: the receiver is done with it. ``transaction``: the id of the one that it belongs to; None for none.
    ``cause``: the description of a rejection's error. ``failed``, ``undeliverable``: of modified, it counts as a
    delivery, and is not to be delivered there again.
    """

    kind: int
    settled: bool
    transaction: bytes | None = None
    cause: str | None = None
    failed: bool = False
    undeliverable: bool = False

    @property
    def poisons(self) -> bool:
        """True: the message goes to the dead letters."""
        return self.kind == REJECTED or (self.kind == MODIFIED and self.undeliverable)

    @property
    def counts(self) -> bool:
        """True: a message that is released counts as delivered."""
        return self.kind == MODIFIED and self.failed

    @property
    def manner(self) -> Manner | None:
        """The way in which a message came back, where it is neither accepted nor poisoned: see `Engine.release`."""
        return Manner.MODIFIED if self.kind == MODIFIED and not self.failed else None


def read_outcome(handle: Any) -> AmqpOutcome | None:
    """The peer's outcome of a delivery; None where it has none yet. Raises MessageFormatError."""
    kind, settled = lib.pn_delivery_remote_state(handle), bool(lib.pn_delivery_settled(handle))
    if kind == TRANSACTIONAL:
        return _read_transactional(handle, settled)
    if kind in (0, RECEIVED):
        # Settled without an outcome: it may not have been processed, so it is counted and redelivered.
        return AmqpOutcome(MODIFIED, True, failed=True) if settled else None
    if kind == REJECTED:
        found = refusal(handle)
        return AmqpOutcome(kind, settled, cause=_cause(found.name, found.description) if found else None)
    if kind == MODIFIED:
        remote = lib.pn_delivery_remote(handle)
        failed, undeliverable = lib.pn_disposition_is_failed(remote), lib.pn_disposition_is_undeliverable(remote)
        return AmqpOutcome(kind, settled, failed=bool(failed), undeliverable=bool(undeliverable))
    return AmqpOutcome(kind, settled)


def transaction_of(handle: Any) -> bytes | None:
    """The transaction that a message was sent in; None for none. Raises MessageFormatError."""
    if lib.pn_delivery_remote_state(handle) != TRANSACTIONAL:
        return None
    raw, fields = _state(handle)
    return _binary(raw, fields[0]) if fields else b""


def finish(handle: Any, kind: int) -> None:
    """Settle with an outcome."""
    lib.pn_data_clear(lib.pn_disposition_data(lib.pn_delivery_local(handle)))
    lib.pn_delivery_update(handle, kind)
    lib.pn_delivery_settle(handle)


def finish_transacted(handle: Any, transaction: bytes) -> None:
    """Settle a message that the transaction has taken."""
    enlist(handle, transaction, ACCEPTED)
    lib.pn_delivery_settle(handle)


def finish_declared(handle: Any, transaction: bytes) -> None:
    """Settle a declare: the transaction's id."""
    data = lib.pn_disposition_data(lib.pn_delivery_local(handle))
    lib.pn_data_clear(data)
    lib.pn_data_put_list(data)
    lib.pn_data_enter(data)
    lib.pn_data_put_binary(data, (len(transaction), ffi.from_buffer(transaction)))
    lib.pn_data_exit(data)
    lib.pn_delivery_update(handle, DECLARED)
    lib.pn_delivery_settle(handle)


def reject(handle: Any, error: JMSError) -> None:
    """Settle with a refusal."""
    explain(handle, condition_name(error), str(error).encode("utf-8", "replace").decode())
    finish(handle, REJECTED)


def _read_transactional(handle: Any, settled: bool) -> AmqpOutcome | None:
    raw, fields = _state(handle)
    transaction = _binary(raw, fields[0]) if fields else b""
    descriptor, at = described(raw, fields[1]) if len(fields) > 1 else (None, 0)
    if descriptor is None:  # no outcome yet
        return AmqpOutcome(MODIFIED, True, transaction, failed=True) if settled else None
    kind = _NAMES.get(descriptor, 0) if isinstance(descriptor, str) else descriptor
    if kind == REJECTED:
        return AmqpOutcome(REJECTED, settled, transaction, cause=_rejection(raw, at))
    if kind == MODIFIED:
        flags = [read(raw, place)[0] is True for place in places(raw, at)[:2]]
        failed, undeliverable = flags[:1] == [True], flags[1:] == [True]
        return AmqpOutcome(MODIFIED, settled, transaction, failed=failed, undeliverable=undeliverable)
    if kind not in (ACCEPTED, RELEASED):
        raise MessageFormatError(f"{descriptor!r} is not an outcome in a transaction")
    return AmqpOutcome(kind, settled, transaction)


def _state(handle: Any) -> tuple[bytes, list[int]]:
    """The list that a transactional state is, and where its fields begin."""
    raw = encoded(lib.pn_disposition_data(lib.pn_delivery_remote(handle)))
    return raw, places(raw, 0) if raw else []


def _rejection(raw: bytes, at: int) -> str | None:
    """The cause in an outcome rejected, whose field is an error."""
    outer = places(raw, at)
    descriptor, inner = described(raw, outer[0]) if outer else (None, 0)
    if descriptor is None:
        return None
    name, description, *_ = [*(read(raw, place)[0] for place in places(raw, inner)[:2]), None, None]
    return _cause(name if isinstance(name, str) else None, description)


def _cause(name: str | None, description: object) -> str | None:
    return str(description) if description else name


def _binary(raw: bytes, at: int) -> bytes:
    value, _ = read(raw, at)
    return value if isinstance(value, bytes) else b""
