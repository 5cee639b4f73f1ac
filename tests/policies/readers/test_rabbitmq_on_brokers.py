"""Where messages of RabbitMQ's queues really end: the cases of `rabbitmq_cases`, played on 3.10, 4.0 and 4.3."""

from __future__ import annotations

import time

import pytest
from tests.policies.readers.rabbitmq_cases import Case, cases, definitions
from tests.policies.readers.rabbitmq_site import Site, site

from redelivery.testing.brokers.real import RealBroker

_MOST = 26  # deliveries after which a message without a limit is left alone
_LATEST = 10.0  # seconds
_WAITING = ("retry", "retry.classic")  # a look would take what is on its way


def played(at: Site, case: Case) -> int:
    """How often the message was delivered. Its body is the queue's name."""
    exchange, key = case.via or ("", case.queue)
    assert at.publish(exchange, key, case.queue) == 200
    if case.how == "full":
        at.publish(exchange, key, f"{case.queue} 2")  # refused, or it drives the first one out
    if case.how == "reject":
        assert at.get(case.queue, "reject_requeue_false") == [case.queue]
        return 1
    deliveries = 0
    while case.how == "fail" and deliveries < _MOST and at.get(case.queue, "reject_requeue_true"):
        deliveries += 1
    return deliveries


def where(at: Site, queues: list[str]) -> dict[str, set[str]]:
    """The queues on which a body is; it is taken from there."""
    found: dict[str, set[str]] = {}
    for queue in queues:
        for body in at.get(queue, "ack_requeue_false", 1000):
            found.setdefault(body, set()).add(queue)
    return found


@pytest.mark.parametrize("name", ["rabbitmq", "rabbitmq4"])
def test_messages_end_where_the_definitions_say(name: str, request: pytest.FixtureRequest) -> None:
    broker: RealBroker = request.getfixturevalue(f"redelivery_{name}")
    of_4 = name == "rabbitmq4"
    with site(broker, "cases") as at:
        document = definitions(at.version(), of_4=of_4)
        at.import_(document)
        chosen = cases(of_4=of_4)
        deliveries = {each.queue: played(at, each) for each in chosen}
        queues = [each["name"] for each in document["queues"] if each["name"] not in _WAITING]
        found: dict[str, set[str]] = {}
        expected = {each.queue: set(each.ends) for each in chosen}
        deadline, last = time.monotonic() + _LATEST, False
        while True:  # what expires takes its time, and what is dead-lettered of a quorum queue as well
            for body, places in where(at, queues).items():
                found.setdefault(body, set()).update(places)
            ends = {each.queue: found.get(each.queue, set()) - _staying(each) for each in chosen}
            if last or time.monotonic() > deadline:
                break
            last = ends == expected  # then nothing more may come
            time.sleep(0.5)
    assert {queue: (ends[queue], expected[queue]) for queue in ends if ends[queue] != expected[queue]} == {}
    counted = {each.queue: each.deliveries for each in chosen if each.how == "fail"}
    assert {queue: deliveries[queue] for queue in counted} == counted


def _staying(case: Case) -> set[str]:
    """Where it may be as well: what does not fit drives the first one out, or is refused."""
    return {case.queue} if case.how == "full" else set()
