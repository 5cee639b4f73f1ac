"""Control frames, built by stomp.py's protocol classes and written by our encoder.

stomp.py's transport is subclassed by its public methods only and never started: it opens no socket, runs no thread and
logs nothing (its own `transmit` would log the passcode). It escapes values but not names, and lets NUL through.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import stomp.connect
import stomp.protocol
import stomp.transport

from redelivery.transports.stomp.codec.frames import encode_text, refuse_line_ends


class _Tap(stomp.transport.BaseTransport):
    """The transport that stomp.py believes it sends by: keeps the frame, as bytes."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self.vhost = host
        self.current_host_and_port = (host, 0)
        self.encoded = b""
        self.set_connected(True)

    def transmit(self, frame: stomp.utils.Frame) -> None:
        """Called by stomp.py with each frame; the values are escaped where the command asks for it."""
        lines = [frame.cmd]
        for name, value in frame.headers.items():
            if name == "host" and not value:
                continue
            refuse_line_ends(name, value)
            lines.append(f"{name}:{value}")
        self.encoded = encode_text("\n".join(lines) + "\n\n\0")


# The protocol comes first: BaseConnection.disconnect does nothing.
class _Connection12(stomp.protocol.Protocol12, stomp.connect.BaseConnection):
    def __init__(self, tap: _Tap) -> None:
        stomp.connect.BaseConnection.__init__(self, tap)
        stomp.protocol.Protocol12.__init__(self, tap)


class _Connection11(stomp.protocol.Protocol11, stomp.connect.BaseConnection):
    def __init__(self, tap: _Tap) -> None:
        stomp.connect.BaseConnection.__init__(self, tap)
        stomp.protocol.Protocol11.__init__(self, tap)


class ControlFrames:
    """The frames that are rare; each method returns its bytes. For one thread at a time.

    Raises MessageFormatError where a value cannot be written.
    """

    def __init__(self, version: str, host: str) -> None:
        self._tap = _Tap(host)
        self._stomp = (_Connection11 if version == "1.1" else _Connection12)(self._tap)

    def connect(
        self, login: str | None, passcode: str | None, headers: Mapping[str, str], versions: str = "1.2,1.1"
    ) -> bytes:
        """CONNECT, offering 1.2 and 1.1; without a virtual host where that is empty."""
        self._stomp.version = versions
        self._stomp.connect(login, passcode, headers=dict(headers), with_connect_command=True)
        return self._encoded()

    def subscribe(self, destination: str, identifier: str, headers: Mapping[str, str]) -> bytes:
        """SUBSCRIBE, with ack:client-individual where no header says otherwise."""
        ack = headers.get("ack", "client-individual")
        self._stomp.subscribe(destination, identifier, ack=ack, headers=dict(headers))
        return self._encoded()

    def unsubscribe(
        self, identifier: str, receipt: str | None = None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        """UNSUBSCRIBE, to be answered where there is a receipt."""
        self._stomp.unsubscribe(identifier, headers={**headers, **({} if receipt is None else {"receipt": receipt})})
        return self._encoded()

    def abort(self, transaction: str) -> bytes:
        """ABORT."""
        self._stomp.abort(transaction)
        return self._encoded()

    def disconnect(self, receipt: str) -> bytes:
        """DISCONNECT, to be answered."""
        self._stomp.disconnect(receipt=receipt)
        return self._encoded()

    def _encoded(self) -> bytes:
        encoded, self._tap.encoded = self._tap.encoded, b""  # a CONNECT holds the passcode: it is not kept
        return encoded
