"""Faults planted into the operator's tools, into selectors and policies: a test of each promise notices them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.model.selectors import test_like
from tests.operate import test_amqp_letters_of_others, test_differences, test_letters, test_policies
from tests.policies import test_switches
from tests.run.mutants import Fault, caught

from redelivery.broker import EmbeddedBroker

_swapped = {"one": True, "other": False}
FAULTS = {
    "a quote in a message id ends the selector": Fault(
        "operate.letters.moving",
        """str(each).replace("'", "''")""",
        """str(each).replace("'", "'")""",
        test_amqp_letters_of_others.test_those_of_a_group_leave_and_no_other,
        {"protocol": "vm", "first": len(test_amqp_letters_of_others.IDS) - 1},
    ),
    "what was not planned is moved": Fault(
        "operate.letters.moving",
        "            if not self._selection.accepts(letter):\n                raise _ChangedError(",
        "            if letter is None:\n                raise _ChangedError(",
        test_letters.test_a_batch_that_is_not_what_was_planned_stays,
    ),
    "a letter that comes meanwhile and must stay ends the run": Fault(
        "operate.letters.moving",
        "                raise _ChangedError(str(error)) from error",
        "                raise",
        test_letters.test_letters_that_come_meanwhile_and_must_stay_do_not_end_a_run,
    ),
    "a batch is committed when it is counted": Fault(
        "operate.letters.moving",
        "            session.commit()\n        self._count(len(taken))",
        "            self._count(len(taken))\n            session.commit()",
        test_letters.test_a_refused_commit_is_counted_by_nobody,
    ),
    "a rate is that of each batch": Fault(
        "operate.letters.moving",
        "            self._due = max(self._due, now) + self._pause",
        "            self._due = now + self._pause",
        test_letters.test_slow_runs_keep_their_rate,
    ),
    "letters go where they came from, and not where they are to": Fault(
        "operate.letters.routes",
        "        target = to or (None if said is None else said.origin)",
        "        target = (None if said is None else said.origin) or to",
        test_letters.test_the_plan_is_not_exceeded_by_what_comes_meanwhile,
    ),
    "a letter that was replayed begins anew to count that": Fault(
        "operate.letters.routes",
        "        before = replays_of(letter)",
        "        before = 0",
        test_letters.test_it_says_how_often_it_was_replayed,
    ),
    "one more than the limit is chosen": Fault(
        "operate.letters.selection",
        "self.limit if all_are_meant else None)\n        yield from islice(filter(asked.accepts, seen), self.limit)",
        "None)\n        yield from islice(filter(asked.accepts, seen), self.limit and self.limit + 1)",
        test_letters.test_a_limit_is_how_many_are_chosen,
        {"limit": 2, "selectors": True},
    ),
    "a header is not looked at where the broker has no selectors": Fault(
        "operate.management.browsing",
        "            return message.priority",
        "            return None",
        test_letters.test_a_selector_that_is_judged_here_sees_the_headers,
        {"selectors": False, "condition": "JMSPriority = 7"},
    ),
    "the delays of client and broker are added up once": Fault(
        "operate.simulate",
        "        at, least, most = at + wait.seconds, least + wait.least, most + wait.most",
        "        at, least, most = wait.seconds, wait.least, wait.most",
        test_policies.test_a_broker_alone_redelivers_by_its_own_delays,
    ),
    "the least of a band is its middle": Fault(
        "operate.simulate",
        "least + wait.least, most + wait.most",
        "least + wait.seconds, most + wait.most",
        test_policies.test_collision_avoidance_gives_a_band,
    ),
    "a difference of one example hides that of the next": Fault(
        "operate.diff",
        "found.setdefault(self._kind(example, changes), Difference(title, example, one, two, changes))",
        "found.setdefault(title, Difference(title, example, one, two, changes))",
        test_differences.test_differences_of_topics_and_of_notes_are_found,
        raises=(ValueError,),
    ),
    "LIKE is off by one at the end of the text": Fault(
        "model.selectors.patterns",
        "    count = end - len(segment) - start + 1",
        "    count = end - len(segment) - start",
        test_like.test_every_short_pattern_is_what_a_table_says_of_every_short_text,
    ),
    "LIKE takes the last place that fits": Fault(
        "model.selectors.patterns",
        "    return start + (candidates & -candidates).bit_length() - 1",
        "    return start + candidates.bit_length() - 1",
        test_like.test_every_short_pattern_is_what_a_table_says_of_every_short_text,
    ),
    "an escaped wildcard is one": Fault(
        "model.selectors.patterns",
        "            segment.append(escaped)",
        "            segment.append(_ANY if escaped == '_' else escaped)",
        test_like.test_every_short_pattern_with_an_escape_is_what_a_table_says,
    ),
    "the switch of queues decides for topics": Fault(
        "policies.dead_letters",
        "            as_queue = self.use_queue_for_topic_messages",
        "            as_queue = self.use_queue_for_queue_messages",
        test_switches.test_a_queue_or_a_topic_of_dead_letters,
        {"queues": True, "topics": False},
    ),
    "the suffix of queues is that of topics": Fault(
        "policies.dead_letters",
        "{self.topic_prefix}{facts.name}{self.topic_suffix}",
        "{self.topic_prefix}{facts.name}{self.queue_suffix}",
        test_switches.test_prefixes_and_suffixes,
    ),
    "dead letters of temporary topics are dropped as those of queues": Fault(
        "policies.brokers.classic.rules",
        "            isinstance(original, TemporaryTopic) and self.drop_temporary_topics",
        "            isinstance(original, TemporaryTopic) and self.drop_temporary_queues",
        test_switches.test_temporary_queues_and_topics_whose_dead_letters_are_dropped,
        _swapped,
    ),
    "durable subscribers have the prefetch of others": Fault(
        "policies.prefetch",
        "            return self.durable_topic if durable else self.topic",
        "            return self.topic if durable else self.durable_topic",
        test_switches.test_prefetch_by_kind_of_consumer,
        {"numbers": (1, 2, 3, 4)},
    ),
    "the attempts of the start count after a loss": Fault(
        "policies.reconnect",
        "        limit = self.maximum_attempts\n        if startup:",
        "        limit = self.maximum_attempts\n        if not startup:",
        test_switches.test_attempts_at_the_start_and_after_a_loss,
        _swapped,
    ),
}


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    if "quote" in request.node.name:
        pytest.importorskip("proton")
        ports: dict[str, Any] = {"amqp_port": 0}
    else:
        ports = {}
    with EmbeddedBroker(f"letters-{uuid4().hex}", **ports) as broker:
        yield broker


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.operate.letters.moving._COMES", 0.2)


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_caught(fault: str, request: pytest.FixtureRequest) -> None:
    caught(FAULTS[fault], request)
