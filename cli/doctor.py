"""``redelivery doctor``: what will hurt, before it does."""

from __future__ import annotations

from typing import Annotated

import typer

from redelivery import policies
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.shown import as_json, complain, visible
from redelivery.cli.parts.target import Properties, values_of
from redelivery.model.errors import ConfigError
from redelivery.operate.doctor.doctor import examine


@with_broker("doctor")
def doctor(
    *,
    broker: Broker,
    config: Annotated[str | None, typer.Option(help="The broker's configuration file.")] = None,
    queue: Annotated[list[str] | None, typer.Option(help="A queue to look at; may be given again.")] = None,
    client: Annotated[str | None, typer.Option(help="The URL of a client that redelivers by itself.")] = None,
    watch: Annotated[float, typer.Option(min=0, help="Seconds between two looks at the queues; 0: one look.")] = 1.0,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    property: Properties = None,
) -> None:
    """Look at a broker and its configuration: what loses messages, or will. Exit code 1 if anything is an error."""
    values = values_of(property)
    try:
        rules = None if config is None else policies.read(config, properties=values, strict=False)
        of_client = None if client is None else policies.read(client, properties=values)
    except ConfigError as error:
        complain("doctor", error)
        raise typer.Exit(1) from None
    report = examine(broker.url, rules, queues=queue or (), client=of_client, watch=watch, options=broker.options)
    print(as_json(report.as_dict(), 2) if json_ else visible(report, lines=True))
    raise typer.Exit(1 if report.failed else 0)
