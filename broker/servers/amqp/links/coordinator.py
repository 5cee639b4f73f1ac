"""The coordinator's link, by which a client declares and discharges transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from redelivery.broker.servers.amqp.codec.outcomes import finish, finish_declared
from redelivery.broker.servers.amqp.commands import Declare, Discharge, LinkCommand, RefusedTransfer
from redelivery.broker.servers.amqp.links.incoming import IncomingLink
from redelivery.model.errors import JMSError, MessageFormatError
from redelivery.transports.amqp.codec.sections import VALUE, body_sections, find
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.amqp.links.dispositions import ACCEPTED

_USUAL_DECLARES: Final = frozenset((b"\0Sw\0S1E", b"\0Sw\0S1\xc0\1\0", b"\0Sw\0S1\xc0\2\1@"))
_USUAL_DISCHARGE: Final = b"\0Sw\0S2\xc0"
_DECLARE: Final = (0x31, "amqp:declare:list")
_DISCHARGE: Final = (0x32, "amqp:discharge:list")


@dataclass(frozen=True, slots=True)
class DischargeRequest:
    """The end of a transaction; ``fail`` undoes it."""

    transaction: bytes
    fail: bool


def read_request(raw: bytes | bytearray) -> DischargeRequest | None:
    """A message to the coordinator; None is a declare. Raises MessageFormatError."""
    size = len(raw)  # what clients send as a rule needs no parser
    if size < 11 and bytes(raw) in _USUAL_DECLARES:
        return None
    if _is_usual_discharge(raw, size):
        return DischargeRequest(bytes(raw[11:-1]), raw[-1:] == b"A")
    return read_any(raw)


def read_any(raw: bytes | bytearray) -> DischargeRequest | None:
    """The same, in every form that AMQP allows."""
    body = find(raw)[4]
    sections = body_sections(raw, body) if body >= 0 else []
    if len(sections) != 1 or sections[0][0] != VALUE or raw[sections[0][1]] != 0:
        raise MessageFormatError("a message to the coordinator is a declare or a discharge")
    kind, at = read(raw, sections[0][1] + 1)
    fields, _ = read(raw, at)
    if kind in _DECLARE:
        return None
    if kind not in _DISCHARGE or not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes):
        raise MessageFormatError("a message to the coordinator is a declare or a discharge with a transaction's id")
    return DischargeRequest(fields[0], len(fields) > 1 and fields[1] is True)


def _is_usual_discharge(raw: bytes | bytearray, size: int) -> bool:
    if size <= 12 or raw[:7] != _USUAL_DISCHARGE or raw[8:10] != b"\2\xa0":
        return False
    return raw[7] == size - 8 and raw[10] == size - 12 and raw[-1] in b"AB"


class CoordinatorLink(IncomingLink):
    """Takes declares and discharges as its messages; transactions that are open at its end are rolled back."""

    def attach(self) -> None:
        """See `BrokerLink.attach`."""
        self.handle.target.copy(self.handle.remote_target)
        self.open()

    def command(self, number: int, handle: Any, data: bytearray) -> LinkCommand:  # noqa: ARG002 - see IncomingLink
        """A declare or a discharge; anything else is refused."""
        try:
            request = read_request(data)
        except JMSError as error:
            return RefusedTransfer(self.number, number, error, None)
        if request is None:
            return Declare(self.number, number)
        return Discharge(self.number, number, request.transaction, request.fail)

    def execute(self, command: LinkCommand) -> None:
        """See `BrokerLink.execute`."""
        if not isinstance(command, (Declare, Discharge)):
            super().execute(command)
        elif (handle := self.waiting(command.delivery)) is not None:
            if isinstance(command, Declare):
                finish_declared(handle, self.session.transactions.declare(self.number))
            else:
                self.session.transactions.discharge(command.transaction, fail=command.fail)
                finish(handle, ACCEPTED)
            self.answered(command.delivery)

    def refuse(self, command: LinkCommand, error: JMSError) -> None:
        """See `BrokerLink.refuse`: a commit that is refused is rolled back."""
        if isinstance(command, Discharge) and not command.fail:
            self.session.transactions.forget(command.transaction)
        if isinstance(command, (Declare, Discharge)):
            self.reject(command.delivery, error)
        else:
            super().refuse(command, error)

    def release(self) -> None:
        """See `BrokerLink.release`."""
        super().release()
        self.session.transactions.end_of(self.number)
