"""All destinations of a configuration in one table: how often, over how long, then where, and what expires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.operate.shown import number_of
from redelivery.operate.simulate import Simulation, simulate
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Address, DestinationRules, counted, duration_text
from redelivery.policies.destinations.examples import OTHER, examples_by_title, examples_of
from redelivery.policies.destinations.overlaps import is_pattern, overlaps
from redelivery.policies.files.places import Unread

_HEAD: Final = ("destination", "attempts", "over", "then", "what expires")
_OTHERS: Final = "(all others)"
_OTHER_TOPICS: Final = "(all other topics)"


@dataclass(frozen=True, slots=True)
class Row:
    """``title``: a destination of the file, a pattern, or all others. ``rules``: its own, or those of an example.

    ``together``: what broker and client make of it, where a client was given.
    """

    title: str
    rules: DestinationRules
    together: Simulation | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the columns."""
        rules = self.rules
        example = f" (such as {rules.destination})" if is_pattern(self.title) else ""
        expired = rules.expired or ("kept" if rules.kept else "removed")
        if self.together is not None:
            return (f"{self.title}{example}", *_shown(self.together), expired)
        if rules.counts == "give-ups" and rules.maximum == 1:
            attempts, time = "as the client says", ""
        else:
            attempts = "no limit" if rules.maximum is None else counted(rules.maximum, rules.counts)
            time = "" if rules.maximum is None else duration_text(rules.delays).removeprefix(" over ")
        then = "" if rules.maximum is None else rules.fate
        return f"{self.title}{example}", attempts, time, then, expired


@dataclass(frozen=True, slots=True)
class Table:
    """``rows``: in the order of the file, all others last. ``not_read``: what decides, and is not modelled."""

    rows: tuple[Row, ...]
    not_read: tuple[Unread, ...] = ()

    def __str__(self) -> str:
        cells = [_HEAD, *(each.cells for each in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join([*lines, *(each.line for each in self.not_read)])

    def as_markdown(self) -> str:
        """A table of Markdown, and a list of what was not read."""
        rows = [_HEAD, ("---",) * len(_HEAD), *(each.cells for each in self.rows)]
        lines = [f"| {' | '.join(map(_escaped, row))} |" for row in rows]
        return "\n".join(
            [*lines, *([""] if self.not_read else []), *(f"- {_escaped(each.line)}" for each in self.not_read)]
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON; ``over``: seconds."""
        return {
            "rows": [
                {
                    "destination": each.title,
                    "example": str(each.rules.destination) if is_pattern(each.title) else None,
                    "counts": each.rules.counts,
                    "attempts": each.rules.maximum,
                    "over": None if each.rules.maximum is None else sum(delay.seconds for delay in each.rules.delays),
                    "dead_letter": each.rules.dead_letter,
                    "then": each.rules.fate if each.rules.maximum is not None else None,
                    "expired": each.rules.expired,
                    "summary": each.rules.summary,
                    **({} if each.together is None else {"together": _as_dict(each.together)}),
                }
                for each in self.rows
            ],
            "not_read": [each.as_dict() for each in self.not_read],
        }


def table(policies: BrokerPolicies, client: BrokerPolicies | None = None) -> Table:
    """Return a row for each destination and pattern of the file, and for all others, the topics where they differ.

    With a client's file, a row says what both make of a message that fails, and its destinations have rows too.
    """
    named = [*policies.rules.names(), *(client.rules.names() if client is not None else ())]
    rows = [_row(title, each, policies, client) for title, each in _examples(policies, named)]
    queues, topics = (_row(_OTHERS, each, policies, client) for each in (Queue(OTHER), Topic(OTHER)))
    rows.append(queues)
    if (queues.cells, queues.rules.summary) != (topics.cells, topics.rules.summary):
        rows.append(replace(topics, title=_OTHER_TOPICS))
    return Table(tuple(rows), (*policies.not_read, *(client.not_read if client is not None else ())))


def _row(title: str, example: Destination, policies: BrokerPolicies, client: BrokerPolicies | None) -> Row:
    known = client is not None and not isinstance(example, Address)  # which no client has
    return Row(title, policies.explain(example), simulate(policies, example, client) if known else None)


def _shown(together: Simulation) -> tuple[str, str, str]:
    """Attempts, time and place of both together."""
    if together.total is None:
        return "no limit", "", ""
    at = f"{together.attempts[-1].at:.6g} s" if together.total == len(together.attempts) else ""
    return number_of(together.total, "attempt"), at, together.ends


def _as_dict(together: Simulation) -> dict[str, Any]:
    return {"attempts": together.total, "then": together.ends, "decides": together.wins}


def _examples(policies: BrokerPolicies, named: Iterable[str]) -> Iterator[tuple[str, Destination]]:
    """Iterate over the titles, each with an example about which no more specific title says more."""
    titles = dict.fromkeys(named)
    examples: dict[str, Iterable[Destination]] = {**examples_by_title(titles)}
    examples |= {each: () for each in overlaps(titles) if each not in titles}
    for title, found in examples.items():
        example = next(iter(found or examples_of(title, titles)), None)
        if example is not None:
            yield title, example
        elif policies.rules.address_of(Address(title)) is not None:  # such as /queue/x, which no destination has
            yield f"address:{title}", Address(title)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
