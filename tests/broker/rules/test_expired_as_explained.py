"""What `explain` says of a message that expires is what the embedded broker does with it."""

from __future__ import annotations

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.fates import DESTINATIONS, FILES, place

QUEUES = [each for each in DESTINATIONS if "://" not in each]
DEAD = ("DLQ", "ActiveMQ.DLQ", "EXP", "D", "NEW")
GOES_ON = ("broker_j: routed", "broker_j: made")  # it expires in the alternate queue too: test_counting_rules


@pytest.mark.parametrize("file", [each for each in FILES if each not in ("uri", *GOES_ON)])
def test_what_expires_goes_where_the_explanation_says(file: str) -> None:
    for name in QUEUES:
        explained, bench = FILES[file].explain(name), Bench(FILES[file])
        target = place(explained, explained.expired)
        for each in DEAD:
            bench.consumer(each)  # so that there is such a queue: brokers route to no other ones
        bench.send(name, expiration=bench.now + 10)
        bench.pass_time(20)
        assert bench.engine.depth(name) == 0, name
        found = {each for each in (*DEAD, target) if each and bench.letters(each)}
        assert found == ({target} if target else set()), name
