"""``redelivery policy``: what a broker's configuration file does with messages that fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Final

import typer

from redelivery import policies
from redelivery.cli.parts.shown import as_json as to_json
from redelivery.cli.parts.shown import complain, visible
from redelivery.cli.parts.target import Properties, values_of
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.operate import as_json, plot
from redelivery.operate.convert import TARGETS
from redelivery.operate.convert import convert as converted
from redelivery.operate.diff import diff as differences
from redelivery.operate.explain import explain as explained
from redelivery.operate.simulate import Simulation
from redelivery.operate.simulate import simulate as simulated
from redelivery.operate.table import table as table_of
from redelivery.policies.brokers.policies import BrokerPolicies

policy = typer.Typer(no_args_is_help=True)
_BESIDE: Final = 20  # columns of a drawing, for the numbers on its sides

File = Annotated[str, typer.Argument(metavar="FILE", help="A broker's configuration file, or a client's URL.")]
Before = Annotated[str, typer.Argument(metavar="OLD", help="A broker's configuration file, or a client's URL.")]
After = Annotated[str, typer.Argument(metavar="NEW", help="What it is compared with.")]
Destination = Annotated[
    str, typer.Argument(metavar="DESTINATION", help="Such as orders, topic://news, or address:jms.queue.orders.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Client = Annotated[
    str | None, typer.Option(help="The URL of a client, with its jms.redeliveryPolicy options, or its file.")
]


@policy.callback()
def about() -> None:
    """Read a broker's configuration file: what happens to a message that fails."""


@policy.command()
def explain(
    file: File,
    destination: Destination,
    client: Client = None,
    json_: AsJson = False,
    property: Properties = None,
) -> None:
    """Say which settings count for a destination, where they stand, and what they lead to."""
    with _errors("explain"):
        found = explained(_read(file, property), destination, None if client is None else _read(client, property))
        print(to_json(as_json.explained(found), 2) if json_ else visible(found, lines=True))


@policy.command()
def simulate(
    file: File,
    destination: Destination,
    client: Client = None,
    json_: AsJson = False,
    property: Properties = None,
) -> None:
    """Play a message that always fails: each attempt, when, who redelivers, and who decides in the end."""
    with _errors("simulate"):
        found = _simulation(file, destination, client, property)
        print(to_json(as_json.simulation(found), 2) if json_ else visible(found, lines=True))


@policy.command(name="plot")
def draw(
    file: File,
    destination: Destination,
    client: Client = None,
    output: Annotated[Path | None, typer.Option(help="A .png or .svg file; without it the terminal.")] = None,
    json_: AsJson = False,
    property: Properties = None,
) -> None:
    """Draw the attempts of a message that always fails."""
    if output is not None and output.suffix.lower() not in plot.KINDS:
        raise typer.BadParameter(f"{output}: a picture's name ends in {' or '.join(plot.KINDS)}", param_hint="--output")
    with _errors("plot"):
        found = _simulation(file, destination, client, property)
        if output is not None:
            plot.save(found, output)
        if json_:  # what is drawn
            print(to_json(as_json.simulation(found), 2))
        elif output is None:
            print(visible(plot.as_text(found, max(20, min(get_terminal_size().columns - _BESIDE, 120))), lines=True))


@policy.command()
def table(
    file: File,
    client: Client = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table of Markdown.")] = False,
    json_: AsJson = False,
    property: Properties = None,
) -> None:
    """List all destinations of a file: how often a message is tried, over how long, then where, and what expires."""
    if markdown and json_:
        raise typer.BadParameter("use --markdown or --json", param_hint="--markdown")
    with _errors("table"):
        found = table_of(_read(file, property), None if client is None else _read(client, property))
        if json_:
            print(to_json(found.as_dict(), 2))
        else:
            print(visible(found.as_markdown() if markdown else found, lines=True))


@policy.command()
def diff(
    before: Before,
    after: After,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit code 1 if any is treated differently, 2 for an error.")
    ] = False,
    json_: AsJson = False,
    property: Properties = None,
) -> None:
    """Say which destinations two configurations treat differently, and how."""
    with _errors("diff", 2 if exit_code else 1):
        found = differences(_read(before, property), _read(after, property))
        if json_:
            print(to_json(as_json.differences(found), 2))
        else:
            print(visible("\n".join(map(str, found)) or "no destination is treated differently", lines=True))
    if exit_code and found:
        raise typer.Exit(1)


@policy.command()
def convert(
    file: File,
    to: Annotated[str, typer.Option(metavar="|".join(TARGETS), help="The format.")],
    json_: AsJson = False,
    property: Properties = None,
) -> None:
    """Write the same rules in another format; what it cannot say is said on the standard error."""
    if to not in TARGETS:
        raise typer.BadParameter(f"{to!r}: use one of {', '.join(TARGETS)}", param_hint="--to")
    with _errors("convert"):
        found = converted(_read(file, property), to)
        if json_:
            print(to_json({"text": found.text, "lost": list(found.lost)}, 2))
            return
        text = found.text.removesuffix("\n")
        print(visible(text, lines=True) if sys.stdout.isatty() else text)
        for each in found.lost:
            print(f"lost: {visible(each)}", file=sys.stderr)


def _simulation(file: str, destination: str, client: str | None, properties: list[str] | None) -> Simulation:
    return simulated(_read(file, properties), destination, None if client is None else _read(client, properties))


def _read(file: str, properties: list[str] | None) -> BrokerPolicies:
    return policies.read(file, properties=values_of(properties))


@contextmanager
def _errors(command: str, code: int = 1) -> Iterator[None]:
    """An error becomes a line for each problem; exit code 2 where the arguments are wrong, else ``code``."""
    try:
        yield
    except InvalidDestinationError as error:
        complain(f"policy {command}", error)
        raise typer.Exit(2) from None
    except ConfigError as error:
        complain(f"policy {command}", error)
        raise typer.Exit(code) from None
