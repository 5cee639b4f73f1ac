"""JSON over HTTP by the standard library: one request, one connection, bounded in time and size.

The standard library's client, and not httpx: it is there in each installation, and what is asked here is a request now
and then. It bounds each read by itself only, so a peer that sends a byte now and then could hold its caller for ever;
`BoundedSocket` bounds them all together.
"""

from __future__ import annotations

import io
import json
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Final, cast

from redelivery.model.errors import (
    ConnectError,
    JMSError,
    ProtocolError,
    RequestTimeoutError,
)
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.answers import REFUSALS, ManagementAnswer, refused
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.signatures import protocol_of
from redelivery.transports.wire.tls import tls_problem

_PORTS: Final = {"http": 80, "https": 443}
_LARGEST: Final = 512 << 20  # bytes of an answer
_PIECE: Final = 1 << 16
_SHOWN: Final = 200  # characters of an answer that are shown in an error
_WITHOUT_WORDS: Final = (401, 403, 429)  # are of who asks, not of the path
_OTHER_PORT: Final = "its management has a port of its own"


class HttpAnswer(ManagementAnswer):
    """The body: what JSON says."""

    __slots__ = ()

    def refusal(self, doing: str, otherwise: type[JMSError] = JMSError) -> JMSError | None:
        """See `ManagementAnswer`."""
        if self.status < 300:
            return None
        return refused(self.status, f"{doing}: the broker's management", _reason(self.body), otherwise)


class JsonClient:
    """Asks one management API. It keeps no connection, so there is nothing to close; threads may share it.

    ``headers``: of each request, beyond those of any.
    """

    def __init__(self, address: ManagementAddress, *, headers: Mapping[str, str] | None = None) -> None:
        self.address = address
        self._headers = dict(headers or {})

    def call(
        self, method: str, path: str, body: Any = None, *, doing: str | None = None, more_time: float = 0.0
    ) -> Any:
        """The body of the answer to a request; ``path`` is percent-encoded, ``doing`` what an error says was done.

        ``more_time``: seconds beyond the usual ones, for what takes longer.

        Raises:
            SecurityError: the login is refused, or may not do it (401, 403).
            InvalidDestinationError: what the path names is not there (404).
            JMSError: another refusal, in the broker's words.
            ConnectError, RequestTimeoutError, ProtocolError: as `ask`.
        """
        answer = self.ask(method, path, body, more_time=more_time)
        answer.check(doing or f"{method} {path}")
        return answer.body

    def ask(self, method: str, path: str, body: Any = None, *, more_time: float = 0.0) -> HttpAnswer:
        """The answer, also where that is a refusal. The arguments are as `call`'s.

        Raises:
            ConnectError: nobody listens there, or there is no TLS.
            RequestTimeoutError: the answer was not there in time; what was asked for may have been done.
            ProtocolError: what answers is no management API, or says too much.
        """
        where, seconds = self.address, self.address.timeout + more_time
        deadline = monotonic() + seconds
        headers = {"Accept": "application/json, */*;q=0.1", "Connection": "close", **self._headers}
        if where.username is not None:
            login = f"{where.username}:{where.password or ''}"
            headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = HTTPConnection(where.host, where.port or _PORTS[where.scheme])
        sock = self._connect(deadline)
        connection.sock = cast(Any, BoundedSocket(sock, deadline))
        try:
            connection.request(method, where.path + path, data, headers)
            response = connection.getresponse()
            said = self._read(response)
        except TimeoutError as error:
            raise RequestTimeoutError(
                f"{where.masked} did not answer within {seconds:g} s; is it the port of the broker's management?"
            ) from error
        except (HTTPException, OSError) as error:
            raise self._not_http(error) from error
        finally:
            sock.close()
        return HttpAnswer(response.status, self._json(response, said))

    def _connect(self, deadline: float) -> socket.socket:
        where = self.address
        place = (where.host, where.port or _PORTS[where.scheme])
        try:
            sock: socket.socket = socket.create_connection(place, timeout=max(0.001, deadline - monotonic()))
        except OSError as error:
            raise ConnectError(f"there is no management at {where.masked}: {error.strerror or error}") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if where.scheme == "https":
            context = where.tls or ssl.create_default_context()
            try:
                sock = context.wrap_socket(sock, server_hostname=where.host)
            except (OSError, ValueError) as error:
                sock.close()
                why = tls_problem(error) if isinstance(error, ssl.SSLError) else error
                raise ConnectError(f"there is no TLS with the management at {where.masked}: {why}") from error
        return sock

    def _read(self, response: HTTPResponse) -> bytes:
        pieces, size = [], 0
        while piece := response.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > _LARGEST:
                raise ProtocolError(f"{self.address.masked} answers with more than {_LARGEST >> 20} MiB")
        return b"".join(pieces)

    def _json(self, response: HTTPResponse, said: bytes) -> Any:
        where = self.address.masked
        if 300 <= response.status < 400:
            to = response.getheader("Location") or "elsewhere"
            raise ProtocolError(f"{where} refers to {to[:_SHOWN]!r}: name that as the URL of the management")
        if not said:
            path = self.address.path
            if response.status in _WITHOUT_WORDS:
                return response.reason
            if response.status >= 400 and path:
                raise ProtocolError(f"{where} answers {response.status} without a word: is its path {path} right?")
            return None
        try:
            return json.loads(said)
        except (ValueError, RecursionError):
            if response.status in REFUSALS and response.status != 404:  # some answer so before they say who they are
                return response.reason
            kind = (response.getheader("Content-Type") or "no content type").partition(";")[0]
            raise ProtocolError(
                f"what answers at {where} is no management API of a broker: it sends {kind[:_SHOWN]}, not JSON "
                f"({response.status})"
            ) from None

    def _not_http(self, error: Exception) -> JMSError:
        where = self.address.masked
        if isinstance(error, ssl.SSLError):
            return ConnectError(f"there is no TLS with the management at {where}: {tls_problem(error)}")
        line = getattr(error, "line", "")
        spoken = protocol_of(str(line).lstrip("'\"").encode("latin-1", "replace")) if line else None
        if spoken is not None:
            return ProtocolError(f"{where} speaks {spoken}, not HTTP: {_OTHER_PORT}, such as 15672")
        return ProtocolError(
            f"what answers at {where} is no management API ({type(error).__name__}: {str(error)[:_SHOWN]}): "
            f"{_OTHER_PORT}, such as 15672" + ("" if self.address.scheme == "https" else ", and may want https://")
        )


class BoundedSocket:
    """A socket for `HTTPConnection`, all of whose waits end at a deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def _left(self) -> socket.socket:
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._sock.settimeout(left)
        return self._sock

    def sendall(self, data: bytes) -> None:
        """All of it is written in time, or TimeoutError is raised."""
        self._left().sendall(data)  # bounded as a whole, as Python says

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002  # HTTPResponse only reads
        """The file that the response is read from."""
        return io.BufferedReader(cast(Any, _Reader(self._left)))

    def close(self) -> None:
        """Nothing: the response is still to be read when the connection calls it."""


class _Reader(io.RawIOBase):
    def __init__(self, ready: Any) -> None:
        self._ready = ready

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return int(self._ready().recv_into(buffer))


def _reason(body: Any) -> str:
    said = body
    if isinstance(body, dict):
        said = next((body[name] for name in ("reason", "error", "message") if body.get(name)), body)
    return " ".join(str(said).split())[:_SHOWN] if said else "nothing"
