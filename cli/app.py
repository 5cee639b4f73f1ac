"""The commands and their options."""

from __future__ import annotations

import logging
import sys
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.console import Console

from redelivery.broker import EmbeddedBroker
from redelivery.cli.broker import serve
from redelivery.cli.console import console
from redelivery.cli.demo.orders import Demo
from redelivery.cli.demo.outage import DemoOutage
from redelivery.cli.demo.spark import missing, spark_job
from redelivery.cli.demo.view import View
from redelivery.cli.dlq.commands import dlq
from redelivery.cli.doctor import doctor
from redelivery.cli.messages import browse, receive, send, tail
from redelivery.cli.parts.broker import Broker, with_another_broker, with_broker_or_none
from redelivery.cli.parts.shown import complain, log_visibly, visible
from redelivery.cli.parts.target import Properties, values_of
from redelivery.cli.policy import policy
from redelivery.cli.run import BrokenModuleError, NoAppError, load
from redelivery.cli.subscriptions import unsubscribe
from redelivery.cli.watching.top import top
from redelivery.model.errors import ConfigError
from redelivery.model.version import VERSION

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
for each in (send, receive, browse, tail, unsubscribe):
    app.command()(each)
app.add_typer(dlq, name="dlq")
app.add_typer(policy, name="policy")
app.command()(doctor)
app.command()(console)
app.command()(top)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"redelivery {VERSION}")
        raise typer.Exit


@app.callback()
def redelivery(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """JMS-style messaging: what fails is redelivered, what keeps failing is dead-lettered."""


@app.command()
@with_broker_or_none("demo", "Run on this broker, like stomp://user:password@host:61613, instead of an embedded one.")
def demo(
    *,
    broker: Broker | None,
    json: Annotated[bool, typer.Option("--json", help="Print events as JSON lines.")] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="End with a Spark stream that reads the dead letters into a table.")
    ] = False,
    outage: Annotated[
        bool, typer.Option("--outage", help="Show something else: a broker that is killed, and comes back.")
    ] = False,
) -> None:
    """Send orders of which some fail, and watch them being redelivered or dead-lettered. Takes less than 20 s.

    With --url it works in two queues of its own, whose names no other run uses, and leaves them empty.
    """
    url = None if broker is None else broker.url
    if spark:
        _check_spark(url)
    if outage and (spark or url is not None):
        print("redelivery demo: --outage kills a broker of its own: leave --url and --spark out", file=sys.stderr)
        raise typer.Exit(2)
    # The view shows what the library would log.
    logging.getLogger("redelivery").addHandler(logging.NullHandler())
    options = None if broker is None else broker.options
    try:
        with View(Console(), as_json=json) as view, spark_job(view) if spark else nullcontext() as job:
            summary = DemoOutage(view).run() if outage else Demo(view, spark=job).run(url, options)
    except ConfigError as error:
        complain("demo", error)
        raise typer.Exit(1) from None
    raise typer.Exit(1 if summary["problems"] else 0)


@app.command()
@with_another_broker("run", "Another broker than the app's own.")
def run(
    name: Annotated[str, typer.Argument(metavar="MODULE:APP", help="A redelivery.App, such as shop.workers:app.")],
    *,
    broker: Broker,
    drain_timeout: Annotated[
        float, typer.Option(help="Seconds for handlers to finish the messages being handled.")
    ] = 30.0,
    health_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Serve /live, /ready and /metrics there; 0: a free port."),
    ] = None,
    health_bind: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address on which they are served.")
    ] = "0.0.0.0",  # noqa: S104  # an orchestrator asks from another address
    verbose: Annotated[bool, typer.Option("--verbose", help="Log at DEBUG, and not at INFO.")] = False,
) -> None:
    """Run the listeners of an application until SIGTERM or Ctrl-C: the first one finishes the messages
    being handled.

    What is said of the broker goes before what the app says.
    """
    log_visibly()
    logging.getLogger("redelivery").setLevel(logging.DEBUG if verbose else logging.INFO)
    try:
        found = load(name)
        if broker.url or broker.options:
            found = found.connecting(broker.url or None, **broker.options)
        found.run(drain_timeout=drain_timeout, health_port=health_port, health_bind=health_bind)
    except NoAppError as error:
        raise ConfigError(str(error)) from None
    except BrokenModuleError as error:
        complain("run", f"{name.partition(':')[0]} cannot be imported:")
        print(visible(error, lines=True), file=sys.stderr)
        raise typer.Exit(1) from None


@app.command()
def broker(
    store: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep messages in this file; without it they end with the process."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Obey the redelivery rules of this file of another broker."),
    ] = None,
    stomp: Annotated[int | None, typer.Option(metavar="PORT", help="Listen for STOMP; 0 takes a free port.")] = None,
    amqp: Annotated[int | None, typer.Option(metavar="PORT", help="Listen for AMQP 1.0; 0 takes a free port.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print its URLs as one line of JSON.")] = False,
    property: Properties = None,
) -> None:
    """Run an embedded broker on 127.0.0.1 until SIGTERM or Ctrl-C."""
    if stomp is None and amqp is None:
        print("redelivery broker: pass --stomp PORT, --amqp PORT or both (0 for a free port)", file=sys.stderr)
        raise typer.Exit(2)
    values = values_of(property)
    log_visibly()
    try:
        made = EmbeddedBroker(
            "broker", stomp_port=stomp, amqp_port=amqp, store=store, config=config, properties=values or None
        )
        code = serve(made, as_json=json)
    except ConfigError as error:
        complain("broker", error)
        raise typer.Exit(2) from None
    raise typer.Exit(code)


def _check_spark(url: str | None) -> None:
    """End with one line where the demo could not end with Spark."""
    reason = missing()
    if reason is None and url is not None and url.startswith("vm:"):
        reason = f"a broker that other processes can reach, which {url} is not: leave --url out, or name a real broker"
    if reason is not None:
        complain("demo", f"--spark needs {reason}")
        raise typer.Exit(2)
