"""``redelivery top``: queues, rates, consumers, retries and dead letters, look after look."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Final, Protocol

import typer

from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.target import AsJson
from redelivery.cli.watching.screen import screen
from redelivery.cli.watching.views import JsonView, LookView, PlainView, shown
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.watching.app import AppWatch
from redelivery.operate.watching.broker import BrokerWatch
from redelivery.operate.watching.rates import Column, Look, chosen, rows

_LONGEST: Final = 10.0  # seconds between two attempts to connect


class Watches(Protocol):
    """A source of looks."""

    def poll_once(self) -> Look:
        """Look once. Raises JMSError: it is not there, or says nothing."""


@with_broker("top", needed=False)
def top(
    *,
    broker: Broker | None,
    app: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An application that serves metrics, and no broker: http://host:port."),
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option(help="Only this queue, or those that it matches: orders.*; again for more.")
    ] = None,
    sort: Annotated[Column | None, typer.Option(help="The column whose largest numbers come first.")] = None,
    interval: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Between two looks.")] = 2.0,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many looks.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once, as --count 1 does.")] = False,
    json_: AsJson = False,
) -> None:
    """Watch queues until Ctrl-C: depths, what comes and goes per second, consumers, retries, dead letters.

    With --app it is what the listeners of an application do that runs with --health-port.

    No look takes a message or counts as a delivery. What the broker does not say is shown as a dash, with the reason.
    Where no terminal is, each look is a plain table; --json prints one object in a line for each.
    """
    if once and count not in (None, 1):
        raise ConfigError(f"--once and --count {count}: give one of them")
    if app is None and broker is None:
        raise ConfigError("name the broker (--url), or an application (--app)")
    names, most = queue or (), 1 if once else count
    watched_app = None if app is None else AppWatch(app)

    @contextmanager
    def watching() -> Iterator[Watches]:
        if watched_app is not None:
            yield watched_app
        elif broker is not None:
            with broker.connect() as connection:
                yield BrokerWatch(connection, names)

    if json_ or not _is_screen():
        _show(watching, JsonView() if json_ else PlainView(), _wait, names, sort, interval, most)
        return
    with screen() as view:
        _show(watching, view, view.wait, names, sort, interval, most)


def _show(
    watching: Callable[[], AbstractContextManager[Watches]],
    view: LookView,
    wait: Callable[[float], bool],
    names: list[str] | tuple[()],
    sort: str | None,
    interval: float,
    most: int | None,
) -> None:
    """Look and print until it is enough.

    Raises:
        JMSError: the first look failed; or another one, where so many were asked for.
    """
    before: Look | None = None
    looks = failed = 0
    while True:
        try:
            with watching() as watched:
                while True:
                    found = watched.poll_once()
                    kept = chosen(rows(before, found), names, sort or ("in" if found.facts else "messages"))
                    view.show(shown(found, kept, first=before is None, interval=interval))
                    before, looks, failed = found, looks + 1, 0
                    if looks == most or not wait(interval):
                        return
        except ConfigError:
            raise
        except JMSError as error:
            if before is None or most is not None:
                raise
            failed += 1
            pause = min(_LONGEST, 0.5 * 2**failed)
            view.lost(error, pause)
            if not wait(pause):
                return


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _is_screen() -> bool:
    """Check whether a terminal shows what is printed, and has another screen; Windows' has none that we could use."""
    return sys.platform != "win32" and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
