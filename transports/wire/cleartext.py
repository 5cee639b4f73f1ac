"""One warning for each host that is sent a password which others on the way can read."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from typing import Final

log = logging.getLogger(__name__)

_warned: Final[set[str]] = set()  # hosts, in this process


def warn_of_cleartext(host: str, address: str | None, what: str, instead: str) -> None:
    """A password leaves for ``host`` without TLS, and not only within this machine: say so, once.

    Args:
        host: as in the URL.
        address: of the peer; None where it is gone already.
        what: sends it, such as "SASL PLAIN".
        instead: the scheme that encrypts.
    """
    if address is None or _is_loopback(address) or host in _warned:
        return
    _warned.add(host)
    log.warning(
        "%s: the password is sent unencrypted (%s without TLS): anybody on the way can read it; use %s",
        host,
        what,
        instead,
    )


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:  # a name of a socket in the file system
        return True
