"""All dead-letter queues of a broker: how many letters each has, since when, of what, and how many more than before.

A queue is one of them by its name, by the broker's rules (or its configuration file), or by what is at its head.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError
from redelivery.operate.doctor.chosen import MOST, choose
from redelivery.operate.doctor.doctor import own_rules
from redelivery.operate.doctor.inspect import BROWSED, Inspector
from redelivery.operate.doctor.observed import ObservedQueue, is_called_dead
from redelivery.operate.letters.groups import Group, failed_at, group
from redelivery.operate.management.browsing import is_seen
from redelivery.policies.brokers.policies import BrokerPolicies

LOOKED_AT: Final = 1000
"""Letters of a queue, at most, of which the oldest and the most frequent cause are found."""


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """One dead-letter queue.

    ``known_by``: ``name``, ``rules`` or ``content``. ``letters``: on it. ``oldest``: when the first of them failed, of
    the first 1,000. ``top``: the most frequent cause of these; None: nobody could look. ``grew``: by how many it has
    more than at the last look, which was at ``since``; None: there was none.
    """

    name: str
    known_by: str
    letters: int
    oldest: datetime | None = None
    top: Group | None = None
    grew: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """``queues``: those with most letters first. ``unchecked``: what could not be seen, and why.

    ``counted``: where the broker says no number, letters are counted one by one up to this one; None: it says them.
    """

    queues: tuple[DeadLetterQueue, ...]
    unchecked: tuple[str, ...]
    counted: int | None = None


def overview(
    connection: Connection,
    rules: BrokerPolicies | None = None,
    queues: Iterable[Destination] = (),
    *,
    looked_at: int = LOOKED_AT,
    counted: int = BROWSED,
) -> Overview:
    """Look at all dead-letter queues that the broker lists, and the rules name, and at ``queues``; take nothing.

    ``rules``: of the broker's configuration file, where it does not report its own. ``looked_at``: letters of a queue,
    at most, of which the oldest and the most frequent cause are found. ``counted``: letters of a queue, at most, that
    are counted one by one where the broker does not say how many.

    Raises:
        UnsupportedError: the broker reports no queues over this protocol; the text names the option.
        JMSError: it does not answer, or refuses.
    """
    unchecked: list[str] = []
    asked = tuple(queues)
    chosen = choose(own_rules(connection, asked, unchecked) if rules is None else rules, asked)
    inspector = Inspector(connection, counted, kept=looked_at)
    seen = inspector.states(chosen.queues)
    unchecked += seen.unchecked
    unchecked += inspector.unnamed
    names = frozenset(each.name for each in asked)
    known: dict[str, str] = {}
    for name, state in seen.queues.items():
        if name in names or name in chosen.dead_letters or state.address in chosen.dead_letters:
            known[name] = "rules"
        elif is_called_dead(name):
            known[name] = "name"
    others = {name: state for name, state in seen.queues.items() if name not in known}
    known |= dict.fromkeys(inspector.holding_dead_letters(others), "content")
    if len(others) > MOST:
        unchecked.append(f"what is at the head of {len(others) - MOST} more queues: name those that matter")
    found = [
        _looked_into(inspector, connection, seen.queues[name], by, unchecked, looked_at) for name, by in known.items()
    ]
    in_order = tuple(sorted(found, key=lambda each: (-each.letters, each.name)))
    return Overview(in_order, tuple(unchecked), inspector.counted)


def compared(found: Overview, connection: Connection, file: Path) -> Overview:
    """Say of each queue how it has grown since this was called last, and remember how it is now.

    Raises:
        ConfigError: the file of looks cannot be read or written.
    """
    now = datetime.now(UTC)
    try:
        looks = _read(file)
        before: Mapping[str, Any] = looks.get(connection.url, {})
        queues = tuple(_compared(each, before.get(each.name)) for each in found.queues)
        looks[connection.url] = {each.name: [each.letters, now.isoformat(timespec="seconds")] for each in found.queues}
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = file.with_name(f"{file.name}.{os.getpid()}")
        written.write_text(json.dumps(looks), encoding="utf-8")
        written.replace(file)
    except OSError as error:
        raise ConfigError(f"the last look cannot be remembered: {error}") from error
    return replace(found, queues=queues)


def _looked_into(
    inspector: Inspector, connection: Connection, state: ObservedQueue, by: str, unchecked: list[str], most: int
) -> DeadLetterQueue:
    found = DeadLetterQueue(state.name, by, state.depth)
    if not state.depth:
        return found
    try:
        if not is_seen(connection, Queue(state.name)):
            unchecked.append(
                f"the letters of {state.name}: a look would count as a delivery; see 'redelivery dlq groups'"
            )
            return found
        letters = list(inspector.head(state.name, most))
    except ConnectionLostError:
        raise
    except JMSError as error:
        unchecked.append(f"the letters of {state.name}: {error}")
        return found
    oldest = min(filter(None, map(failed_at, letters)), default=None)
    return replace(found, oldest=oldest, top=next(iter(group(letters)), None))


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:  # cut short: the next look is the first
        return {}
    return found if isinstance(found, dict) else {}


def _compared(queue: DeadLetterQueue, before: Any) -> DeadLetterQueue:
    match before:
        case [int(letters), str(at)]:
            return replace(queue, grew=queue.letters - letters, since=datetime.fromisoformat(at))
    return queue
