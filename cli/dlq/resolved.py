"""``redelivery dlq resolved``: says of a group that it is repaired, so that a letter of it is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from redelivery.cli.messages import stamp
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.shown import as_json, complain, visible
from redelivery.cli.parts.tables import print_table
from redelivery.cli.parts.target import AsJson
from redelivery.cli.parts.work import state_folder
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.states.resolved import Resolution, Resolutions
from redelivery.operate.letters.states.seen import SeenFingerprints

Kept = Annotated[
    Path | None,
    typer.Option(
        "--receipts", envvar="REDELIVERY_RECEIPTS", help="Where what is resolved is kept; else in your state folder."
    ),
]


@with_broker("dlq resolved", needed=False)
def resolved(
    fingerprint: Annotated[
        str | None, typer.Argument(metavar="[FINGERPRINT]", help="As groups shows it, or its first digits.")
    ] = None,
    *,
    broker: Broker | None,
    in_: Annotated[
        str | None, typer.Option("--in", metavar="VERSION", help="The release that repairs it, such as 2.4.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what is resolved, as without a fingerprint.")] = False,
    receipts: Kept = None,
    json_: AsJson = False,
) -> None:
    """Say in which release a group of letters is repaired: groups shows it, and "regressed" if one has failed since.

    A letter has, whose passport names this or a later release; where these have no order, one that failed after this
    command. It is kept in a local file, and not at the broker.
    """
    del broker  # as for every command; this one asks it nothing
    kept = resolutions(receipts)
    if fingerprint is None or list_:
        if in_ is not None or undo or fingerprint is not None:
            raise ConfigError(
                "which one? Give its FINGERPRINT, and no --list: 'redelivery dlq groups QUEUE' lists them"
            )
        _list(kept, json_)
        return
    if undo:
        if in_ is not None:
            raise ConfigError("--in and --undo: give one of them")
        found, said = kept.reopen(fingerprint), "no longer resolved in"
    elif in_ is None:
        raise ConfigError("in which release? Add --in VERSION, such as --in 2.4; --undo takes it back")
    else:
        name, what = SeenFingerprints(state_folder()).find(fingerprint)
        found, said = kept.resolve(name, in_, what), "resolved in"
    if json_:
        print(as_json({**_record(found), "undone": undo}))
    else:
        print(visible(f"{found.fingerprint} {said} {found.release}: {found.what}"))


def resolutions(receipts: Path | None) -> Resolutions:
    """The resolutions, in the folder that ``--receipts`` names."""
    return Resolutions(receipts or state_folder())


def remember(command: str, shown: Mapping[str, str]) -> None:
    """Remember fingerprints that are shown, so that they can be named; a folder that nobody can write is no error."""
    try:
        SeenFingerprints(state_folder()).remember(shown)
    except ConfigError as error:
        complain(command, error)


def _list(kept: Resolutions, json_: bool) -> None:
    found = kept.read().values()
    if json_:
        print(as_json([_record(each) for each in found], 2))
    elif found:
        rows = [(each.release, each.fingerprint, stamp(each.at), each.who, each.what) for each in found]
        print_table(("in", "group", "since", "by", "what"), rows, narrow=("since", "by"))
    else:
        print("nothing is resolved")


def _record(found: Resolution) -> dict[str, Any]:
    return {
        "fingerprint": found.fingerprint,
        "in": found.release,
        "at": found.at.isoformat(),
        "who": found.who,
        "what": found.what,
    }
