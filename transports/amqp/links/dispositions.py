"""Reads and writes a disposition by the C library's functions; for the holder of the connection's lock.

proton's own classes would be a wrapper per delivery, which lives on in the C library's memory.
"""

from __future__ import annotations

from typing import Any, Final

from cproton_ffi import ffi, lib

ACCEPTED: Final[int] = lib.PN_ACCEPTED
REJECTED: Final[int] = lib.PN_REJECTED
RELEASED: Final[int] = lib.PN_RELEASED
MODIFIED: Final[int] = lib.PN_MODIFIED
DECLARED: Final = 0x33
TRANSACTIONAL: Final = 0x34
ERROR: Final = 0x1D
_LONGEST: Final = 4000  # bytes of a reason
_LEAST_FRAME: Final = 512  # bytes that every peer takes
_AROUND: Final = 200  # bytes of a disposition around its reason
_NAMES: Final = {
    b"amqp:accepted:list": ACCEPTED,
    b"amqp:rejected:list": REJECTED,
    b"amqp:released:list": RELEASED,
    b"amqp:modified:list": MODIFIED,
    b"amqp:error:list": ERROR,
}


_SAID: Final = {
    RELEASED: "released: nobody wanted it, it was not stored",
    MODIFIED: "modified: it could not be delivered, it was not stored",
    DECLARED: "declared, which is no answer to a message",
    TRANSACTIONAL: "a transaction's state, which is no answer to a message of none",
}


def said_outcome(code: int | None) -> str:
    """The outcome by its name, and what it means for a message that was sent and is not accepted."""
    return "no outcome, so it is not known to be stored" if not code else _SAID.get(code, f"outcome {code:#x}")


class Condition:
    """The reason of a peer's refusal: a name such as ``amqp:not-found``, and its own words."""

    __slots__ = ("description", "name")

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description


def condition_of(raw: Any) -> Condition | None:
    """A condition of the C library; None where it is not set."""
    if not lib.pn_condition_is_set(raw):
        return None
    return Condition(_text(lib.pn_condition_get_name(raw)), _text(lib.pn_condition_get_description(raw)))


def refusal(handle: Any) -> Condition | None:
    """The reason why the peer has rejected a delivery."""
    return condition_of(lib.pn_disposition_condition(lib.pn_delivery_remote(handle)))


def declared_id(handle: Any) -> bytes | None:
    """The transaction that the peer has declared; None where it names none."""
    data = _first(handle)
    return _binary(data) if data is not None else None


def outcome_in_transaction(handle: Any) -> tuple[int | None, Condition | None]:
    """The outcome that a transactional state holds, None where it holds none that is known; and why it refuses."""
    data = _first(handle)
    if data is None or not lib.pn_data_next(data):
        return None, None
    outcome = _described(data)
    reason = None
    if outcome == REJECTED and _enter_list(data) and _described(data) is not None and _enter_list(data):
        name = _bytes(lib.pn_data_get_symbol(data)).decode("ascii", "replace")
        text = lib.pn_data_next(data) and lib.pn_data_type(data) == lib.PN_STRING
        reason = Condition(name, _bytes(lib.pn_data_get_string(data)).decode("utf-8", "replace") if text else "")
    return outcome, reason


def enlist(handle: Any, transaction: bytes, outcome: int | None) -> None:
    """Set the transactional state: a list of the transaction's id and the outcome.

    The type 0x34 makes proton write what is put into the disposition's data as it is.
    """
    data = lib.pn_disposition_data(lib.pn_delivery_local(handle))
    lib.pn_data_clear(data)  # proton would append
    lib.pn_data_put_list(data)
    lib.pn_data_enter(data)
    lib.pn_data_put_binary(data, (len(transaction), ffi.from_buffer(transaction)))
    if outcome is not None:
        lib.pn_data_put_described(data)
        lib.pn_data_enter(data)
        lib.pn_data_put_ulong(data, outcome)
        lib.pn_data_put_list(data)
        lib.pn_data_exit(data)
    lib.pn_data_exit(data)
    lib.pn_delivery_update(handle, TRANSACTIONAL)


def fail(handle: Any) -> None:
    """The next outcome `modified` says that the delivery failed."""
    lib.pn_disposition_set_failed(lib.pn_delivery_local(handle), True)


def explain(handle: Any, name: str, description: str) -> None:
    """The next outcome `rejected` has a reason."""
    condition = lib.pn_disposition_condition(lib.pn_delivery_local(handle))
    lib.pn_condition_set_name(condition, name.encode())
    # A disposition is one frame, which the peer limits; a NUL would end the text.
    connection = lib.pn_session_connection(lib.pn_link_session(lib.pn_delivery_link(handle)))
    frame = lib.pn_transport_get_remote_max_frame(lib.pn_connection_transport(connection)) or _LONGEST + _AROUND
    longest = min(_LONGEST, max(frame, _LEAST_FRAME) - _AROUND)
    text = description.replace("\0", "?").encode("utf-8", "replace")[:longest]
    lib.pn_condition_set_description(condition, text.decode("utf-8", "ignore").encode())


def _first(handle: Any) -> Any:
    """The data of the peer's state, at its first field; None where there is none."""
    data = lib.pn_disposition_data(lib.pn_delivery_remote(handle))
    lib.pn_data_rewind(data)
    return data if lib.pn_data_next(data) and _enter_list(data) else None


def _enter_list(data: Any) -> bool:
    """Go to the first item of the list that it stands at; False where there is none."""
    if lib.pn_data_type(data) != lib.PN_LIST:
        return False
    lib.pn_data_enter(data)
    return bool(lib.pn_data_next(data))


def _described(data: Any) -> int | None:
    """Go to the value of the described one that it stands at; its code, None for no outcome's or error's."""
    if lib.pn_data_type(data) != lib.PN_DESCRIBED:
        return None
    lib.pn_data_enter(data)
    lib.pn_data_next(data)
    if lib.pn_data_type(data) == lib.PN_ULONG:
        code = int(lib.pn_data_get_ulong(data))
    else:
        code = _NAMES.get(_bytes(lib.pn_data_get_symbol(data)), 0)
    lib.pn_data_next(data)
    return code or None


def _binary(data: Any) -> bytes | None:
    return _bytes(lib.pn_data_get_binary(data)) if lib.pn_data_type(data) == lib.PN_BINARY else None


def _bytes(value: Any) -> bytes:
    return bytes(ffi.buffer(value.start, value.size)) if value.size else b""


def _text(value: Any) -> str:
    return "" if value == ffi.NULL else ffi.string(value).decode("utf-8", "replace")
