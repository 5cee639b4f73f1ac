"""Faults planted into the listener containers: a test of each promise notices them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from tests.client.containers import bench as bench_of
from tests.client.containers import test_container, test_draining, test_rules, test_when_again
from tests.conformance.blocking import Shell
from tests.model import test_typed_bodies
from tests.run.mutants import Fault, caught

from redelivery import Drop
from redelivery.broker import EmbeddedBroker
from redelivery.client.containers.outcomes import Fate

_an_outcome, _the_plan = test_rules.TestAnOutcome(), test_rules.TestThePlan()
FAULTS = {
    "the drain waits longer than its limit": Fault(
        "client.containers.workers",
        "            thread.join(max(0.0, until - monotonic()))",
        "            thread.join(30.0)",
        test_draining.test_it_is_the_limit_of_all_workers,
    ),
    "each container of a program has the drain's limit for itself": Fault(
        "client.containers.running",
        "each.drain(max(0.0, until - monotonic()))",
        "each.drain(asked.drain_timeout)",
        test_draining.test_of_a_program_s_containers_it_is_the_limit_of_all,
        {"kind": test_draining.Stubborn},
    ),
    "a program's containers are drained one after the other": Fault(
        "client.containers.running",
        "await asyncio.gather(*(each.drain(asked.drain_timeout) for each in containers))",
        "[await each.drain(asked.drain_timeout) for each in containers]",
        test_draining.test_of_a_program_s_containers_it_is_the_limit_of_all,
        {"kind": test_draining.StubbornTasks},
    ),
    "to retry after 0 s is to retry as the policy says": Fault(
        "client.containers.outcomes",
        '        self.after = None if after is None else seconds("after", after)',
        '        self.after = seconds("after", after) if after else None',
        test_when_again.test_after_0_is_at_once,
        {"after": 0, "returned": False},
    ),
    "the ledger takes 0 s for no time": Fault(
        "client.ledger.redelivery",
        "    if ruling.after is not None or",
        "    if ruling.after or",
        test_when_again.test_after_0_is_at_once,
        {"after": 0.0, "returned": True},
    ),
    "to retry without a time is to retry at once": Fault(
        "client.containers.outcomes",
        '        self.after = None if after is None else seconds("after", after)',
        '        self.after = 0.0 if after is None else seconds("after", after)',
        test_when_again.test_without_a_time_it_is_as_the_policy_says,
    ),
    "an outcome's class that is returned is a reply": Fault(
        "client.containers.outcomes",
        "        result = result()  # ``return Drop``",
        "        result = result  # ``return Drop``",
        _an_outcome.test_says_what_becomes_of_the_message,
        {"result": Drop, "error": None, "fate": Fate.DROPPED},
    ),
    "a retry has no deadline": Fault(
        "client.containers.outcomes",
        "        case Retry() as outcome if overdue is None:",
        "        case Retry() as outcome if outcome:",
        _an_outcome.test_is_given_up_when_its_time_is_over,
    ),
    "a retry is fatal": Fault(
        "client.containers.outcomes",
        "    match error if error is not None else result:",
        "    match None if isinstance(error, fatal) else error if error is not None else result:",
        _an_outcome.test_to_retry_is_not_fatal,
    ),
    "JSON of another kind than was asked for is taken": Fault(
        "model.content.typed.converter",
        "    if isinstance(kind, type) and not isinstance(found, kind):",
        "    if isinstance(kind, type) and found is None:",
        test_typed_bodies.test_a_body_that_does_not_fit_is_an_error_that_says_where,
        {"body": "[]", "body_type": dict, "why": "it is a list, not a dict"},
        raises=(pytest.fail.Exception,),
    ),
    "the deadline begins anew with each attempt": Fault(
        "client.containers.plan",
        "                self._firsts.setdefault(message.message_id, now)",
        "                self._firsts[message.message_id] = now",
        _the_plan.test_knows_the_deadline_over_all_attempts,
    ),
    "the last worker that is needed leaves": Fault(
        "client.containers.plan",
        "self.counters.workers <= self._settings.minimum:",
        "self.counters.workers < self._settings.minimum:",
        _the_plan.test_lets_a_worker_go_that_is_not_needed,
    ),
    "a reply does not have the correlation id of its request": Fault(
        "client.containers.lanes",
        "        correlation_id = message.correlation_id or message.message_id\n",
        "        correlation_id = message.message_id or message.correlation_id\n",
        test_container.test_a_result_is_the_reply_to_who_asks_for_one,
        {"mode": "transacted"},
    ),
    "the first signal ends it at once": Fault(
        "client.containers.running",
        "        return self.times > 1",
        "        return self.times > 0",
        test_rules.test_the_first_signal_drains_and_the_second_ends,
    ),
    "a handler of signals that another one had is forgotten": Fault(
        "client.containers.running",
        "signal.SIG_DFL if handler is None else handler)",
        "signal.SIG_DFL)",
        test_rules.test_the_handlers_of_before_are_there_again,
    ),
}


@pytest.fixture
def served() -> Iterator[tuple[EmbeddedBroker, str]]:
    with EmbeddedBroker(f"containers-{uuid4().hex}") as broker:
        yield broker, broker.vm_url


@pytest.fixture
def broker(served: tuple[EmbeddedBroker, str]) -> EmbeddedBroker:
    for number in range(test_draining.WORKERS):
        served[0].send("orders", str(number))
    return served[0]


@pytest.fixture
def shell() -> Iterator[Shell]:
    with ExitStack() as opened:
        yield Shell("threads", opened)


@pytest.fixture
def bench(served: tuple[EmbeddedBroker, str], shell: Shell) -> Iterator[Any]:
    with ExitStack() as opened:
        yield bench_of.Bench(served, shell, opened)


@pytest.fixture
def works(served: tuple[EmbeddedBroker, str], shell: Shell) -> test_when_again.Works:
    return test_when_again.Works(*served, shell)


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_caught(fault: str, request: pytest.FixtureRequest) -> None:
    caught(FAULTS[fault], request)
