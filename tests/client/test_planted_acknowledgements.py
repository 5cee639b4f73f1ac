"""Acknowledgements that leave before the application's decision, planted: the tests of that promise notice them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client import test_session_close, test_session_listen, test_session_transaction
from tests.client.shell import Bench

from redelivery import AckMode
from redelivery.broker.vm.channel import VmChannel

Test = Callable[[Bench], None]
PROMISES: dict[str, Test] = {
    "transacted: at receive instead of commit": (
        test_session_transaction.test_nothing_is_acknowledged_before_the_commit
    ),
    "auto: before the callback": lambda bench: (
        test_session_listen.test_a_message_is_acknowledged_after_its_callback_and_not_before(bench, AckMode.AUTO)
    ),
    "client: at receive": lambda bench: test_session_close.TestUnfinishedWork().test_unacknowledged_stays(
        bench, AckMode.CLIENT
    ),
    "individual: at receive": lambda bench: test_session_close.TestUnfinishedWork().test_unacknowledged_stays(
        bench, AckMode.INDIVIDUAL
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_it_is_caught(promise: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatched = VmChannel.dispatched

    def eager(channel: VmChannel, delivery: Any) -> None:
        dispatched(channel, delivery)
        channel.accept((delivery,), batched=False)

    monkeypatch.setattr(VmChannel, "dispatched", eager)
    with pytest.raises(AssertionError):
        PROMISES[promise](bench)
