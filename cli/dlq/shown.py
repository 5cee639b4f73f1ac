"""``redelivery dlq ls``, ``show`` and ``groups``: letters are looked at, and none is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from redelivery import Connection
from redelivery.cli.dlq.options import Group_, Limit, Yes, selection_of
from redelivery.cli.dlq.resolved import Kept, remember, resolutions
from redelivery.cli.messages import stamp
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.looking import looking
from redelivery.cli.parts.progress import Counting
from redelivery.cli.parts.shown import CUT, as_json, complain, visible
from redelivery.cli.parts.tables import print_table
from redelivery.cli.parts.target import AsJson, Queue, Where, nothing_in
from redelivery.cli.parts.work import meant
from redelivery.model.content.dead_letters import PASSPORT, DeadLetterInfo
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.fingerprints import By, Fingerprints, traits
from redelivery.operate.letters.groups import Group, described, described_letter, group
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.selection import Selection
from redelivery.operate.letters.states.resolved import Resolution
from redelivery.operate.shown import number_of

_LONG: Final = 2000  # characters of a value that `show` prints
_LISTS: Final = ("stack", "attempts")  # of a passport, which is in what a dead letter says
_OF_A_PASSPORT: Final = 2


@with_broker("dlq ls")
def list_letters(
    queue: Queue,
    *,
    broker: Broker,
    where: Where = None,
    group: Group_ = None,
    limit: Limit = None,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """List the letters of a dead-letter queue: when they failed, from where they came, and why they are here.

    Those with a passport say, too, how often they were tried, and in which application.

    Where a letter does not say when it failed, there is when it was sent, after "sent".
    """
    shown = 0
    with looking("dlq ls", broker, queue, yes=yes) as connection:
        selection = selection_of(queue, where, group, limit).on(connection)
        known = _known(connection, selection) if json_ else None
        for letter in selection.browse(connection):
            shown += 1
            if known is not None:
                print(as_json({**to_record(letter), "fingerprint": known.of(traits(letter))}))
                continue
            said = letter.dead_letter
            origin, why = (None, None) if said is None else (said.origin, said.exception or said.cause)
            at = None if said is None else said.at
            when = f"sent {stamp(letter.timestamp)}" if at is None else stamp(at)
            columns = (letter.message_id or "-", *_passport(said), origin or "-", why or "no cause")
            print(when, *(visible(each, CUT) for each in columns), sep="  ")
    if not shown:
        raise nothing_in(selection.queue, meant(selection))


@with_broker("dlq show")
def show(
    queue: Queue,
    message_id: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE-ID]", help="Which one; without it the first.")
    ] = None,
    *,
    broker: Broker,
    where: Where = None,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Show one letter: everything that it says. --json shows it whole, however long it is."""
    with looking("dlq show", broker, queue, yes=yes) as connection:
        selection = selection_of(queue, where)
        letters = selection.browse(connection)
        letter = next((each for each in letters if message_id in (None, each.message_id)), None)
        if letter is None and message_id is None:
            raise nothing_in(selection.queue, meant(selection))
        if letter is None:
            named = f"MESSAGE-ID {message_id}"
            raise nothing_in(selection.queue, f"{named} and {asked}" if (asked := meant(selection)) else named)
        known = _known(connection, selection)
    record = {**to_record(letter), "fingerprint": known.of(traits(letter))}
    said = letter.dead_letter
    passport = None if said is None else said.passport
    shown = {record["fingerprint"]} | ({passport.fingerprint} if passport and passport.fingerprint else set())
    remember("dlq show", dict.fromkeys(shown, described_letter(said)))
    if json_:
        print(as_json(record))
        return
    if (record.get("dead_letter") or {}).get("passport"):
        record["properties"] = {name: value for name, value in record["properties"].items() if name != PASSPORT}
    for name, value in record.items():
        if value is not None:
            for line in _lines(name, value):
                print(line)


