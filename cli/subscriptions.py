"""``redelivery unsubscribe``: the end of a durable subscription that is no longer needed."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Final

import typer

from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.shown import visible
from redelivery.model.errors import (
    ConfigError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    UnsupportedError,
)

_USED: Final = "stop the query, or the application, that consumes it, and do it again"
_TOPIC: Final = "with --topic, its topic, this command consumes it for a moment and then removes it"


@with_broker("unsubscribe")
def unsubscribe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The subscription, such as audit.")],
    *,
    broker: Broker,
    client_id: Annotated[
        str | None, typer.Option(metavar="ID", help="The client id that it belongs to; without it, NAME.")
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="It is a shared one, which belongs to no client id without --client-id.")
    ] = False,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Its topic, for a broker that finds a shared one only by that.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a durable subscription of a topic, with what it holds; until then the broker fills it.

    Exit code 1 where it has a consumer, 2 where there is none.
    """
    owner = name if client_id is None and not shared else client_id
    whose = "" if owner is None else f" of client id {owner}"
    if topic is not None and not shared:
        raise ConfigError("--topic has no effect without --shared: another one is found by its name and client id")
    if not yes:
        question = f"remove the subscription {name}{whose}, with the messages that it holds"
        if not sys.stdin.isatty():
            raise ConfigError(f"this would {question}: add --yes")
        if not typer.confirm(visible(f"{question.capitalize()}?"), err=True):
            raise typer.Exit(1)
    try:
        sure = _remove(name, owner, topic, broker, shared=shared)
    except (IllegalStateError, InvalidClientIDError) as error:
        error.add_note(_USED)
        raise
    except UnsupportedError as error:
        if shared and topic is None:
            error.add_note(_TOPIC)
        raise
    unless = "" if sure else ", unless another connection consumes it: this broker does not say so"
    print(visible(f"the subscription {name}{whose} is removed{unless}"))


def _remove(name: str, owner: str | None, topic: str | None, broker: Broker, *, shared: bool) -> bool:
    """True: it is gone; False: a broker that does not tell keeps it where another connection consumes it."""
    named = broker if owner is None else replace(broker, options={**broker.options, "client_id": owner})
    with named.connect() as connection, connection.session() as session:
        if topic is not None:
            session.shared_durable_consumer(topic if "://" in topic else f"topic://{topic}", name).close()
        session.unsubscribe(name)
        if not shared:
            return True
        try:
            session.unsubscribe(name)  # a broker may confirm it where others consume a shared one, and keep it
        except InvalidDestinationError:
            return True
        except UnsupportedError:
            return False
        raise IllegalStateError(f"the subscription {name} stays: another connection consumes it")
