"""Begins an AMQP connection: protocol headers and SASL (parts 2.2 and 5.3 of the standard), bytes in, bytes out.

Not by proton, whose server side checks passwords by the machine's own SASL database, not by `BrokerConfig.users`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from redelivery.broker.engine.config import BrokerConfig
from redelivery.model.errors import MessageFormatError, ProtocolError
from redelivery.transports.amqp.codec.encoding import binary_head, write_list, write_symbol
from redelivery.transports.amqp.codec.values import read

AMQP: Final = b"AMQP\x00\x01\x00\x00"
SASL: Final = b"AMQP\x03\x01\x00\x00"
_LARGEST: Final = 8 << 10  # bytes of a SASL frame; the standard's own limit is 512
_MECHANISMS, _INIT, _CHALLENGE, _RESPONSE, _OUTCOME = range(0x40, 0x45)
_OK, _FAILED = 0, 1


class _Step(Enum):
    HEADER = "the protocol's header"
    INIT = "sasl-init"
    RESPONSE = "sasl-response"
    OPEN = "the header of AMQP behind SASL"
    DONE = "nothing: the connection's frames follow"


class SaslServer:
    """The start of one connection, up to the protocol header of AMQP itself; ``write`` takes the answers."""

    def __init__(self, config: BrokerConfig, write: Callable[[bytes], None]) -> None:
        self.username: str | None = None
        self._config = config
        self._write = write
        self._step = _Step.HEADER
        self._buffer = b""

    @property
    def done(self) -> bool:
        """True: the login has succeeded. What follows is the connection's."""
        return self._step is _Step.DONE

    def feed(self, data: bytes) -> bytes:
        """Take bytes; returns those that belong to the connection itself, its protocol header first.

        Raises:
            ProtocolError: this is not AMQP, or the login is refused; the peer has its answer.
        """
        self._buffer += data
        while not self.done:
            if self._step in (_Step.HEADER, _Step.OPEN):
                self._check_header(self._buffer[:8])
                size = 8
            else:
                size = self._frame_size()
            if len(self._buffer) < size:
                return b""
            if self._step is _Step.HEADER:
                self._begin(self._take(size))
            elif self._step is _Step.OPEN:
                self._step = _Step.DONE
            else:
                self._answer(self._take(size))
        rest, self._buffer = self._buffer, b""
        return rest

    def _take(self, size: int) -> bytes:
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _check_header(self, start: bytes) -> None:
        wanted = (AMQP,) if self._step is _Step.OPEN else (AMQP, SASL)
        if any(each.startswith(start) for each in wanted):
            return
        self._write(wanted[-1])
        raise ProtocolError(f"the peer speaks another protocol: it begins with {start!r}")

    def _begin(self, header: bytes) -> None:
        if header == AMQP:
            if not self._config.admits(None, None):
                self._write(SASL)
                raise ProtocolError("the peer sent no user name, and this broker requires one")
            self._buffer = header + self._buffer
            self._step = _Step.DONE
            return
        names = ["PLAIN", "ANONYMOUS"] if self._config.admits(None, None) else ["PLAIN"]
        items = b"".join(write_symbol(name)[1:] for name in names)
        array = b"\xe0%c%c\xa3%b" % (len(items) + 2, len(names), items)
        self._write(SASL + _frame(_MECHANISMS, [array]))
        self._step = _Step.INIT

    def _frame_size(self) -> int:
        if len(self._buffer) < 4:
            return 4
        size = int.from_bytes(self._buffer[:4], "big")
        if not 8 <= size <= _LARGEST:
            raise ProtocolError(f"the peer announces a SASL frame of {size} bytes")
        return size

    def _answer(self, frame: bytes) -> None:
        code, fields = _read(frame)
        if self._step is _Step.INIT and code == _INIT and fields and isinstance(fields[0], str):
            mechanism, response = fields[0], fields[1] if len(fields) > 1 else None
            if mechanism == "ANONYMOUS":
                self._finish(self._config.admits(None, None))
            elif mechanism != "PLAIN":
                self._finish(False)
            elif isinstance(response, bytes):
                self._check_plain(response)
            else:
                self._write(_frame(_CHALLENGE, [binary_head(0)]))
                self._step = _Step.RESPONSE
        elif self._step is _Step.RESPONSE and code == _RESPONSE and fields and isinstance(fields[0], bytes):
            self._check_plain(fields[0])
        else:
            raise ProtocolError(f"the peer sent the SASL frame 0x{code:x} in place of {self._step.value}")

    def _check_plain(self, response: bytes) -> None:
        parts = response.decode("utf-8", "replace").split("\0")
        self.username = parts[1] if len(parts) == 3 else None
        self._finish(len(parts) == 3 and self._config.admits(parts[1], parts[2]))

    def _finish(self, admitted: bool) -> None:
        self._write(_frame(_OUTCOME, [b"\x50%c" % (_OK if admitted else _FAILED)]))
        if not admitted:
            raise ProtocolError("the login is refused")
        self._step = _Step.OPEN


def _frame(code: int, fields: list[bytes]) -> bytes:
    body = b"\x02\x01\x00\x00\x00\x53%c%b" % (code, write_list(fields))
    return (len(body) + 4).to_bytes(4, "big") + body


def _read(frame: bytes) -> tuple[int, list[Any]]:
    """The performative's code and its fields."""
    start = 4 * frame[4]
    if frame[5] != 1 or start < 8:
        raise ProtocolError(f"the peer sent a frame of type {frame[5]} in place of a SASL frame")
    try:
        code, at = read(frame, start + 1)
        fields, _ = read(frame, at)
    except (MessageFormatError, IndexError) as error:
        raise ProtocolError(f"a SASL frame that cannot be read: {error}") from error
    if frame[start] != 0 or not isinstance(code, int) or not isinstance(fields, list):
        raise ProtocolError("a SASL frame does not hold a described list")
    return code, fields
