"""The commands and their options."""

from __future__ import annotations

import logging
import sys
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.console import Console

from redelivery.cli.demo import Demo
from redelivery.cli.demo_spark import SparkJob, missing
from redelivery.cli.lines import JsonView, LineView
from redelivery.cli.run import NoAppError, load
from redelivery.cli.view import LiveView
from redelivery.model.errors import ConfigError, JMSError
from redelivery.model.version import version

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"redelivery {version()}")
        raise typer.Exit


@app.callback()
def redelivery(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """JMS-style messaging: what fails is redelivered, what keeps failing is dead-lettered."""


@app.command()
def demo(
    url: Annotated[
        str | None,
        typer.Option(help="Run on this broker, like stomp://user:password@host:61613, instead of an embedded one."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print events as JSON lines.")] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="End with a Spark stream that reads the dead letters into a table.")
    ] = False,
) -> None:
    """Send orders of which some fail, and watch them being redelivered or dead-lettered. Takes less than 20 s.

    With --url it works in two queues of its own, whose names no other run uses, and leaves them empty.
    """
    if spark:
        _check_spark(url)
    # The view shows what the library would log.
    logging.getLogger("redelivery").addHandler(logging.NullHandler())
    console = Console()
    view = JsonView() if json else LiveView(console) if console.is_terminal else LineView()
    try:
        with view, SparkJob(view) if spark else nullcontext() as job:
            summary = Demo(view, spark=job.read if job else None).run(url)
    except JMSError as error:
        for line in (str(error), *getattr(error, "__notes__", ())):
            print(f"redelivery demo: {line}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("redelivery demo: interrupted", file=sys.stderr)
        raise typer.Exit(130) from None
    raise typer.Exit(1 if summary.problems else 0)


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="MODULE:APP", help="A redelivery.App, such as shop.workers:app.")],
    drain_timeout: Annotated[float, typer.Option(help="Seconds in which handlers finish what is in hand.")] = 30.0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log at DEBUG, and not at INFO.")] = False,
) -> None:
    """Run the listeners of an application until SIGTERM or Ctrl-C: the first one finishes what is in hand."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("redelivery").setLevel(logging.DEBUG if verbose else logging.INFO)
    try:
        load(name).run(drain_timeout=drain_timeout)
    except (NoAppError, ConfigError) as error:
        print(f"redelivery run: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except JMSError as error:
        for line in (str(error), *getattr(error, "__notes__", ())):
            print(f"redelivery run: {line}", file=sys.stderr)
        raise typer.Exit(1) from None


def _check_spark(url: str | None) -> None:
    """End with one line where the demo could not end with Spark."""
    reason = missing()
    if reason is None and url is not None and url.startswith("vm:"):
        reason = f"a broker that other processes can reach, which {url} is not: leave --url out, or name a real broker"
    if reason is not None:
        print(f"redelivery demo: --spark needs {reason}", file=sys.stderr)
        raise typer.Exit(2)
