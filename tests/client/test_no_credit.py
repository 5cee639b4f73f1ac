"""A peer that gives no credit: what was never written is withdrawn, its sender gets an error, and it leaves no more."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.aio.looped import run
from tests.client.gated import QUICK
from tests.client.shell import SOON, Background, eventually
from tests.client.stingy import Stingy
from tests.conformance.blocking import Shell

import redelivery
from redelivery import (
    Connection,
    ConnectionLostError,
    InDoubtError,
    ReconnectPolicy,
    ResourceAllocationError,
    TransactionRolledBackError,
)

WAIT = 0.2  # seconds, which are the request's time-out
BY_RECONNECT = pytest.mark.parametrize("reconnect", [None, QUICK], ids=["once", "reconnect"])
Send = Callable[[object], object]


@pytest.fixture(params=[False, True], ids=["named", "relay"])
def peer(request: pytest.FixtureRequest) -> Iterator[Stingy]:
    with Stingy(relay=request.param) as peer:
        yield peer


def connect(
    peer: Stingy, reconnect: ReconnectPolicy | None = None, shell: Shell | None = None, **options: Any
) -> Connection:
    options = {"request_timeout": WAIT, "close_timeout": 1, **options}
    opens: Callable[..., Connection] = redelivery.connect if shell is None else shell.connect
    return opens(peer.url, reconnect=reconnect, **options)


def by_send(connection: Connection) -> Send:
    return connection.session().producer("orders").send


def not_persistently(connection: Connection) -> Send:
    return connection.session().producer("orders", persistent=False).send


def to_a_destination_each_time(connection: Connection) -> Send:
    producer = connection.session().producer()
    return lambda body: producer.send(body, "orders")


def asynchronously(connection: Connection) -> Send:
    producer = connection.session().producer("orders")
    return lambda body: producer.send_async(body).result(SOON)


def by_a_publisher(connection: Connection) -> Send:
    publisher = connection.publisher()
    return lambda body: publisher.send(body, "orders")


WAYS = [by_send, not_persistently, to_a_destination_each_time, asynchronously, by_a_publisher]


@BY_RECONNECT
@pytest.mark.parametrize("way", WAYS)
def test_nothing_was_sent_and_nothing_is_later(
    peer: Stingy, shell: Shell, way: Callable[[Connection], Send], reconnect: ReconnectPolicy | None
) -> None:
    with connect(peer, reconnect, shell) as connection:
        send = way(connection)
        with pytest.raises(ResourceAllocationError, match="no credit: nothing was sent") as raised:
            send("order 1")
        assert not isinstance(raised.value, InDoubtError)
        peer.give_all()
        send("order 1")
        eventually(lambda: peer.bodies)
    assert peer.bodies == ["order 1"]


@BY_RECONNECT
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_transaction_without_credit_is_rolled_back(
    peer: Stingy, shell: Shell, asynchronous: bool, reconnect: ReconnectPolicy | None
) -> None:
    with connect(peer, reconnect, shell) as connection, connection.session("transacted") as session:
        producer = session.producer("orders")
        future = producer.send_async("order 1") if asynchronous else producer.send("order 1")
        with pytest.raises(TransactionRolledBackError, match="no credit: nothing was sent") as raised:
            session.commit()
        assert isinstance(raised.value, ResourceAllocationError)
        if asynchronous:
            assert isinstance(future.exception(SOON), ResourceAllocationError)  # type: ignore[union-attr]  # a future
        peer.give_all()
        producer.send("order 2")
        session.commit()
    assert peer.bodies == ["order 2"]


@pytest.mark.parametrize("waits_for", ["the declare", "the commit"])
def test_a_coordinator_without_credit_commits_nothing(waits_for: str) -> None:
    with Stingy(credit=10, coordinates=0 if waits_for == "the declare" else 1) as peer:
        with connect(peer) as connection, connection.session("transacted") as session:
            producer = session.producer("orders")
            future = producer.send_async("order 1")
            if waits_for == "the declare":
                assert isinstance(future.exception(SOON), ResourceAllocationError)
            with pytest.raises(TransactionRolledBackError, match="no credit: nothing was sent") as raised:
                session.commit()
            assert isinstance(raised.value, ResourceAllocationError)
            assert not isinstance(raised.value, InDoubtError)
            peer.give_all()
            producer.send("order 2")
            session.commit()
        assert peer.bodies == ["order 2"]


def test_a_transaction_s_first_future_is_answered_before_the_commit() -> None:
    """It waits for the transaction's id, and leaves with the answer to the declare."""
    with Stingy(credit=10) as peer, connect(peer, request_timeout=5) as connection:
        session = connection.session("transacted")
        for number in range(3):
            producer = session.producer(f"orders.{number}")
            futures = [producer.send_async(f"{number}.{each}") for each in range(3)]
            assert [each.exception(SOON) for each in futures] == [None] * 3
            session.commit()
    assert peer.bodies == [f"{number}.{each}" for number in range(3) for each in range(3)]


def test_what_waits_for_credit_at_the_close_is_not_in_doubt(peer: Stingy) -> None:
    connection = connect(peer, request_timeout=30, close_timeout=WAIT)
    futures = [connection.session().producer("orders").send_async(f"order {each}") for each in range(3)]
    connection.close()
    peer.give_all()
    assert {type(each.exception(SOON)) for each in futures} == {ResourceAllocationError}
    assert peer.bodies == []


def test_credit_in_its_own_time_is_credit(peer: Stingy) -> None:
    """Each message has as long as a request, from the last one that left."""
    with connect(peer, request_timeout=1) as connection, connection.session("transacted") as session:
        producer = session.producer("orders")
        futures = [producer.send_async(f"order {each}") for each in range(4)]
        for each in range(4):
            time.sleep(0.4)
            peer.give(1, each)
        session.commit()
        assert [each.exception(SOON) for each in futures] == [None] * 4
    assert peer.bodies == [f"order {each}" for each in range(4)]


def test_a_task_that_is_cancelled_takes_its_message_with_it(peer: Stingy) -> None:
    async def work() -> None:
        async with await redelivery.aio.connect(peer.url, close_timeout=1) as connection:
            producer = await (await connection.session()).producer()
            task = asyncio.create_task(producer.send("order 1", "orders"))
            while not peer.links:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as raised:
                await task
            assert isinstance(raised.value.__cause__, InDoubtError)
            peer.give_all()
            await producer.send("order 2", "orders")

    run(work())
    assert peer.bodies == ["order 2"]


@BY_RECONNECT
@pytest.mark.parametrize("way", WAYS)
def test_a_loss_meanwhile_leaves_no_doubt(
    background: Background, peer: Stingy, way: Callable[[Connection], Send], reconnect: ReconnectPolicy | None
) -> None:
    with connect(peer, reconnect, request_timeout=5) as connection:
        send = way(connection)
        result = background.start(lambda: send("order 1"))
        eventually(lambda: peer.links)
        peer.credit = 10
        peer.ends[0].sock.shutdown(socket.SHUT_RDWR)
        if reconnect is None:
            with pytest.raises(ConnectionLostError):
                result()
        else:
            result()
            eventually(lambda: peer.bodies)
    assert peer.bodies == ([] if reconnect is None else ["order 1"])
