"""The record of what a session has shown and released, where the broker delivers it as new."""

from __future__ import annotations

from typing import Any

from redelivery.model.destinations import Queue
from redelivery.transports.seam import Link, LinkSpec
from redelivery.transports.stomp.connection.redelivered_ids import MOST, RedeliveredIds, ReleasedIds


def test_the_record_of_what_was_released_is_bounded() -> None:
    class Seen:
        def __init__(self, number: int, subscription: object) -> None:
            self.subscription = subscription
            self.link = Link(LinkSpec(Queue("orders")))
            self.number = number
            self.flagged = False

        def raw_id(self) -> bytes:
            return b"%d" % self.number

        def mark_redelivered(self) -> None:
            self.flagged = True

    released, subscription = ReleasedIds(), object()
    ids = RedeliveredIds(released)
    seen: list[Any] = [Seen(number, subscription) for number in range(MOST + 5)]
    for each in seen:
        ids.show(each)
    ids.release([subscription])  # type: ignore[list-item]  # only its identity counts
    ids.mark(seen)
    assert [each.number for each in seen if not each.flagged] == [0, 1, 2, 3, 4]
    ids.settle(seen)
    assert (ids._held, released._places) == ({}, {})
