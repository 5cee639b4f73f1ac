"""What a broker cannot do is refused when it is asked for, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

import redelivery
from redelivery import AckMode, UnsupportedError
from redelivery.broker import EmbeddedBroker


def test_a_broker_without_transactions_gives_no_transacted_session() -> None:
    with EmbeddedBroker("plain") as broker, redelivery.connect(broker.vm_url) as connection:
        peer = connection._core.transport.peer
        connection._core.transport.peer = replace(peer, capabilities=replace(peer.capabilities, transactions=False))
        with pytest.raises(UnsupportedError, match=r"has no transactions: use ack_mode='client' or"):
            connection.session(AckMode.TRANSACTED)
        assert connection.session(AckMode.CLIENT).ack_mode == AckMode.CLIENT
