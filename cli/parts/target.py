"""The base of all commands: their arguments, placeholders of a file, and what an error means for the exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from redelivery.cli.parts.shown import complain
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, InvalidDestinationError, InvalidSelectorError, JMSError

INTERRUPTED: Final = 128 + signal.SIGINT
_USAGE: Final = (ConfigError, InvalidDestinationError, InvalidSelectorError)

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="A queue, such as orders, or topic://news.")]
Where = Annotated[str | None, typer.Option("--where", metavar="SELECTOR", help="Only messages of this JMS selector.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Properties = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="NAME=VALUE", help="The value of a placeholder ${NAME}; may be given again."),
]


def values_of(properties: list[str] | None) -> dict[str, str]:
    """The values of placeholders by their names. Raises typer.BadParameter: one is not NAME=VALUE."""
    given = [each.partition("=") for each in properties or ()]
    for name, equals, value in given:
        if not name or not equals:
            raise typer.BadParameter(f"{name + value!r}: use NAME=VALUE", param_hint="--property")
    return {name: value for name, _, value in given}


class NothingError(JMSError):
    """Nothing is there, or nothing is what was meant: it is said, and the exit code is 1."""


def nothing_in(queue: Destination, meant: str | None = None) -> NothingError:
    """The error of a command that found nothing; ``meant``: what was asked for beside the queue."""
    if meant is None:
        return NothingError(f"{queue} has no messages: it is empty, or there is no such queue")
    return NothingError(f"{queue} has nothing that matches {meant}, or there is no such queue")


@contextmanager
def outcome(command: str) -> Iterator[None]:
    """Exit code 2 where an argument is wrong, 1 where the broker refuses or fails, 130 after Ctrl-C.

    Where the reader of the standard output has gone, the command has done what was wanted.
    """
    try:
        yield
        sys.stdout.flush()
    except _USAGE as error:
        _complain(command, error, *getattr(error, "__notes__", ()))
        raise typer.Exit(2) from None
    except JMSError as error:
        _complain(command, error, *getattr(error, "__notes__", ()))
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__context__, EOFError):  # a question that nobody can answer
            raise
        print(f"redelivery {command}: interrupted", file=sys.stderr)
        _complain(command, *getattr(error, "__notes__", ()))
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains of it at its end
        raise typer.Exit(0) from None


def _complain(command: str, *texts: object) -> None:
    for each in texts:
        complain(command, each)
