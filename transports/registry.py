"""Which transport a URL scheme means: an entry point of the group ``redelivery.transports``, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from redelivery.model.errors import ConfigError
from redelivery.transports.base import Transport

GROUP = "redelivery.transports"


@cache
def transport_class(scheme: str) -> type[Transport]:
    """The class behind a scheme.

    Raises:
        ConfigError: no installed package offers the scheme.
    """
    found = entry_points(group=GROUP, name=scheme)
    if not found:
        known = ", ".join(sorted(f"{name}://" for name in entry_points(group=GROUP).names))
        raise ConfigError(f"no transport for {scheme}:// is installed; known are {known}")
    loaded: type[Transport] = next(iter(found)).load()
    return loaded
