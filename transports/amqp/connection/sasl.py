"""SASL as a client: ANONYMOUS, PLAIN, EXTERNAL (RFC 4422, 4505, 4616) and SCRAM (RFC 5802, 7677), without a socket.

proton has the first three by itself, or all of them by Cyrus SASL; but how it was compiled, and which plug-ins that
library then finds, must not decide who can log in.
"""

from __future__ import annotations

from typing import Any, Final

from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    MessageFormatError,
    ProtocolError,
    SecurityError,
    UnsupportedError,
    unseen,
)
from redelivery.transports.amqp.codec.encoding import binary_head, write_list, write_symbol, write_text
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.amqp.connection.scram import Scram

HEADER: Final = b"AMQP\x03\x01\x00\x00"
_MECHANISMS, _INIT, _CHALLENGE, _RESPONSE, _OUTCOME = range(0x40, 0x45)
_NAMES: Final = {"amqp:sasl-mechanisms:list": _MECHANISMS, "amqp:sasl-challenge:list": _CHALLENGE}
_WITH_PASSWORD: Final = ("SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")
KNOWN: Final = (*_WITH_PASSWORD, "EXTERNAL", "ANONYMOUS")
_LONGEST: Final = 64 << 10  # bytes of a frame; AMQP 1.0 §5.3.1 allows 512
_AUTH: Final = 1  # the outcome's code for bad credentials
_TEMPORARY: Final = 4  # …, and for a problem of the broker's that another attempt may not meet


def mechanisms(asked: str, username: str | None, *, encrypted: bool) -> tuple[str, ...]:
    """The mechanisms to choose from, the best first; ``asked`` is the option's value.

    Raises:
        UnsupportedError: one is asked for that we do not have.
        ConfigError: one is asked for that needs a username, and there is none.
    """
    names = tuple(asked.replace(",", " ").upper().split())
    if not names:
        if username is not None:
            return _WITH_PASSWORD
        return ("EXTERNAL", "ANONYMOUS") if encrypted else ("ANONYMOUS",)
    for name in names:
        if name not in KNOWN:
            raise UnsupportedError(f"the SASL mechanism {name[:40]!r} is not supported; those are {', '.join(KNOWN)}")
        if name in _WITH_PASSWORD and username is None:
            raise ConfigError(f"the SASL mechanism {name} needs a username and a password")
    return names


class Sasl:
    """One login. Bytes in, bytes out, until it is `done`; what came beyond it is in `rest`.

    ``mechanism`` is the one that both have, None before the broker has said what it offers.
    """

    @unseen
    def __init__(self, choice: tuple[str, ...], username: str | None, password: str | None, hostname: str) -> None:
        if username is not None and "\0" in username + (password or ""):
            raise ConfigError("the username or the password contains a NUL, which no SASL mechanism can carry")
        self.done = False
        self.rest = b""
        self.mechanism: str | None = None
        self._choice = choice
        self._username = username
        self._password = password or ""
        self._hostname = hostname
        self._data = b""
        self._greeted = False
        self._scram: Scram | None = None

    @property
    def silent(self) -> bool:
        """Not one byte has come."""
        return not self._greeted and not self._data

    def receive(self, data: bytes) -> bytes:
        """Take what came, and return the answer to it.

        Raises:
            SecurityError: the broker refuses the login, or offers no mechanism of ours, or does not know the password.
            ConnectError: it cannot check the login just now.
            ProtocolError: it says what SASL does not allow.
        """
        self._data += data
        if not self._greeted:
            if len(self._data) < len(HEADER):
                return b""
            if not self._data.startswith(HEADER):
                raise ProtocolError(f"the broker does not log in by SASL: it answers {self._data[:8]!r}")
            self._greeted, self._data = True, self._data[len(HEADER) :]
        answers = b""
        while not self.done and len(self._data) >= 8:
            size = int.from_bytes(self._data[:4], "big")
            start = self._data[4] * 4
            if not 8 <= start <= size <= _LONGEST or self._data[5] != 1:
                raise ProtocolError(f"the broker's answer is not a SASL frame: {self._data[:16]!r}")
            if len(self._data) < size:
                break
            body, self._data = self._data[start:size], self._data[size:]
            answers += self._take(body)
        if self.done:
            self.rest = self._data
        return answers

    def _take(self, body: bytes) -> bytes:
        try:
            code, at = read(body, 1)
            fields = read(body, at)[0]
        except MessageFormatError as error:
            raise ProtocolError(f"the broker's answer is not a SASL frame: {error}") from error
        code = _NAMES.get(code, code)
        first = fields[0] if isinstance(fields, list) and fields else None
        if code == _MECHANISMS:
            return self._begin([str(each) for each in (first if isinstance(first, list) else [first])])
        if code == _CHALLENGE and self._scram is not None and isinstance(first, bytes):
            return _frame(_RESPONSE, [_binary(self._scram.answer(first))])
        if code in (_OUTCOME, "amqp:sasl-outcome:list"):
            self._end(first, fields[1] if len(fields) > 1 else None)
            return b""
        raise ProtocolError(f"the broker's answer is unexpected in SASL: {body[:40]!r}")

    def _begin(self, offered: list[str]) -> bytes:
        name = next((each for each in self._choice if each in offered), None)
        if name is None:
            ours = ", ".join(self._choice)
            hint = "" if self._username is not None else "; it may want a username and a password"
            raise SecurityError(
                f"the broker offers the SASL mechanisms {', '.join(offered)[:200]}; we would take {ours}{hint}"
            )
        self.mechanism = name
        response = b""  # of EXTERNAL: the user that the certificate names
        if name == "PLAIN":
            response = f"\0{self._username}\0{self._password}".encode()
        elif name == "ANONYMOUS":
            response = b"anonymous"
        elif name.startswith("SCRAM"):
            self._scram = Scram(name, str(self._username), self._password)
            response = self._scram.begin()
        return _frame(_INIT, [write_symbol(name), _binary(response), write_text(self._hostname)])

    def _end(self, code: Any, data: Any) -> None:
        if code == _AUTH:
            raise SecurityError("the broker refuses the username, the password or the certificate (SASL)")
        if code == _TEMPORARY:
            raise ConnectError("the broker cannot check the login just now (SASL outcome 4, sys-temp)")
        if code != 0:
            raise SecurityError(f"the broker refuses the login (SASL outcome {code!r})")
        if self._scram is not None:
            self._scram.end(data if isinstance(data, bytes) else b"")
        self.done = True


def _binary(data: bytes) -> bytes:
    return binary_head(len(data)) + data


def _frame(code: int, fields: list[bytes]) -> bytes:
    body = b"\x00\x53%c" % code + write_list(fields)
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body
