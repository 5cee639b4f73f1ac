"""Where a call is cancelled: a session that is half through a queue, plain or with a connection that makes it wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from tests.client.aio.cancellation.cancelled import POLICY, SOON, cancelled, soon
from tests.client.aio.cancellation.checks import settle, until
from tests.run.gate import Gate

from redelivery import AckMode, ConnectionLostError, IllegalStateError, ReconnectPolicy, TransactionRolledBackError, aio
from redelivery.broker import EmbeddedBroker
from redelivery.transports.wire.sockets import Stream

ALL = ("a", "b", "c", "d")
_AWAY = 0.02  # seconds until what makes the call wait is over
QUICK = ReconnectPolicy(initial_delay=0.001, maximum_delay=0.01)


@dataclass
class Scene:
    """A session that has received two of four messages (none, with a prefetch of 0), and what is made beside it.

    Attributes:
        seen: the bodies that the application has got, in their order.
        others: what a row makes.
        called: a callback or handler may be inside.
        lost: the connection was lost.
        again: so one message may come once more, as the connection was lost meanwhile.
    """

    broker: EmbeddedBroker
    url: str
    prefetch: int | None = None
    gate: Gate | None = None
    name: str = field(default_factory=lambda: uuid4().hex)
    seen: list[Any] = field(default_factory=list)
    messages: list[aio.Message] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)
    called: bool = False
    lost: bool = False
    again: bool = False
    connection: aio.Connection = field(init=False)
    session: aio.Session = field(init=False)
    consumer: aio.Consumer = field(init=False)
    producer: aio.Producer = field(init=False)

    @property
    def queue(self) -> str:
        """Where it receives."""
        return f"in.{self.name}"

    @property
    def target(self) -> str:
        """Where it sends."""
        return f"out.{self.name}"

    async def receive(self) -> None:
        """The next message, noted."""
        self.note(await soon(self.consumer))

    def note(self, message: aio.Message) -> None:
        """The application has got it."""
        self.messages.append(message)
        self.seen.append(message.body)

    async def listen(self, message: aio.Message) -> None:
        """A listener."""
        self.note(message)
        await asyncio.sleep(0)

    def left(self, queue: str) -> list[Any]:
        """What a queue holds."""
        return [message.body for message in self.broker.messages(queue)]


Act: TypeAlias = Callable[[Scene], Coroutine[Any, Any, Any]]
Check: TypeAlias = Callable[[Scene, BaseException | None], Coroutine[Any, Any, Any]]


async def nothing(_: Scene) -> None:
    """Prepare nothing."""


async def passes(_: Scene, __: BaseException | None) -> None:
    """Nothing beside what holds after every call."""


async def consumes(made: Scene) -> None:
    """The usual beginning."""
    made.consumer = await made.session.consumer(made.queue, prefetch=made.prefetch)
    if made.prefetch is None:
        for _ in range(2):
            await made.receive()


@dataclass(frozen=True)
class Row:
    """One call to cancel, and what holds afterwards beside what always does.

    Attributes:
        names: of the public coroutines that it stands for, as ``Class.method``.
        begin: what is made before.
        check: looks first, before anything else is called.
    """

    names: tuple[str, ...]
    act: Act
    mode: AckMode = AckMode.AUTO
    begin: Act = consumes
    check: Check = passes

    @property
    def id(self) -> str:
        """In the names of the tests."""
        return f"{self.act.__name__}-{self.mode.name}" if self.mode is not AckMode.AUTO else self.act.__name__


@asynccontextmanager
async def opened(made: Scene, row: Row) -> AsyncIterator[Scene]:
    """The scene, begun."""
    for body in ALL:
        made.broker.send(made.queue, body)
    reconnect = None if made.gate is None else QUICK
    connection = await aio.connect(
        made.url, redelivery_policy=POLICY, request_timeout=SOON, client_id=made.name, reconnect=reconnect
    )
    async with AsyncExitStack() as closing:
        closing.push_async_callback(connection.close)
        made.connection = connection
        made.session = await connection.session(row.mode)
        made.producer = await made.session.producer(made.target)
        await row.begin(made)
        if "container" not in made.others:  # whose workers are inside
            await settle(made.broker, connection, made.queue)
        yield made


Trouble: TypeAlias = Callable[[Scene], Coroutine[Any, Any, None]]


async def lose(made: Scene) -> None:
    """The connection is lost, and comes back a little later."""
    assert made.gate is not None
    made.lost, made.again = True, made.called or "container" in made.others
    made.gate.shut(_AWAY)
    await until(lambda: "it is not lost yet" if made.connection.connected else None)


async def congest(made: Scene) -> None:
    """The system takes nothing of what is to leave, for a while."""
    filler = await made.connection.session()
    producer = await filler.producer(f"much.{made.name}", persistent=False)
    await producer.send("whose link is there now")
    patch, send = pytest.MonkeyPatch(), Stream.send
    held, tried = True, False

    def _send(stream: Stream, data: bytes | memoryview) -> int:
        nonlocal tried
        tried = True
        return 0 if held else send(stream, data)

    def let_go() -> None:
        nonlocal held
        held = False
        patch.undo()

    patch.setattr(Stream, "send", _send)
    made.others["filling"] = asyncio.create_task(producer.send("much"))
    try:
        await until(lambda: None if tried else "nothing is to leave")
    finally:
        asyncio.get_running_loop().call_later(_AWAY, let_go)


async def play(
    broker: EmbeddedBroker,
    url: str,
    row: Row,
    *,
    gate: Gate | None = None,
    prefetch: int | None = None,
    trouble: Trouble = nothing,
) -> int:
    """The row, cancelled in its first wait, in its second, …, each time in a new scene; how many waits it has."""
    for number in range(1, 300):
        made = Scene(broker, url, prefetch, gate)
        before = asyncio.all_tasks()
        async with opened(made, row):
            await trouble(made)
            was, error = await cancelled(row.act(made), number)
            assert was or error is None
            await asyncio.wait_for(_check(made, row, error if was else None), SOON)
        await _ended(made, before)
        if not was:
            return number - 1
    raise AssertionError("it waits for ever")


async def _check(made: Scene, row: Row, error: BaseException | None) -> None:
    await row.check(made, error)
    if made.connection.closed:
        return
    if "filling" in made.others:
        await made.others["filling"]
    await settle(made.broker, made.connection, made.queue)
    if not made.session.closed:
        await _goes_on(made, row)
        await settle(made.broker, made.connection, made.queue)
    async with made.connection.session() as session, session.producer(made.target) as producer:
        await producer.send("from another session")
    await made.connection.close()
    left = made.left(made.queue)
    assert sorted({*left, *made.seen}) == sorted(ALL), f"of {ALL} it saw {made.seen} and left {left}"
    if row.mode is AckMode.AUTO and not made.again:
        assert sorted([*left, *made.seen]) == sorted(ALL), f"it saw {made.seen} and left {left}"


async def _goes_on(made: Scene, row: Row) -> None:
    """The session sends, and receives what is next."""
    consumer = getattr(made, "consumer", None)
    if consumer is not None and consumer._state.listening:
        await until(lambda: None if len({*made.seen}) == len(ALL) else f"the listener has got only {made.seen}")
        return
    transacted = row.mode is AckMode.TRANSACTED
    with suppress(TransactionRolledBackError):  # its connection was lost
        await made.producer.send("goes on")
        if transacted:
            await made.session.commit()
    if not transacted:
        assert made.left(made.target)[-1] == "goes on"
    if consumer is None or consumer.closed or row.mode is not AckMode.AUTO:
        return
    while len({*made.seen}) < len(ALL):
        await made.receive()
    assert made.again or made.seen == list(ALL), "in their order"


async def _ended(made: Scene, before: set[asyncio.Task[Any]]) -> None:
    """Nothing of the connection is left."""

    def difference() -> str | None:
        tasks = [task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()]
        if tasks:
            return f"still running: {tasks}"
        connections = made.broker.core.connections
        return f"the broker has {connections} connections still" if connections else None

    await until(difference)
    with suppress(IllegalStateError, ConnectionLostError):
        made.connection.check_open("it")
        raise AssertionError("it is closed")
