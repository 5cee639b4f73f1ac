"""SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677) as a client, without channel binding."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

from redelivery.model.errors import ProtocolError, SecurityError

_DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
_NO_BINDING: Final = b"n,,"
_MOST_ITERATIONS: Final = 1_000_000  # about a second: a peer must not make us work for ever


class Scram:
    """One login by SCRAM: `begin`, `answer` each challenge, `end` with what came with the outcome."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str | None = None) -> None:
        self._digest = _DIGESTS[mechanism]
        name = unicodedata.normalize("NFKC", username).replace("=", "=3D").replace(",", "=2C")
        self._password = unicodedata.normalize("NFKC", password).encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._first = f"n={name},r={self._nonce}".encode()
        self._signature: bytes | None = None  # by which the broker shows that it knows the password too
        self._proven = False

    def begin(self) -> bytes:
        """The first message."""
        return _NO_BINDING + self._first

    def answer(self, challenge: bytes) -> bytes:
        """The answer to a challenge. Raises SecurityError, ProtocolError."""
        if self._signature is not None:  # the broker's last message, in a challenge of its own
            self._verify(challenge)
            return b""
        fields = _fields(challenge)
        try:
            nonce, salt, iterations = fields["r"], b64decode(fields["s"], validate=True), int(fields["i"])
        except (KeyError, Base64Error, ValueError) as error:
            raise ProtocolError("the broker's challenge is not SCRAM") from error
        if not nonce.startswith(self._nonce) or not 1 <= iterations <= _MOST_ITERATIONS:
            raise ProtocolError("the broker's challenge does not answer ours, or asks for too much work (SCRAM)")
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        last = b"c=" + b64encode(_NO_BINDING) + b",r=" + nonce.encode()
        signed = b",".join((self._first, challenge, last))
        proof = self._hmac(hashlib.new(self._digest, client_key).digest(), signed)
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return last + b",p=" + b64encode(bytes(a ^ b for a, b in zip(client_key, proof, strict=True)))

    def end(self, data: bytes) -> None:
        """The broker says that all is well. Raises SecurityError where it has not shown that it knows the password."""
        if not self._proven:
            self._verify(data)

    def _verify(self, message: bytes) -> None:
        fields = _fields(message)
        if "e" in fields:
            raise SecurityError(f"the broker refuses the login (SCRAM): {fields['e'][:100]}")
        expected = b64encode(self._signature or b"").decode()
        if self._signature is None or not hmac.compare_digest(fields.get("v", "").encode(), expected.encode()):
            raise SecurityError("the broker has not shown that it knows the password (SCRAM): it may be another's")
        self._proven = True

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._digest)


def _fields(message: bytes) -> dict[str, str]:
    text = message.decode("utf-8", "replace")
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}
