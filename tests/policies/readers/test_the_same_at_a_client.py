"""What `explain` says of a message that fails for ever, and of one that expires, is what a client's policies do."""

from __future__ import annotations

import pytest
from tests.policies.readers.fates import DESTINATIONS, FILES, place

from redelivery.model.destinations import destination
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import CopyTo
from redelivery.policies.redelivery import RedeliveryPolicy


def at_client(found: BrokerPolicies, name: str, *, expired: bool) -> str | None:
    original = destination(name)
    decision = found.dead_letter_strategies.strategy_for(original).decide(
        original, persistent=True, expired=expired, native_available=False
    )
    if not isinstance(decision, CopyTo):
        return None
    return decision.destination.name.rpartition("::")[2].removeprefix("jms.queue.")  # of an address in WildFly


@pytest.mark.parametrize("expired", [False, True], ids=["fails-for-ever", "expires"])
@pytest.mark.parametrize("file", FILES)
def test_it_ends_where_the_file_says(file: str, expired: bool) -> None:
    found = FILES[file]
    for name in DESTINATIONS:
        explained = found.explain(name)
        end = place(explained, explained.expired if expired else explained.dead_letter)
        assert at_client(found, name, expired=expired) == end, name


@pytest.mark.parametrize("file", FILES)
def test_a_client_gives_up_after_as_many_attempts(file: str) -> None:
    found = FILES[file]
    for name in DESTINATIONS:
        explained, policy = found.explain(name), found.redelivery_policies.policy_for(destination(name))
        if explained.counts == "give-ups" and explained.maximum == 1:  # it is left to clients, which have their default
            assert policy.maximum_redeliveries == RedeliveryPolicy().maximum_redeliveries, name
        else:
            assert policy.maximum_redeliveries == (-1 if explained.maximum is None else explained.maximum - 1), name
