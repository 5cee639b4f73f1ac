"""TLS: the handshake's failures, in words that say what to do."""

from __future__ import annotations

import ssl


def tls_problem(error: ssl.SSLError) -> str:
    """Why there is no TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})"
    if error.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}:
        return "the port does not speak it; is it a TLS port?"
    if isinstance(error, ssl.SSLEOFError):
        return "the connection was closed meanwhile; is it a TLS port?"
    return str(error)