@with_broker("dlq groups")
def groups(
    queue: Queue,
    *,
    broker: Broker,
    where: Where = None,
    limit: Limit = None,
    by: Annotated[By, typer.Option(help="What letters of a group have in common.")] = "cause",
    receipts: Kept = None,
    yes: Yes = False,
    json_: AsJson = False,
) -> None:
    """Count the letters that failed alike: the same origin and exception, whatever numbers and names are in it.

    --by type counts those with the same type of exception, --by origin those from the same queue, --by fingerprint
    those whose exception came from the same function, --by release those of the same application and version.
    """
    resolved = _resolved(receipts)
    with looking("dlq groups", broker, queue, yes=yes) as connection, Counting("looking", None, not json_) as counting:
        selection = selection_of(queue, where, None, limit)
        found = group(counting.of(selection.browse(connection)), by, resolved)
    remember("dlq groups", {each.fingerprint: described(each) for each in found})
    if json_:
        print(as_json([_group_record(each) for each in found], 2))
    elif found:
        _print(found, by)
    if not found:
        raise nothing_in(selection.queue, meant(selection))


def _resolved(receipts: Path | None) -> Mapping[str, Resolution]:
    """Read what is resolved; where its file is damaged nobody is kept from looking."""
    try:
        return resolutions(receipts).read()
    except ConfigError as error:
        complain("dlq groups", f"no states are shown: {error}")
        return {}


def _print(found: Sequence[Group], by: By) -> None:
    """Print the groups: which of them are resolved, and their releases, only where that is known of one."""
    columns: dict[str, list[object]] = {
        "letters": [each.count for each in found],
        "group": [each.fingerprint for each in found],
        "state": [each.state for each in found],
        "first": [stamp(each.first) for each in found],
        "last": [stamp(each.last) for each in found],
        "rate": [_rate(each.rate) for each in found],
        "release": [each.release for each in found],
        "origin": [each.origin for each in found],
        "why": [_why(each, by) for each in found],
    }
    shown = {name: each for name, each in columns.items() if name not in ("state", "release") or any(each)}
    rows = [["-" if each is None else each for each in row] for row in zip(*shown.values(), strict=True)]
    print_table(tuple(shown), rows, narrow=("first", "last", "rate", "release"))


def _rate(found: float | None) -> str | None:
    if found is None:
        return None
    number, unit = (found / 60, "min") if found >= 600 else (found, "h")
    return f"{number:,.0f}/{unit}" if number >= 100 else f"{number:.3g}/{unit}"


def _known(connection: Connection, selection: Selection) -> Fingerprints:
    """The fingerprints of all letters among which the groups are found, so that they are the same here."""
    return Fingerprints(map(traits, replace(selection, group=None, members=None, limit=None).browse(connection)))


def _passport(said: DeadLetterInfo | None) -> Iterator[str]:
    if said is None or said.passport is None:
        return
    if tried := len(said.passport.attempts):
        yield number_of(tried, "attempt")
    if said.passport.application is not None:
        yield said.passport.application


def _lines(name: str, value: object, depth: int = 0) -> Iterator[str]:
    """The lines of a value; an object, and a list within one, has a line for each of its own."""
    if isinstance(value, dict) and value:
        yield f"{name}:"
        for each, inner in value.items():
            yield from (f"  {line}" for line in _lines(visible(each, CUT), inner, depth + 1))
    elif isinstance(value, list) and value and name in _LISTS and depth == _OF_A_PASSPORT:
        yield f"{name}:"
        for each in value:
            text = ", ".join(map(str, each.values())) if isinstance(each, dict) else each
            yield f"  {visible(text, _LONG)}"
    else:
        yield f"{name}: {visible(value, _LONG)}"


def _group_record(found: Group) -> dict[str, Any]:
    times = {name: None if (at := getattr(found, name)) is None else at.isoformat() for name in ("first", "last")}
    return {**asdict(found), **times}


def _why(found: Group, by: By) -> str | None:
    if by in ("origin", "release"):
        return None
    why = found.exception or found.cause or "no cause"
    return f"{why} in {found.frame}" if by == "fingerprint" and found.frame else why
