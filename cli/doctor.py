"""``redelivery doctor``: what will hurt, before it does."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from redelivery import policies
from redelivery.cli.target import Properties, values_of
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.operate.doctor.doctor import examine


def doctor(
    url: Annotated[str, typer.Option(envvar="REDELIVERY_URL", help="The broker, such as amqp://user:password@host.")],
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
        _complain(error)
        raise typer.Exit(1) from None
    try:
        report = examine(url, rules, queues=queue or (), client=of_client, watch=watch)
    except (ConfigError, InvalidDestinationError) as error:
        _complain(error)
        raise typer.Exit(2) from None
    print(json.dumps(report.as_dict(), indent=2, ensure_ascii=False) if json_ else report)
    raise typer.Exit(1 if report.failed else 0)


def _complain(error: ConfigError | InvalidDestinationError) -> None:
    for line in str(error).splitlines():
        print(f"redelivery doctor: {line}", file=sys.stderr)
