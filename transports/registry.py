"""Finds a URL scheme's transport: an entry point of the group ``redelivery.transports``, loaded on first use.

Where the package has no metadata (in a zip on ``sys.path``, in a frozen application), the built-in ones are found all
the same.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import nearest
from redelivery.model.version import lacks_proton
from redelivery.transports.seam import Transport

GROUP = "redelivery.transports"
BUILT_IN: Final = {  # as in pyproject.toml
    "amqp": "redelivery.transports.amqp.adapter:AmqpTransport",
    "amqps": "redelivery.transports.amqp.adapter:AmqpTransport",
    "stomp": "redelivery.transports.stomp.adapter:StompTransport",
    "stomp+ssl": "redelivery.transports.stomp.adapter:StompTransport",
    "vm": "redelivery.broker.vm:VmTransport",
}
_OPENWIRE = "is OpenWire, which only ActiveMQ's own clients speak; the same broker's STOMP is stomp://host:61613"
_ELSEWHERE = {
    "tcp": _OPENWIRE,
    "ssl": _OPENWIRE.replace("stomp://host:61613", "stomp+ssl://host:61614"),
    "nio": _OPENWIRE,
}
_SYNONYMS = {
    **dict.fromkeys(("stomps", "stomp+tls", "stomp+s"), "stomp+ssl"),
    **dict.fromkeys(("amqp+tls", "amqp+s"), "amqps"),
    **dict.fromkeys(("mem", "memory", "inproc", "embedded"), "vm"),
}


@cache
def transport_class(scheme: str) -> type[Transport]:
    """The class behind a scheme. Raises ConfigError: no installed package offers the scheme."""
    try:
        loaded: type[Transport] = _entry_point(scheme).load()
    except ModuleNotFoundError as error:
        if (lacks := lacks_proton(error)) is None:
            raise
        raise ConfigError(f"{scheme}:// needs {lacks}") from error
    return loaded


def check_scheme(scheme: str) -> None:
    """Raise ConfigError where no installed package offers the scheme; imports nothing of the transport."""
    if scheme not in BUILT_IN:
        _entry_point(scheme)


def _entry_point(scheme: str) -> EntryPoint:
    if scheme in _ELSEWHERE:
        raise ConfigError(f"{scheme}:// {_ELSEWHERE[scheme]}")
    found = next(iter(entry_points(group=GROUP, name=scheme)), None)
    if found is None and scheme in BUILT_IN:
        found = EntryPoint(scheme, BUILT_IN[scheme], GROUP)
    if found is None:
        names = sorted({*BUILT_IN, *entry_points(group=GROUP).names})
        meant = nearest(scheme, names, _SYNONYMS)
        hint = f"; did you mean {meant}://?" if meant else ""
        known = ", ".join(f"{name}://" for name in names)
        raise ConfigError(f"{scheme}:// is not known{hint or f'; known are {known}'}")
    return found
