"""What the soak runs, over the API for threads and over the one for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tests.conformance.soak.tally import Handled, Tally
from tests.conformance.stage import QUICK, Stage

import redelivery
from redelivery import InDoubtError, Message

MOST_BEHIND: Final = 500  # messages: a broker that writes each commit to its disk takes more of them than it gives
PATIENCE: Final = 60.0  # seconds for what is left at the end
Options = Mapping[str, Any]


class Sent:
    """Numbers, each confirmed or in doubt, as fast as they are handled."""

    def __init__(self, handled: Handled, pause: float) -> None:
        self.handled = handled
        self.pause = pause
        self.confirmed = Tally()
        self.doubted = 0
        self.number = 0

    @property
    def behind(self) -> int:
        """How many are sent, and not yet handled."""
        return self.number - self.handled.different

    def waits(self) -> bool:
        """Whether too much is on its way."""
        return self.behind > MOST_BEHIND

    def done(self, *, doubted: bool) -> None:
        """The number is sent, or may be."""
        if doubted:
            self.doubted += 1
        else:
            self.confirmed.add(self.number)
        self.number += 1


class Program(Protocol):
    """A sender, and a container of two workers."""

    def __init__(self, stage: Stage, sent: Sent, sending: Options, receiving: Options, container: Options) -> None:
        """Connected, and receiving; ``sending``, ``receiving``: what to connect with."""

    def start(self) -> None:
        """Send."""

    def stop_sending(self) -> None:
        """When this returns, nothing is sent any more."""

    def drain(self) -> bool:
        """See `ListenerContainer.drain`."""

    def close(self) -> None:
        """Close what the stage does not."""


class Threads:
    """`redelivery`."""

    def __init__(self, stage: Stage, sent: Sent, sending: Options, receiving: Options, container: Options) -> None:
        self._sent = sent
        self._producer = stage.connect(**sending).session().producer(stage.queue)
        self._stopping = threading.Event()
        self._sender = threading.Thread(target=self._send, name="soak-sender")
        self._container = stage.connect(**receiving).listener_container(stage.queue, self._handle, **container)
        self._container.start()

    def start(self) -> None:
        self._sender.start()

    def stop_sending(self) -> None:
        self._stopping.set()
        self._sender.join(PATIENCE)
        assert not self._sender.is_alive()

    def drain(self) -> bool:
        return self._container.drain()

    def close(self) -> None:
        self._stopping.set()

    def _handle(self, message: Message) -> None:
        self._sent.handled.handle(int(str(message.body)), message.source)

    def _send(self) -> None:
        sent = self._sent
        while not self._stopping.wait(sent.pause):
            if sent.waits():
                continue
            try:
                self._producer.send(str(sent.number))
            except InDoubtError:
                sent.done(doubted=True)
            else:
                sent.done(doubted=False)


class Tasks:
    """`redelivery.aio`: one event loop, on a thread of its own."""

    def __init__(self, stage: Stage, sent: Sent, sending: Options, receiving: Options, container: Options) -> None:
        self._stage = stage
        self._sent = sent
        self._stopping = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="soak-loop", daemon=True)
        self._thread.start()
        self._connections: list[redelivery.aio.Connection] = []
        self._sender: asyncio.Task[None] | None = None
        self._call(self._open(sending, receiving, container))

    def start(self) -> None:
        async def begin() -> None:
            self._sender = asyncio.create_task(self._send())

        self._call(begin())

    def stop_sending(self) -> None:
        async def stop() -> None:
            self._stopping.set()
            assert self._sender is not None
            async with asyncio.timeout(PATIENCE):
                await self._sender

        self._call(stop())

    def drain(self) -> bool:
        return bool(self._call(self._container.drain()))

    def close(self) -> None:
        async def close() -> None:
            self._stopping.set()
            for each in self._connections:
                await each.close()

        self._call(close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _open(self, sending: Options, receiving: Options, container: Options) -> None:
        connections = [
            await redelivery.aio.connect(**{"redelivery_policy": QUICK, **options}) for options in (sending, receiving)
        ]
        self._connections += connections
        session = await connections[0].session()
        self._producer = await session.producer(self._stage.queue)
        self._container = connections[1].listener_container(self._stage.queue, self._handle, **container)
        await self._container.start()

    async def _handle(self, message: Message) -> None:
        self._sent.handled.handle(int(str(message.body)), message.source)

    async def _send(self) -> None:
        sent = self._sent
        while not self._stopping.is_set():
            await asyncio.sleep(sent.pause)
            if sent.waits():
                continue
            try:
                await self._producer.send(str(sent.number))
            except InDoubtError:
                sent.done(doubted=True)
            else:
                sent.done(doubted=False)

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


DRIVERS: Final[Mapping[str, Callable[..., Program]]] = {"threads": Threads, "asyncio": Tasks}
