"""``redelivery doctor``: what will hurt, before it does."""

from __future__ import annotations

from typing import Annotated

import typer

from redelivery import policies
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.shown import as_json, complain, visible
from redelivery.cli.parts.target import Properties, values_of
from redelivery.model.errors import ConfigError
from redelivery.operate.doctor.doctor import examine, examine_file


@with_broker("doctor", needed=False)
def doctor(
    *,
    broker: Broker | None,
    config: Annotated[
        str | None, typer.Option(help="The broker's configuration file; checked alone without --url.")
    ] = None,
    queue: Annotated[list[str] | None, typer.Option(help="A queue to look at; may be given again.")] = None,
    client: Annotated[str | None, typer.Option(help="The URL of a client that redelivers by itself.")] = None,
    watch: Annotated[float, typer.Option(min=0, help="Seconds between two looks at the queues; 0: one look.")] = 1.0,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    property: Properties = None,
) -> None:
    """Look at a broker, its configuration, or both: what loses messages, or will.

    Exit code 0 where nothing is an error, 1 where something is or the file cannot be read, 2 for a wrong argument.
    """
    if broker is None and config is None:
        raise ConfigError("name the broker (--url), its configuration file (--config), or both")
    values = values_of(property)
    try:
        rules = None if config is None else policies.read(config, properties=values, strict=False)
        of_client = None if client is None else policies.read(client, properties=values)
    except ConfigError as error:
        complain("doctor", error)
        raise typer.Exit(1) from None
    if broker is not None:
        report = examine(broker.url, rules, queues=queue or (), client=of_client, watch=watch, options=broker.options)
    elif rules is not None:
        report = examine_file(rules, queues=queue or (), client=of_client)
    print(as_json(report.as_dict(), 2) if json_ else visible(report, lines=True))
    raise typer.Exit(1 if report.failed else 0)
