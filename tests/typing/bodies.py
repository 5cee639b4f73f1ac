"""Never run: mypy and pyright check it (`make check`, test_pyright.py): the types of bodies, as users see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import redelivery
from redelivery import Consumer, Message, Session


@dataclass
class Order:
    id: int


class Refund(TypedDict):
    id: int


def priced(body: str) -> float:
    return float(body)


def consumers(session: Session) -> None:
    orders = session.consumer("orders", body_type=Order)
    assert_type(orders, Consumer[Order])
    message = orders.receive(timeout=1)
    assert_type(message, Message[Order] | None)
    if message is not None:
        assert_type(message.body, Order)
        assert_type(message.body.id, int)
        print(message.body.colour)  # type: ignore[attr-defined]  # pyright: ignore  # there is no such field
        assert_type(message.raw_body, bytes)
        assert_type(message.copy(), Message)
    assert_type(orders.receive_nowait(), Message[Order] | None)
    assert_type(orders.receive_many(10, 0.5), list[Message[Order]])
    assert_type(iter(orders), Iterator[Message[Order]])
    assert_type(session.consumer("refunds", body_type=Refund).receive_many(1, 1)[0].body["id"], int)
    assert_type(session.consumer("orders", body_type=list[Order], prefetch=1), Consumer[list[Order]])
    assert_type(session.consumer("orders", body_type=dict[str, int]), Consumer[dict[str, int]])
    assert_type(session.consumer("orders", body_type=str), Consumer[str])
    assert_type(session.consumer("prices", body_type=priced), Consumer[float])
    session.consumer("orders", body_type=Order | None)
    assert_type(session.consumer("orders", body_type="json"), Consumer[Any])
    assert_type(session.consumer("orders", body_type=None), Consumer[Any])
    assert_type(session.consumer("orders", selector="a = 1"), Consumer[Any])
    assert_type(session.durable_consumer("topic://news", "daily", body_type=Order), Consumer[Order])
    assert_type(session.shared_consumer("topic://news", "desk", body_type=Order), Consumer[Order])
    assert_type(session.shared_durable_consumer("topic://news", "desk", body_type=Order), Consumer[Order])
    session.consumer("orders", body_type=Order, retries=3)  # type: ignore[call-overload]  # pyright: ignore


def listeners(connection: redelivery.Connection, orders: Consumer[Order]) -> None:
    def handle(message: Message[Order]) -> None:
        assert_type(message.body, Order)

    orders.listen(handle)
    orders.listen(lambda message: print(message.body.id))
    connection.listener_container("orders", handle, body_type=Order)


def untyped(message: Message) -> None:
    assert_type(message, Message[Any])
    assert_type(message.body, Any)
    assert_type(Message("text"), Message[Any])


async def asyncio(session: redelivery.aio.Session) -> None:
    async with session.consumer("orders", body_type=Order) as consumer:
        assert_type(consumer, redelivery.aio.Consumer[Order])
        assert_type(await consumer.receive(), redelivery.aio.Message[Order] | None)
        assert_type(await consumer.receive_many(10, 0.5), list[redelivery.aio.Message[Order]])
        async for message in consumer:
            assert_type(message.body, Order)
            await message.acknowledge()

    async def handle(message: redelivery.aio.Message[Order]) -> None:
        assert_type(message.body.id, int)

    await (await session.consumer("orders", body_type=Order)).listen(handle)
    assert_type(await session.consumer("orders"), redelivery.aio.Consumer[Any])
