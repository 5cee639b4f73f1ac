"""What a broker makes of selectors: the messages stand in a queue, which is browsed by each selector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from tests.selectors.expressions import TRUE, Message, Node, Trace
from tests.selectors.generated import Sample

import redelivery
from redelivery import JMSError, RequestTimeoutError

# Seconds. Over STOMP Classic tells nothing of an error in a selector: the end of a browser never comes.
REFUSED_AFTER: Final = 3.0


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


@contextmanager
def placed(url: str, samples: Sequence[Sample]) -> Iterator[tuple[list[Sample], Callable[[Node], Verdict]]]:
    """The messages as a selector sees them there, and what shows what the broker makes of a selector."""
    queue = f"selectors.{uuid4().hex}"
    with (
        redelivery.connect(url, request_timeout=REFUSED_AFTER if url.startswith("stomp:") else 30) as connection,
        connection.session() as session,
    ):
        producer = session.producer(queue)
        for number, sample in enumerate(samples):
            producer.send(str(number), properties=sample.properties, **sample.headers)
        with session.browser(queue) as browser:
            shown = {int(each.body): each for each in browser}  # in an order of the broker's own
        there = [arrived(sample, shown[number], url.startswith("stomp:")) for number, sample in enumerate(samples)]

        def ask(node: Node) -> Verdict:
            try:
                with session.browser(queue, selector=str(node)) as browser:
                    return Verdict(node, frozenset(int(message.body) for message in browser))
            except RequestTimeoutError:
                return Verdict(node, frozenset())  # over STOMP: an error in the selector, which Classic does not report
            except JMSError as error:
                if getattr(error, "position", None) is not None:
                    raise  # we refuse it ourselves
                return Verdict(node, frozenset(), str(error))

        yield there, ask
        consumer = session.consumer(queue)
        for _ in samples:
            assert consumer.receive(timeout=10) is not None, "a browser takes nothing"


def arrived(sample: Sample, message: redelivery.Message, only_strings: bool) -> Sample:
    """The same with what was given to it on its way; ``only_strings``: the protocol carries no other properties."""
    seen = {
        **sample.seen,
        "JMSMessageID": None if message.message_id is None else ("string", message.message_id),
        "JMSTimestamp": None if message.timestamp is None else ("long", round(message.timestamp.timestamp() * 1000)),
    }
    if not only_strings:
        return replace(sample, seen=seen)
    for name in sample.properties.keys() & message.properties.keys():
        seen[name] = ("string", str(message.properties[name]))
    return replace(sample, seen=seen, lenient=True)


def disagreements(verdict: Verdict, samples: Sequence[Sample]) -> Iterator[Disagreement]:
    """Where the broker and the specification differ."""
    for number, sample in enumerate(samples):
        trace = Trace(lenient=sample.lenient)
        expected = verdict.node.evaluate(sample.seen, trace) == TRUE
        if expected != (number in verdict.matched):
            yield Disagreement(verdict.node, sample.seen, expected, frozenset(trace))
