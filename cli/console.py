"""``redelivery console``: dead letters in a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from redelivery import policies
from redelivery.cli.dlq.options import Receipts
from redelivery.cli.parts.broker import Broker, with_brokers
from redelivery.cli.parts.shown import log_visibly
from redelivery.cli.parts.target import Properties, values_of
from redelivery.cli.parts.work import state_folder
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError

_TOKEN: Final = "REDELIVERY_CONSOLE_TOKEN"  # noqa: S105  # the name of a variable


@with_brokers("console")
def console(
    *,
    brokers: list[Broker],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where it listens; 0 takes a free port.")] = 8161,
    bind: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen there, too, for other machines; needs a token.")
    ] = "127.0.0.1",
    host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name by which browsers reach it; may be given again.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Its first line is the token of the console; else {_TOKEN} has it."),
    ] = None,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Letters may be replayed, edited, moved and deleted.")
    ] = False,
    queue: Annotated[list[str] | None, typer.Option(help="A queue to look at, too; may be given again.")] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="The broker's configuration file.")] = None,
    property: Properties = None,
    receipts: Receipts = None,
) -> None:
    """Show dead letters in a browser, on this machine only; --url may be given again for more brokers.

    It only looks, unless --allow-writes is given. Until SIGTERM or Ctrl-C.
    """
    try:
        from redelivery.web import server
        from redelivery.web.application import console as application
        from redelivery.web.asked import ConsoleSettings
        from redelivery.web.sites import sites_of
    except ModuleNotFoundError as error:
        raise ConfigError(f"the console needs {error.name}: install the extra, redelivery[console]") from error

    token = _token(token_file)
    if token is None and not server.is_loopback(bind):
        raise ConfigError(
            f"--bind {bind}: others could reach the console: give it a token, by --token-file or {_TOKEN}"
        )
    for each in brokers:
        each.check_stays()
    settings = ConsoleSettings(
        sites_of((each.url, each.options) for each in brokers),
        *((state_folder() / "receipts", state_folder()) if receipts is None else (receipts, receipts)),
        None if config is None else policies.read(config, properties=values_of(property), strict=False),
        tuple(map(parse_destination, queue or ())),
        allow_writes,
    )
    log_visibly()
    app = application(settings, hosts=server.known_as(bind, tuple(host or ())), token=token)
    listener = server.listening(bind, port)
    shown = f"[{bind}]" if ":" in bind else bind
    may = "letters may be changed" if allow_writes else "it only looks"
    print(f"redelivery console: http://{shown}:{listener.getsockname()[1]}/ ({may})", flush=True)
    raise typer.Exit(server.serve(app, listener))


def _token(file: Path | None) -> str | None:
    """The token; None: there is none. Raises ConfigError: the file cannot be read, or is empty."""
    if file is None:
        return os.environ.get(_TOKEN) or None
    try:
        found = file.read_text(encoding="utf-8").split("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file: {error}") from error
    if not found:
        raise ConfigError(f"--token-file: the first line of {file} is empty")
    return found
