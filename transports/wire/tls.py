"""TLS: the handshake's failures, in words that say what to do."""

from __future__ import annotations

import ssl
from typing import Final

_ALERT: Final = "ALERT"
_WANTED: Final = (
    "it may want a client certificate, or another one: give tls= an SSLContext with load_cert_chain(certificate, key)"
)


def tls_problem(error: ssl.SSLError) -> str:
    """The reason why there is no TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})"
    if error.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}:
        return "the port does not speak it; is it a TLS port?"
    if isinstance(error, ssl.SSLEOFError):
        return "the connection was closed meanwhile; is it a TLS port?"
    if _ALERT in (error.reason or ""):
        return f"the peer refuses ({error.reason}); {_WANTED}"
    return str(error)


def refused_by_alert(error: BaseException | None) -> str | None:
    """The text about an end by an alert, as TLS 1.3 asks for a certificate late; None: it was none."""
    if isinstance(error, ssl.SSLError) and _ALERT in (error.reason or ""):
        return f"the peer ended TLS ({error.reason}); {_WANTED}"
    return None
