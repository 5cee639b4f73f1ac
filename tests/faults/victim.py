"""A program to be killed, or whose broker is: for each message of one queue it sends one to another.

``python victim.py URL SOURCE TARGET MODE SEED [asyncio]``, over the API for threads or for asyncio. In a transacted
session it sends while it receives, and commits a batch, or rolls it back. Without transactions it receives a batch,
sends what belongs to it, each send confirmed, and acknowledges after that, or has the batch redelivered before it has
sent anything; with AUTO a listener sends what belongs to each message, confirmed, and returns, or raises. Batches
change their size. When the connection is lost it connects anew.

It ends when nothing comes any more and its standard input is at its end. On its standard output it says what it does,
a line at a time and at once, after the time in seconds:

| line | means |
|---|---|
| `got BODY COUNT` | delivered for the COUNT-th time, as far as it knows |
| `commit` | the commit begins, or, without transactions, what is sent and acknowledged |
| `committed` | commit() or acknowledge() has returned; with AUTO, what comes after the listener has begun |
| `rolled-back` | rollback() or recover() has returned, TransactionRolledBackError was raised, or the listener raises |
| `in-doubt` | the commit raised InDoubtError |
| `lost` | the connection is lost |
| `end` | the connection is closed |
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import random
import select
import sys
import threading
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
    RequestTimeoutError,
    SecurityError,
    Session,
    aio,
)

AUTO = "auto"
SIZES = (1, 2, 7, 30, 150)  # the last is more than the prefetch window
IN_THE_WINDOW = SIZES[:-1]  # HornetQ may hold back what comes beyond it
QUICK = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.01, redelivery_delay=0.01)
PATIENCE = 1.0
BROKER_IS_BACK = 120.0
_GONE_OR_SLOW = (ConnectionLostError, RequestTimeoutError)  # a question finds that out before the connection does
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


class Listening:
    """AUTO: what each message gets is one line of `Program`; the one before it is acknowledged by then."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.got = 0
        self._inside = False
        self._returned = False
        self._lock = threading.Lock()

    def begin(self, message: Message | aio.Message) -> None:
        """Called first by the listener. Raises where it is to fail."""
        self.end_last()
        with self._lock:
            self._inside = True
        self.got += 1
        say("got", message.body, message.delivery_count)
        if self.chance.random() < 0.2:
            say("rolled-back")
            raise ValueError("the listener fails")
        say("commit")

    def end(self, *, well: bool) -> None:
        """Called last by the listener."""
        with self._lock:
            self._inside, self._returned = False, well

    def end_last(self) -> None:
        """The listener has returned, if it had something, and the session has gone on."""
        with self._lock:
            if self._returned and not self._inside:
                self._returned = False
                say("committed")

    def quiet(self, connection: redelivery.Connection | aio.Connection, got: int) -> bool:
        """Whether nothing has come since, and nothing will. Raises where the connection is lost."""
        if not connection.connected:
            raise ConnectionLostError("it is lost")
        if self.got != got or self._inside:
            return False
        self.end_last()
        return at_end_of_input()

    def run(self, connection: redelivery.Connection, session: Session, source: str, target: str) -> None:
        producer = session.producer(target)

        def receive(message: Message) -> None:
            well = False
            try:
                self.begin(message)
                producer.send(message.body)
                well = True
            finally:
                self.end(well=well)

        session.consumer(source).listen(receive)
        got = -1
        while not self.quiet(connection, got):
            got = self.got
            sleep(PATIENCE)

    async def run_async(self, connection: aio.Connection, session: aio.Session, source: str, target: str) -> None:
        producer, consumer = await session.producer(target), await session.consumer(source)

        async def receive(message: aio.Message) -> None:
            well = False
            try:
                self.begin(message)
                await producer.send(message.body)
                well = True
            finally:
                self.end(well=well)

        await consumer.listen(receive)
        got = -1
        while not self.quiet(connection, got):
            got = self.got
            await asyncio.sleep(PATIENCE)


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
                    if mode == AUTO:
                        await Listening(chance).run_async(connection, session, source, target)
                        break
                    consumer, producer = await session.consumer(source), await session.producer(target)
                    await AsyncProgram(session, consumer, producer, chance).run(sizes)
                break
            except JMSError as error:
                if connection.connected and not isinstance(error, _GONE_OR_SLOW):
                    raise
                say("lost")
    say("end")


def main(url: str, source: str, target: str, mode: str, seed: str, api: str = "") -> None:
    logging.disable(logging.ERROR)  # a listener fails on purpose
    chance = random.Random(seed)  # noqa: S311  # a test that can be repeated
    if api == "asyncio":
        asyncio.run(main_async(url, source, target, mode, chance))
        return
    while True:
        with connect(url) as connection:
            sizes = IN_THE_WINDOW if connection.metadata.provider_name == "HornetQ" else SIZES
            try:
                with connection.session(mode) as session:
                    if mode == AUTO:
                        Listening(chance).run(connection, session, source, target)
                        break
                    Program(session, source, target, chance, sizes).run()
                break
            except JMSError as error:
                if connection.connected and not isinstance(error, _GONE_OR_SLOW):
                    raise
                say("lost")
    say("end")


if __name__ == "__main__":
    faulthandler.enable()  # SIGABRT: where each thread stands
    main(*sys.argv[1:])
