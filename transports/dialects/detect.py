"""Which dialect: the one that was asked for, or the one that the broker's own name says."""

from __future__ import annotations

from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.transports.dialects import activemq, embedded, unknown
from redelivery.transports.dialects.dialect import Dialect

AUTO: Final = "auto"
_DIALECTS: Final = {each.name: each for each in (activemq.DIALECT, embedded.DIALECT, unknown.DIALECT)}


def check_name(name: str) -> None:
    """Raise ConfigError where there is no such dialect."""
    if name != AUTO and name not in _DIALECTS:
        known = ", ".join(repr(each) for each in (AUTO, *_DIALECTS))
        raise ConfigError(f"dialect={name!r} is not known; it is one of {known}")


def detect(name: str, server: str) -> Dialect:
    """The dialect of that name; for ``"auto"`` the one of a broker that names itself ``server``. Raises ConfigError."""
    check_name(name)
    if name != AUTO:
        return _DIALECTS[name]
    for dialect in _DIALECTS.values():
        if dialect.server_prefix and server.startswith(dialect.server_prefix):
            return dialect
    return unknown.DIALECT
