"""Looking into queues: what it costs is said before it is done, and where it can lose a message it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from redelivery import Connection
from redelivery.cli.parts.broker import Broker
from redelivery.cli.parts.shown import complain, visible
from redelivery.cli.parts.target import NothingError
from redelivery.model.destinations import Destination, Queue
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, UnsupportedError
from redelivery.operate.management.browsing import keep, looked_into_by
from redelivery.operate.management.interface import MOST, ManagedQueue, Management
from redelivery.operate.management.opening import management_of


@contextmanager
def looking(command: str, broker: Broker, queue: str, *, yes: bool, needed: bool = True) -> Iterator[Connection]:
    """A connection on which this queue may be looked into.

    ``needed``: the command cannot do without; otherwise a look that counts as a delivery is left out.

    Raises:
        UnsupportedError: it cannot be looked into.
        NothingError: there is no such queue.
        Exit, ConfigError: it is not to be looked into at this price; the latter where nobody can be asked.
    """
    with broker.connect() as connection:
        may_look(command, connection, parse_destination(queue), yes=yes, needed=needed)
        yield connection


def may_look(command: str, connection: Connection, queue: Destination, *, yes: bool, needed: bool = True) -> None:
    """Say what a look into this queue costs, and ask where it counts. As `looking`."""
    try:
        management = looked_into_by(connection)
        if not isinstance(queue, Queue):
            return
        if management is None:  # a browser would make it, where the broker makes each queue that is used
            several = queue.is_pattern or len(queue.parts) > 1
            asked = None if several else management_of(connection)
            if asked is not None and asked.queue(queue.name) is None:
                raise NothingError(f"{queue}: {asked.name} has no such queue")
            return
        found = management.queue(queue.name)
        if found is None:
            raise NothingError(f"{queue}: {management.name} has no such queue")
        cost = management.cost(found)
    except UnsupportedError:
        if needed:
            raise
        return
    if cost.counts and not needed:
        return
    if cost.counts and not yes:
        _ask(f"{queue}: {cost}")
    elif cost.says:
        complain(command, f"{queue}: {cost}")
    _say_bound(command, found, management)
    keep(connection, queue)


def at_terminal() -> bool:
    """Check whether somebody can be asked."""
    return sys.stdin.isatty()


def _ask(cost: str) -> None:
    if not at_terminal():
        raise ConfigError(f"{cost}: add --yes to look all the same")
    if not typer.confirm(visible(f"{cost}. Look all the same?"), err=True):
        raise typer.Exit(1)


def _say_bound(command: str, queue: ManagedQueue, management: Management) -> None:
    if (queue.ready or 0) > MOST:
        complain(command, f"{queue.name} has {queue.ready} messages: {management.name} shows the first {MOST} at most")
