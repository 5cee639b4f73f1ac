"""The embedded brokers of this process, by name: what ``vm://name`` finds or starts."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from os.path import realpath
from pathlib import Path
from typing import Protocol

from redelivery.broker.core import BrokerConnection, Core
from redelivery.model.errors import ConnectError, IllegalStateError


class RunningBroker(Protocol):
    """An embedded broker that was started; ``store`` is the file that it keeps its messages in."""

    name: str
    store: Path | None
    core: Core

    def close(self) -> None:
        """End it. Idempotent."""


log = logging.getLogger(__name__)
_lock = threading.RLock()  # it is held while a broker is started, which registers itself
_running: dict[str, RunningBroker] = {}
_started_by_us: set[RunningBroker] = set()
_parents: set[str] = set()  # the names of those that ran before a fork()


def register(broker: RunningBroker) -> None:
    """Make a started broker known. Raises IllegalStateError: another broker of that name runs in this process."""
    with _lock:
        other = _running.get(broker.name)
        if other is not None:
            how = f"by the first connection to vm://{broker.name}" if other in _started_by_us else "by EmbeddedBroker"
            raise IllegalStateError(
                f"an embedded broker named {broker.name!r} already runs in this process, started {how};"
                " close it first or choose another name"
            )
        _running[broker.name] = broker


def unregister(broker: RunningBroker) -> None:
    """Forget a broker. Idempotent."""
    with _lock:
        _started_by_us.discard(broker)
        if _running.get(broker.name) is broker:
            del _running[broker.name]


def remark(broker: RunningBroker) -> str:
    """The text on how long a broker's messages stay that a connection started without a store; "" for any other."""
    if broker.store is not None or broker not in _started_by_us:
        return ""
    return f"messages end with the last connection to vm://{broker.name}"


def running(name: str) -> RunningBroker | None:
    """The broker of that name, if one runs in this process."""
    with _lock:
        return _running.get(name)


def join(
    name: str,
    connection: BrokerConnection,
    client_id: str | None,
    start: Callable[[], RunningBroker] | None,
    store: str | None = None,
) -> RunningBroker:
    """Connect to the broker of that name; if there is none, to the one that ``start`` makes.

    Raises:
        ConnectError: there is none, and ``start`` is None; or it does not keep its messages in ``store``.
        InvalidClientIDError: another connection holds the client id.
    """
    with _lock:
        broker = _running.get(name)
        if broker is None:
            if start is None:
                raise ConnectError(
                    f"vm://{name}: no embedded broker of that name runs in this process, and create=false"
                )
            broker = start()
            if name in _parents:
                log.warning(
                    "vm://%s: the broker of that name was started before fork() and is the parent's; this process has"
                    " another one now, whose messages the parent does not see",
                    name,
                )
            _started_by_us.add(broker)
        if store is not None and (broker.store is None or realpath(broker.store) != realpath(store)):
            kept = "without a store" if broker.store is None else f"with store={str(broker.store)!r}"
            raise ConnectError(f"vm://{name}?store={store}: the embedded broker of that name runs {kept}")
        broker.core.connect(connection, client_id)
        return broker


def leave(broker: RunningBroker, connection: BrokerConnection) -> None:
    """Disconnect; a broker that was started by a connection ends with the last one, as ActiveMQ's does."""
    with _lock:
        broker.core.disconnect(connection)
        last = broker in _started_by_us and broker.core.connections == 0
        if last:
            unregister(broker)
    if last:
        broker.close()


def _after_fork() -> None:
    """Note that the brokers are the parent's; the core of each says so."""
    global _lock
    _lock = threading.RLock()
    _parents.update(_running)
    _running.clear()
    _started_by_us.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
