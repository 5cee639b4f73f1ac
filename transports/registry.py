"""Which transport a URL scheme means: an entry point of the group ``redelivery.transports``, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from redelivery.model.errors import ConfigError
from redelivery.transports.base import Transport

GROUP = "redelivery.transports"
_OPENWIRE = "is OpenWire, which only ActiveMQ's own clients speak; the same broker's STOMP is stomp://host:61613"
_ELSEWHERE = {
    "tcp": _OPENWIRE,
    "ssl": _OPENWIRE.replace("stomp://host:61613", "stomp+ssl://host:61614"),
    "nio": _OPENWIRE,
}
_EXTRAS = {"proton": "amqp", "cproton": "amqp", "cproton_ffi": "amqp"}  # the module that is missing, and who brings it


@cache
def transport_class(scheme: str) -> type[Transport]:
    """The class behind a scheme.

    Raises:
        ConfigError: no installed package offers the scheme.
    """
    if scheme in _ELSEWHERE:
        raise ConfigError(f"{scheme}:// {_ELSEWHERE[scheme]}")
    found = entry_points(group=GROUP, name=scheme)
    if not found:
        known = ", ".join(sorted(f"{name}://" for name in entry_points(group=GROUP).names))
        raise ConfigError(f"no transport for {scheme}:// is installed; known are {known}")
    try:
        loaded: type[Transport] = next(iter(found)).load()
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise ConfigError(
            f"{scheme}:// needs a package that is not installed: pip install 'redelivery[{extra}]'"
        ) from error
    return loaded
