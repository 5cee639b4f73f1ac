"""ActiveMQ's spelling of a reconnect policy: the options of its failover transport, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.checks import LONG_MAX, read_whole
from redelivery.policies.kinds import FLAG, Kind, Names, number, read_all, whole

_LONGEST: Final = 10**15  # milliseconds, 31,688 years: what a timedelta can hold


def _duration(name: str, value: object) -> timedelta:
    return timedelta(milliseconds=min(read_whole(name, value, 0, LONG_MAX), _LONGEST))


def _timeout(name: str, value: object) -> timedelta | None:
    # 0 is no limit in Java as well, where only a time-out above 0 is looked at.
    return None if read_whole(name, value, -1, LONG_MAX) <= 0 else _duration(name, value)


_LIMIT: Final = whole(-1)
_INTERVAL: Final = Kind(lambda name, value: max(_LIMIT.read(name, value), 0))
_MULTIPLIERS: Final = ("reconnectDelayExponent", "backOffMultiplier")  # the option and the field behind it
_BEAN: Final[Names] = {
    "initialReconnectDelay": ("initial_delay", Kind(_duration)),
    "maxReconnectDelay": ("maximum_delay", Kind(_duration)),
    "useExponentialBackOff": ("use_exponential_back_off", FLAG),
    **dict.fromkeys(_MULTIPLIERS, ("multiplier", number(1.0))),
    "maxReconnectAttempts": ("maximum_attempts", _LIMIT),
    "startupMaxReconnectAttempts": ("startup_maximum_attempts", _LIMIT),
    "warnAfterReconnectAttempts": ("warn_after_attempts", _INTERVAL),
    "timeout": ("timeout", Kind(_timeout)),
    "randomize": ("randomize", FLAG),
    "priorityBackup": ("priority_backup", FLAG),
}
RECONNECT_OPTIONS: Final = tuple(_BEAN)
_SYNONYMS: Final[Mapping[str, str]] = {
    "reconnectDelay": "initialReconnectDelay",
    "maximumReconnectDelay": "maxReconnectDelay",
    "maximumReconnectAttempts": "maxReconnectAttempts",
    "sendTimeout": "timeout",
    "shuffle": "randomize",
    "useReconnectBackOff": "useExponentialBackOff",  # this one and the following: Qpid JMS
    "reconnectBackOffMultiplier": "reconnectDelayExponent",
    **{f"failover.{name}": name for name in _BEAN},
}

_NO_SPARES: Final = "no spare connections are kept; every URL of the list is tried when the connection is lost"
_NO_REPLAY: Final = "no message is sent again unasked: a send without confirmation raises, and the application decides"
_OPENWIRE: Final = "brokers announce other brokers to OpenWire clients only; write all URLs into the list"
_REFUSED: Final[Mapping[str, str]] = {
    "backup": _NO_SPARES,
    "backupPoolSize": _NO_SPARES,
    "trackMessages": _NO_REPLAY,
    "maxCacheSize": _NO_REPLAY,
    "updateURIsSupported": _OPENWIRE,
    "rebalanceUpdateURIs": _OPENWIRE,
    "updateURIsURL": "the list is not read from a file while connected; write all URLs into the list",
    "reconnectSupported": "brokers ask only OpenWire clients to reconnect to another one",
    "trackTransactionProducers": "a transaction ends with its connection, and nothing of it is sent again unasked",
}


def check_reconnect_names(names: Iterable[str], prefix: str = "", *, others: Iterable[str] = ()) -> None:
    """Raise ConfigError for an option that does not exist here.

    ``others``: what else may stand beside these options; it only appears in the error.
    """
    given = list(names)
    for name in given:
        if name in _REFUSED:
            raise ConfigError(f"{prefix}{name} does not exist here: {_REFUSED[name]}. Remove {prefix}{name}")
        if name not in _BEAN:
            known = [*(prefix + each for each in _BEAN), *others]
            synonyms = {prefix + other: prefix + ours for other, ours in _SYNONYMS.items()}
            raise ConfigError(unknown_option(prefix + name, known, synonyms))
    if all(name in given for name in _MULTIPLIERS):
        exponent, multiplier = (prefix + name for name in _MULTIPLIERS)
        raise ConfigError(f"{exponent} and {multiplier} are the same option: leave one of them out")


def read_reconnect_policy(options: Mapping[str, object], prefix: str) -> dict[str, Any]:
    """Keyword arguments of a ReconnectPolicy. Raises ConfigError that names the option, ``prefix`` included."""
    check_reconnect_names(options, prefix)
    return read_all(_BEAN, options, prefix)
