"""One broker compared with the specification: what agrees, what departs as is known, and what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.selectors.departures import REFUSED, STOMP, Departure, explained, of, rules_of, spoiling
from tests.selectors.expressions import Node
from tests.selectors.generated import Sample, messages, selectors
from tests.selectors.judges import Verdict, placed

MESSAGES = 40
_SEED = 2


@dataclass
class Comparison:
    """The result.

    ``verdicts`` are of one selector and message each, ``sure`` those of which no known departure may be why.
    ``shown``: the departures whose examples show them; ``new``: what none explains.
    """

    broker: str
    selectors: int = 0
    verdicts: int = 0
    sure: int = 0
    departed: int = 0
    shown: set[str] = field(default_factory=set)
    new: list[str] = field(default_factory=list)

    @property
    def not_shown(self) -> set[str]:
        """Departures of which the example does as JMS says."""
        return of(self.broker).keys() - self.shown


def compare(broker: str, url: str, count: int, *, persistent: Sequence[bool] = (True, False)) -> Comparison:
    """So many generated selectors, and the example of each departure, of 40 messages."""
    known, samples = of(broker), messages(_SEED, MESSAGES, persistent)
    found = Comparison(broker)
    examples = {each.example: each.rule for each in known.values()}
    with placed(url, samples) as (there, ask):
        asked = selectors(_SEED, count)
        if broker == STOMP:  # an error there costs a time-out each
            asked = [node for node in selectors(_SEED, 2 * count) if not spoiling(node, there, known)][:count]
        for node in (*examples, *asked):
            _count(found, ask(node), there, known, examples)
    return found


def _count(
    found: Comparison,
    verdict: Verdict,
    samples: Sequence[Sample],
    known: Mapping[str, Departure],
    examples: Mapping[Node, str],
) -> None:
    found.selectors += 1
    node = verdict.node
    if verdict.refused:
        if REFUSED not in known or REFUSED not in rules_of(node, samples):
            found.new.append(f"{node}: refused: {verdict.refused}")
        elif node in examples:
            found.shown.add(examples[node])
        return
    found.verdicts += len(samples)
    found.sure += sum(known.keys().isdisjoint(rules_of(node, [sample])) for sample in samples)
    for disagreement, why in explained(verdict, samples, known):
        found.departed += 1
        if node in examples and examples[node] in disagreement.rules:
            found.shown.add(examples[node])
        if not why:
            found.new.append(f"{node} of {disagreement.message}: {sorted(disagreement.rules)}")
