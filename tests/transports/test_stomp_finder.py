"""What a queue is found to be, by what RabbitMQ says of it over STOMP."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.transports.scripted import text

from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import ConnectError, ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.transports.dialects.rabbitmq import STOMP
from redelivery.transports.flows import Flow
from redelivery.transports.stomp.beside import Login
from redelivery.transports.stomp.codec.sends import SendEncoder
from redelivery.transports.stomp.finder import QueueFinder

OTHER = "the broker says: precondition_failed PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'orders'"
UNCLEAR = "the broker says: Processing error"
DENIED = "the broker says: access_refused"


class Answered(QueueFinder):
    """Its broker says these, one for each connection."""

    def __init__(self, *said: str | None) -> None:
        super().__init__(self._connect, STOMP, 1.0)
        self.said: Iterator[str | None] = iter(said)
        self.looks = 0

    def _connect(self) -> Flow[Login]:
        yield from ()
        self.looks += 1
        stream: Any = SimpleNamespace(close=lambda: None)
        engine: Any = None
        return stream, engine, []

    def _ask(self, *_: Any) -> Flow[str | None]:
        yield from ()
        return next(self.said)


def find(finder: Answered, destination: Destination) -> tuple[bool, bool, int]:
    """Whether it is one of others, whether it must be looked for again, and how often it was asked for."""
    assert finder.must_find(destination)
    assert list(finder.find(destination)) == []
    return destination.name in finder.others, finder.must_find(destination), finder.looks


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ((None,), (False, False, 1)),
        ((OTHER,), (True, False, 1)),
        ((UNCLEAR, OTHER), (True, False, 2)),
        ((UNCLEAR, UNCLEAR, None), (False, False, 3)),
        ((DENIED, DENIED, DENIED), (False, True, 3)),
    ],
    ids=["as ours", "another", "another, said at the second look", "as ours, after two", "refused to who uses it, too"],
)
def test_a_refusal_in_other_words_is_asked_for_again(
    said: tuple[str | None, ...], found: tuple[bool, bool, int]
) -> None:
    assert find(Answered(*said), Queue("orders")) == found


@pytest.mark.parametrize(("why", "kind"), [(TimeoutError(), RequestTimeoutError), (OSError(), ConnectionLostError)])
def test_a_login_that_is_not_answered_is_no_loss_of_the_connection(why: OSError, kind: type[JMSError]) -> None:
    class Unreachable(Answered):
        def _connect(self) -> Flow[Login]:
            yield from ()
            raise ConnectError("no second login") from why

    with pytest.raises(kind, match=r"looking for queue://orders: no second login"):
        find(Unreachable(), Queue("orders"))


def test_a_queue_that_is_found_after_a_message_to_it_was_checked_is_named_as_it_was_found() -> None:
    others: dict[str, str] = {}
    encoder = SendEncoder("1.2", STOMP, "", others)
    heads = [encoder.encode(text())[0]]
    others["orders"] = OTHER
    heads += [encoder.encode(each)[0] for each in (text(), text())]
    assert [b"destination:/amq/queue/orders\n" in each for each in heads] == [False, True, True]
