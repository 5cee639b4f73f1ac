"""A program to be killed, or whose broker is: for each message of one queue it sends one to another.

``python victim.py URL SOURCE TARGET MODE SEED [asyncio]``, over the API for threads or for asyncio. In a transacted
session it sends while it receives, and commits a batch, or rolls it back. Without transactions it receives a batch,
sends what belongs to it, each send confirmed, and acknowledges after that, or has the batch redelivered before it has
sent anything. Batches change their size. When the connection is lost it connects anew.

It ends when nothing comes any more and its standard input is at its end. On its standard output it says what it does,
a line at a time and at once, after the time in seconds:

| line | means |
|---|---|
| `got BODY COUNT` | delivered for the COUNT-th time, as far as it knows |
| `commit` | the commit begins, or, without transactions, what is sent and acknowledged |
| `committed` | commit() or acknowledge() has returned |
| `rolled-back` | rollback() or recover() has returned, or the commit raised TransactionRolledBackError |
| `in-doubt` | the commit raised InDoubtError |
| `lost` | the connection is lost |
| `end` | the connection is closed |
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import sys
from time import monotonic, sleep

import redelivery
from redelivery import (
    AckMode,
    ConnectError,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    Message,
    RedeliveryPolicy,
    SecurityError,
    Session,
    aio,
)

SIZES = (1, 2, 7, 30, 150)  # the last is more than the prefetch window
IN_THE_WINDOW = SIZES[:-1]  # HornetQ may hold back what comes beyond it
QUICK = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.01, redelivery_delay=0.01)
PATIENCE = 1.0
BROKER_IS_BACK = 120.0
_NOT_YET = (ConnectError, ConnectionLostError, SecurityError, TimeoutError)  # Broker-J may deny anyone as it starts


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, (f"{monotonic():.4f}", *words))) + "\n").encode())


def at_end_of_input() -> bool:
    return bool(select.select([0], [], [], 0)[0])


class Program:
    def __init__(
        self, session: Session, source: str, target: str, chance: random.Random, sizes: tuple[int, ...]
    ) -> None:
        self.session = session
        self.sizes = sizes
        self.consumer = session.consumer(source)
        self.producer = session.producer(target)
        self.chance = chance

    def run(self) -> None:
        while True:
            batch = self._batch(self.chance.choice(self.sizes))
            if batch and self.chance.random() < 0.2:
                self.session.rollback() if self.session.transacted else self.session.recover()
                say("rolled-back")
            elif batch:
                self._end(batch)
            elif at_end_of_input():
                return

    def _batch(self, size: int) -> list[Message]:
        batch: list[Message] = []
        while len(batch) < size and (message := self.consumer.receive(timeout=PATIENCE)) is not None:
            say("got", message.body, message.delivery_count)
            if self.session.transacted:
                self.producer.send(message.body)
            batch.append(message)
        return batch

    def _end(self, batch: list[Message]) -> None:
        say("commit")
        try:
            if self.session.transacted:
                self.session.commit()
            else:
                for message in batch:
                    self.producer.send(message.body)
                for message in batch if self.session.ack_mode == AckMode.INDIVIDUAL else batch[-1:]:
                    message.acknowledge()
        except redelivery.TransactionRolledBackError:
            say("rolled-back")
        except InDoubtError:
            say("in-doubt")
            if not self.session.transacted:
                raise
        else:
            say("committed")


def connect(url: str) -> redelivery.Connection:
    until = monotonic() + BROKER_IS_BACK
    while True:
        try:
            return redelivery.connect(url, redelivery_policy=QUICK, connect_timeout=5)
        except _NOT_YET:
            if monotonic() > until:
                raise
            sleep(0.1)


class AsyncProgram:
    """The same over `redelivery.aio`."""

    def __init__(
        self, session: aio.Session, consumer: aio.Consumer, producer: aio.Producer, chance: random.Random
    ) -> None:
        self.session = session
        self.consumer = consumer
        self.producer = producer
        self.chance = chance

    async def run(self, sizes: tuple[int, ...]) -> None:
        while True:
            batch = await self._batch(self.chance.choice(sizes))
            if batch and self.chance.random() < 0.2:
                await (self.session.rollback() if self.session.transacted else self.session.recover())
                say("rolled-back")
            elif batch:
                await self._end(batch)
            elif at_end_of_input():
                return

    async def _batch(self, size: int) -> list[aio.Message]:
        batch: list[aio.Message] = []
        while len(batch) < size and (message := await self.consumer.receive(timeout=PATIENCE)) is not None:
            say("got", message.body, message.delivery_count)
            if self.session.transacted:
                await self.producer.send(message.body)
            batch.append(message)
        return batch

    async def _end(self, batch: list[aio.Message]) -> None:
        say("commit")
        try:
            if self.session.transacted:
                await self.session.commit()
            else:
                for message in batch:
                    await self.producer.send(message.body)
                for message in batch if self.session.ack_mode == AckMode.INDIVIDUAL else batch[-1:]:
                    await message.acknowledge()
        except redelivery.TransactionRolledBackError:
            say("rolled-back")
        except InDoubtError:
            say("in-doubt")
            if not self.session.transacted:
                raise
        else:
            say("committed")


async def connect_async(url: str) -> aio.Connection:
    until = monotonic() + BROKER_IS_BACK
    while True:
        try:
            return await aio.connect(url, redelivery_policy=QUICK, connect_timeout=5)
        except _NOT_YET:
            if monotonic() > until:
                raise
            await asyncio.sleep(0.1)


async def main_async(url: str, source: str, target: str, mode: str, chance: random.Random) -> None:
    while True:
        async with await connect_async(url) as connection:
            sizes = IN_THE_WINDOW if connection.metadata.provider_name == "HornetQ" else SIZES
            try:
                async with connection.session(mode) as session:
                    consumer, producer = await session.consumer(source), await session.producer(target)
                    await AsyncProgram(session, consumer, producer, chance).run(sizes)
                break
            except JMSError:
                if connection.connected:
                    raise
                say("lost")
    say("end")


def main(url: str, source: str, target: str, mode: str, seed: str, api: str = "") -> None:
    chance = random.Random(seed)  # noqa: S311  # a test that can be repeated
    if api == "asyncio":
        asyncio.run(main_async(url, source, target, mode, chance))
        return
    while True:
        with connect(url) as connection:
            sizes = IN_THE_WINDOW if connection.metadata.provider_name == "HornetQ" else SIZES
            try:
                with connection.session(mode) as session:
                    Program(session, source, target, chance, sizes).run()
                break
            except JMSError:
                if connection.connected:
                    raise
                say("lost")
    say("end")


if __name__ == "__main__":
    main(*sys.argv[1:])
