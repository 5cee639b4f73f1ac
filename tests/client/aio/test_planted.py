"""Faults planted into the shell of tasks: a test of each promise notices them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.client import test_answers_that_do_not_come
from tests.client.aio import test_loop, test_loop_ends, test_turns
from tests.client.aio.cancellation import test_cancellation
from tests.client.gated import Site
from tests.conformance.blocking import Shell
from tests.run.mutants import Fault, caught

from redelivery import AckMode
from redelivery.broker import EmbeddedBroker

FAULTS = {
    "one who is cancelled when its turn comes keeps it": Fault(
        "client.aio.core",
        "                self.release()  # it came in the same moment",
        "                pass",
        test_turns.test_one_who_is_cancelled_when_its_turn_comes_gives_it_on,
        {"end": test_turns.at_once, "call": "receive"},
    ),
    "the turn is given to one who has gone": Fault(
        "client.aio.core",
        "            future = self._waiting.popleft()\n            if not future.done():",
        "            future = self._waiting.popleft()\n            if future is not None:",
        test_turns.test_one_whose_time_is_over_is_passed_over,
        raises=(asyncio.InvalidStateError,),
    ),
    "the turn is given to the last who waits": Fault(
        "client.aio.core",
        "            future = self._waiting.popleft()",
        "            future = self._waiting.pop()",
        test_turns.test_those_who_wait_get_it_in_their_order,
    ),
    "the turn is free while it is given on": Fault(
        "client.aio.core",
        "                future.set_result(True)\n                return",
        "                future.set_result(True)\n                break",
        test_turns.test_one_whose_time_is_over_is_passed_over,
    ),
    "a backlog keeps the loop": Fault(
        "client.aio.core",
        "        if self._calls % _OTHERS_TURN == 0:",
        "        if self._calls == _OTHERS_TURN - 1_000_000:",
        test_loop.test_a_backlog_of_which_all_is_there_does_not_keep_the_loop_from_other_tasks,
    ),
    "a cancelled commit does not say that it is in doubt": Fault(
        "client.aio.driver",
        "        raise ended from outcome",
        "        raise ended",
        test_cancellation.test_a_cancelled_commit_is_in_doubt_and_says_so,
    ),
    "a cancelled receive keeps what it has taken": Fault(
        "client.aio.consumer",
        "                    core.release(hand)  # failed or cancelled: the application has not got it",
        "                    hand.clear()",
        test_cancellation.test_a_message_behind_an_expired_one_is_not_lost_while_that_is_dead_lettered,
        {"mode": AckMode.AUTO},
    ),
    "a cancelled close ends": Fault(
        "client.aio.core",
        "        return await asyncio.shield(self._begin(work()))",
        "        return await self._begin(work())",
        test_cancellation.test_a_cancelled_close_still_closes,
        {"mode": AckMode.AUTO, "act": test_cancellation.closes_the_consumer},
    ),
    "a callback's own cancellation ends the listener": Fault(
        "client.aio.listeners",
        "            if task.cancelling() > cancelled or not isinstance(raised, asyncio.CancelledError):",
        "            if raised is not None:",
        test_loop_ends.test_a_callback_that_raises_a_cancellation_of_its_own_has_failed_and_listening_goes_on,
    ),
    "a send without an answer is taken for a confirmed one": Fault(
        "client.aio.driver",
        '    return RequestTimeoutError(f"the broker did not answer',
        '    print(f"the broker did not answer',
        test_answers_that_do_not_come.test_it_is_in_doubt,
        {"mode": "auto", "command": "SEND"},
    ),
}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"aio-{uuid.uuid4().hex}", stomp_port=0) as broker:
        yield broker


@pytest.fixture
def site() -> Iterator[Site]:
    with ExitStack() as opened:
        yield Site("stomp", opened)


@pytest.fixture
def shell() -> Iterator[Shell]:
    with ExitStack() as opened:
        yield Shell("asyncio", opened)


@pytest.fixture
def url(broker: EmbeddedBroker) -> str:
    return broker.stomp_url


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_caught(fault: str, request: pytest.FixtureRequest) -> None:
    caught(FAULTS[fault], request)
