"""What a broker makes of selectors: the messages stand in a queue, which is browsed by each selector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from tests.selectors.expressions import TRUE, Message, Node, Trace
from tests.selectors.generated import Sample

import redelivery
from redelivery import JMSError


@dataclass(frozen=True)
class Verdict:
    """What a broker said of one selector: the messages that it matches, by their numbers, or why it was refused."""

    node: Node
    matched: frozenset[int]
    refused: str = ""


@dataclass(frozen=True)
class Disagreement:
    """A message of which a broker says something else than JMS; ``rules`` are those that decided by JMS."""

    node: Node
    message: Message
    expected: bool
    rules: frozenset[str]


def ask(url: str, nodes: Sequence[Node], samples: Sequence[Sample]) -> Iterator[Verdict]:
    """Of each selector what the broker makes of it."""
    queue = f"selectors.{uuid4().hex}"
    with redelivery.connect(url) as connection, connection.session() as session:
        producer = session.producer(queue)
        for number, sample in enumerate(samples):
            producer.send(str(number), properties=sample.properties, **sample.headers)
        for node in nodes:
            try:
                with session.browser(queue, selector=str(node)) as browser:
                    yield Verdict(node, frozenset(int(message.body) for message in browser))
            except JMSError as error:
                if getattr(error, "position", None) is not None:
                    raise  # we refuse it ourselves
                yield Verdict(node, frozenset(), str(error))
        consumer = session.consumer(queue)
        for _ in samples:
            assert consumer.receive(timeout=10) is not None, "a browser takes nothing"


def disagreements(verdict: Verdict, samples: Sequence[Sample]) -> Iterator[Disagreement]:
    """Where the broker and the specification differ."""
    for number, sample in enumerate(samples):
        trace = Trace()
        expected = verdict.node.evaluate(sample.seen, trace) == TRUE
        if expected != (number in verdict.matched):
            yield Disagreement(verdict.node, sample.seen, expected, frozenset(trace))
