"""Faults planted into what brings a connection back, and into what shares one: a test of each promise notices them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client import (
    test_priority,
    test_refused_logins,
    test_request,
    test_temporaries,
    test_waits_between_attempts,
    test_while_away,
)
from tests.client.gated import Site
from tests.client.shell import Background
from tests.conformance.blocking import Shell
from tests.run.mutants import Fault, caught

import redelivery

_asynchronous = test_while_away.TestAnAsynchronousSend()
FAULTS = {
    "a deferred send that meets a second loss fails": Fault(
        "client.operations.resend",
        "            pending.defer(message)  # not all of it has left\n",
        "            pending.fail(ConnectionLostError('it was lost again'))\n",
        _asynchronous.test_leaves_with_the_connection_after_the_next_where_that_is_lost_before_it_has,
    ),
    "a deferred send that meets a second loss is forgotten": Fault(
        "client.operations.resend",
        "            pending.defer(message)  # not all of it has left\n",
        "            del message\n",
        _asynchronous.test_leaves_with_the_connection_after_the_next_where_that_is_lost_before_it_has,
    ),
    "the back-off after a loss is one step late": Fault(
        "client.connection.dialing",
        "policy.delay(self._waits, None, elapsed)",
        "policy.delay(self._waits + (self._waits > 1), None, elapsed)",
        test_waits_between_attempts.test_after_a_loss_the_second_attempt_waits_the_second_delay,
    ),
    "the back-off after a loss begins with the second delay": Fault(
        "client.connection.dialing",
        "self._pause(self._next_wait(policy))",
        "self._pause(policy.delay(2))",
        test_waits_between_attempts.test_the_waits_before_each_attempt_are_those_of_the_policy,
    ),
    "the back-off at the start is that of a loss": Fault(
        "client.connection.dialing",
        "self._waits = 0  # since",
        "self._waits = 1  # since",
        test_waits_between_attempts.test_before_there_was_one_the_first_attempt_waits_for_nothing,
    ),
    "the back-off begins anew with each login": Fault(
        "client.connection.dialing",
        "if session_time() - began >= min(",
        "if session_time() - began >= 0.0 * min(",
        test_waits_between_attempts.test_a_connection_that_dies_young_is_waited_for_longer_the_next_time,
        {"policy": test_waits_between_attempts.DOUBLING, "lives": (0.0, 0.0), "expected": (0.01, 0.02)},
    ),
    "a broker that refuses is asked in each round": Fault(
        "client.connection.dialing",
        "for url in self.options.servers if url not in refusals)",
        "for url in self.options.servers)",
        test_refused_logins.test_it_is_not_asked_again_while_the_others_are_away,
    ),
    "a login that is refused is waited for at the start": Fault(
        "client.connection.dialing",
        "if refusals and not limited:",
        "if refusals and not limited and rounds > 3:",
        test_refused_logins.test_at_the_start_it_is_said_at_once_where_no_other_one_answers,
    ),
    "a refusal is forgotten where the others are away": Fault(
        "client.connection.dialing",
        "        if len(refusals) == len(self.options.servers):",
        "        if len(refusals) > len(self.options.servers):",
        test_refused_logins.test_where_all_refuse_the_error_names_each,
    ),
    "a temporary destination is renewed for one loss only": Fault(
        "client.session.temporaries",
        "                    self._gone[each] = new",
        "                    self._gone[each] = current",
        test_temporaries.test_two_consumers_of_one_go_over_to_one_after_each_loss,
    ),
    "what was made on a lost connection counts as the new one's": Fault(
        "client.session.temporaries",
        "            del self._made[old]\n",
        "            self._made[old] = transport\n",
        test_temporaries.test_two_consumers_of_one_go_over_to_one_after_each_loss,
    ),
    "a late reply is not counted": Fault(
        "client.connection.replies",
        "                self.late += 1",
        "                self.late += 0",
        test_request.test_a_late_reply_is_dropped_and_counted,
    ),
    "one correlation id is expected twice": Fault(
        "client.connection.replies",
        "                if correlation_id in self._waiting:",
        "                if correlation_id is pending:",
        test_request.test_one_correlation_id_at_a_time,
    ),
    "a priority broker that was lost before the move is moved to": Fault(
        "client.connection.priority",
        "ended=lambda: backup.ended or events.lost is not None)",
        "ended=lambda: backup.ended)",
        test_priority.test_one_that_is_lost_before_the_move_is_waited_for_again,
    ),
    "a consumer that was closed meanwhile is waited for": Fault(
        "client.operations.reattach",
        "        closed = s.closing or (consumer is not None and consumer.stage is not OPEN)",
        "        closed = s.closing",
        test_while_away.test_a_receive_that_waits_ends_with_its_consumer,
        {"mode": redelivery.AckMode.AUTO},
    ),
}


@pytest.fixture
def protocol() -> str:
    return "stomp"


@pytest.fixture
def shell(opened: ExitStack) -> Shell:
    return Shell("threads", opened)


@pytest.fixture
def away(site: Site, opened: ExitStack) -> test_while_away.Away:
    return test_while_away.Away(site, opened, close_timeout=0.2)


@pytest.fixture
def pair(opened: ExitStack) -> test_priority.Pair:
    made = test_priority.Pair("stomp", "threads", opened)
    made.first.gate.shut()
    return made


@pytest.fixture
def connect(opened: ExitStack) -> Callable[..., redelivery.Connection]:
    return lambda url, **options: opened.enter_context(redelivery.connect(url, **options))


@pytest.fixture
def connection(redelivery_broker: Any, opened: ExitStack) -> redelivery.Connection:
    return opened.enter_context(redelivery.connect(redelivery_broker.vm_url))


@pytest.fixture
def background() -> Background:
    return Background()


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_caught(fault: str, request: pytest.FixtureRequest) -> None:
    caught(FAULTS[fault], request)
