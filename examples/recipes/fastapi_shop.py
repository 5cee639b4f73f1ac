"""A web application that publishes orders, handles them, and says whether it is well.

REDELIVERY_URL=stomp://user:password@localhost:61613 uvicorn fastapi_shop:app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel

import redelivery
from redelivery import ReconnectPolicy, SharedDeadLetterStrategy


class Order(BaseModel):
    id: int
    article: str


async def pack(order: Order, session: redelivery.aio.Session) -> None:
    producer = await session.producer("parcels")
    await producer.send(f"parcel {order.id} with {order.article}")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One connection for each process, made in its event loop: with ``--workers 4`` there are four."""
    async with (
        redelivery.aio.connect(
            os.environ["REDELIVERY_URL"],
            reconnect=ReconnectPolicy(timeout=5),  # a send waits so long for a broker that is away, then it raises
            dead_letter_strategy=SharedDeadLetterStrategy("shop.DLQ"),
        ) as connection,
        connection.publisher() as publisher,
        connection.listener_container("orders", pack, body_type=Order, concurrency=4),
    ):
        app.state.connection, app.state.publisher = connection, publisher
        yield  # when the server ends, handlers finish their messages first


app = FastAPI(lifespan=lifespan)


def publisher_of(request: Request) -> redelivery.aio.Publisher:
    publisher: redelivery.aio.Publisher = request.app.state.publisher
    return publisher


@app.post("/orders", status_code=202)
async def order(order: Order, publisher: Annotated[redelivery.aio.Publisher, Depends(publisher_of)]) -> dict[str, int]:
    try:
        await publisher.send(order.model_dump_json(), "orders")  # returns when the broker has it
    except redelivery.JMSError as error:
        raise HTTPException(503, "orders cannot be taken now") from error
    return {"accepted": order.id}


@app.get("/ready")
async def ready(request: Request, response: Response) -> dict[str, Any]:
    health = request.app.state.connection.health()
    response.status_code = 200 if health.healthy else 503
    return {"healthy": health.healthy, "reasons": list(health.reasons)}
