"""A task that is cancelled loses nothing: every public call, cancelled at each of its waits, one after the other."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.client.aio.cancellation.cancelled import SOON, Act, Scene, cancelled, enumerated, scene, soon

import redelivery
from redelivery import AckMode, InDoubtError, Message, TransactionRolledBackError, aio
from redelivery.broker import EmbeddedBroker


async def receives(made: Scene) -> None:
    made.received.append(await soon(made.consumer))


async def receives_what_comes_later(made: Scene) -> None:
    made.received += await made.consumer.receive_many(2, SOON)
    sending = asyncio.create_task(_send_later(made, "e"))
    try:
        made.received.append(await soon(made.consumer))
    finally:
        await sending


async def _send_later(made: Scene, body: str) -> None:
    await asyncio.sleep(0.02)
    async with made.other.session() as session, session.producer(made.queue) as producer:
        await producer.send(body)


async def receives_with_what_is_there(made: Scene) -> None:
    made.received += [each for each in [await made.consumer.receive_nowait()] if each is not None]


async def receives_many(made: Scene) -> None:
    made.received += await made.consumer.receive_many(2, SOON)


@pytest.mark.parametrize(
    "mode", [AckMode.AUTO, AckMode.DUPS_OK, AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.TRANSACTED]
)
@pytest.mark.parametrize("act", [receives, receives_what_comes_later, receives_with_what_is_there, receives_many])
def test_a_cancelled_receive_takes_no_message_with_it(url: str, mode: AckMode, act: Act) -> None:
    async def check(made: Scene, _: BaseException | None) -> None:
        got = [each.body for each in made.received]
        wanted = "abcde" if act is receives_what_comes_later else "abcd"
        while len(made.received) < 4 or (len(made.received) < len(wanted) and await _is_there(made)):
            made.received.append(await soon(made.consumer))
        bodies = [each.body for each in made.received]
        assert bodies == list(wanted)[: len(bodies)], f"after {got}"
        assert [each.redelivered for each in made.received] == [False] * len(bodies)  # and uncounted

    enumerated(url, mode, act, check)


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.CLIENT])
def test_a_message_behind_an_expired_one_is_not_lost_while_that_is_dead_lettered(url: str, mode: AckMode) -> None:
    """The call has the message in hand already, and waits for the dead letter of the one before."""

    async def receives_the_new_one(made: Scene) -> None:
        made.received.append(await soon(made.consumer))

    async def check(made: Scene, _: BaseException | None) -> None:
        if len(made.received) == 1:
            made.received.append(await soon(made.consumer))
        assert [(each.body, each.redelivered) for each in made.received] == [("first", False), ("new", False)]

    async def begin(made: Scene) -> None:
        made.session = await made.connection.session(mode)
        made.consumer = await made.session.consumer(made.queue)
        async with made.other.session() as session, session.producer(made.queue) as producer:
            await producer.send("first")
            await producer.send("old", ttl=0.1)
            await producer.send("new")
        made.received = [await soon(made.consumer)]
        await asyncio.sleep(0.15)

    assert enumerated(url, mode, receives_the_new_one, check, begin) >= (
        1 if url.startswith("stomp") else 0
    )  # who rejects over AMQP needs no answer


async def _is_there(made: Scene) -> bool:
    async with made.other.session() as session, session.browser(made.queue) as browser:
        return len([each async for each in browser]) > len(made.received)


def test_a_cancelled_commit_is_in_doubt_and_says_so(url: str) -> None:
    async def check(made: Scene, error: BaseException | None) -> None:
        outcome = None if error is None else error.__cause__
        if isinstance(outcome, InDoubtError):
            assert [each.body for each in outcome.sent] == ["x", "y"]
        else:  # it had not left yet
            assert error is None or isinstance(outcome, TransactionRolledBackError)
        await made.session.close()
        sent, left = await made.left(made.target), await made.left(made.queue)
        assert (sent, left) in ((["x", "y"], ["c", "d"]), ([], ["a", "b", "c", "d"])), "all of it, or nothing"
        if not isinstance(outcome, InDoubtError):
            assert bool(sent) == (error is None)

    enumerated(url, AckMode.TRANSACTED, lambda made: made.session.commit(), check)


@pytest.mark.parametrize("how", ["rollback", "block"])
def test_a_cancelled_rollback_undoes_all_the_same(url: str, how: str) -> None:
    async def block(made: Scene) -> None:
        async with made.session.transaction():
            await asyncio.sleep(0)
            await asyncio.sleep(3600)

    async def rollback(made: Scene) -> None:
        await made.session.rollback()

    async def check(made: Scene, _: BaseException | None) -> None:
        await made.session.close()
        assert (await made.left(made.target), sorted(await made.left(made.queue))) == ([], ["a", "b", "c", "d"])

    if how == "rollback":
        enumerated(url, AckMode.TRANSACTED, rollback, check)
        return

    async def twice() -> None:
        for number in (1, 2):
            async with scene(url, AckMode.TRANSACTED, number) as made:
                was, _ = await cancelled(block(made), number)
                assert was
                await check(made, None)

    asyncio.run(twice(), debug=True)


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_a_cancelled_acknowledge_or_recover_leaves_a_session_that_goes_on(url: str, mode: AckMode) -> None:
    async def acknowledge(made: Scene) -> None:
        await made.received[-1].acknowledge()

    async def recover(made: Scene) -> None:
        await made.session.recover()

    async def check(made: Scene, _: BaseException | None) -> None:
        await made.session.recover()
        await made.session.close()
        assert set(await made.left(made.queue)) in ({"c", "d"}, {"a", "c", "d"}, {"a", "b", "c", "d"})

    for act in (acknowledge, recover):
        enumerated(url, mode, act, check)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
def test_a_cancelled_send_is_in_doubt_and_the_session_goes_on(url: str, mode: AckMode, persistent: bool) -> None:
    async def check(made: Scene, error: BaseException | None) -> None:
        if error is not None and mode == AckMode.AUTO and persistent:
            assert isinstance(error.__cause__, InDoubtError)
        await made.producer.send("last")
        if mode == AckMode.TRANSACTED:
            await made.session.commit()
        await made.session.close()
        sent = [each for each in await made.left(made.target) if each not in ("x", "y")]
        assert sent in (["z", "last"], ["last"])
        if error is None:
            assert sent == ["z", "last"]

    enumerated(url, mode, lambda made: made.producer.send("z", persistent=persistent), check)


async def closes_the_consumer(made: Scene) -> None:
    await made.consumer.close()


async def closes_the_session(made: Scene) -> None:
    await made.session.close()


async def closes_the_connection(made: Scene) -> None:
    await made.connection.close()


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
@pytest.mark.parametrize("act", [closes_the_consumer, closes_the_session, closes_the_connection])
def test_a_cancelled_close_still_closes(url: str, mode: AckMode, act: Act) -> None:
    async def check(made: Scene, _: BaseException | None) -> None:
        assert made.consumer.closed or act is not closes_the_consumer
        assert made.session.closed or act is closes_the_consumer
        assert made.connection.closed or act is not closes_the_connection
        if act is closes_the_consumer and mode == AckMode.TRANSACTED:
            await made.session.commit()
        taken = [] if mode == AckMode.TRANSACTED and act is not closes_the_consumer else ["a", "b"]
        wanted = [each for each in "abcd" if each not in taken]
        async with made.other.session() as session, session.consumer(made.queue) as consumer:
            assert sorted([(await soon(consumer)).body for _ in wanted]) == wanted

    enumerated(url, mode, act, check)


def test_a_cancelled_close_of_a_publisher_still_closes_all_its_sessions(url: str) -> None:
    async def publishes(made: Scene) -> None:
        made.publisher = await made.connection.publisher()
        async with asyncio.TaskGroup() as group:
            for body in "xyz":  # at the same time, so that each is sent by a session of its own
                group.create_task(made.publisher.send(body, made.target))

    async def check(made: Scene, _: BaseException | None) -> None:
        assert made.publisher.closed
        while made.connection._core._cores():
            await asyncio.sleep(0.001)

    enumerated(url, AckMode.AUTO, lambda made: made.publisher.close(), check, publishes)


async def makes_a_consumer(made: Scene) -> None:
    await made.session.consumer(made.queue)


async def makes_a_session(made: Scene) -> None:
    await made.connection.session("client")


async def browses(made: Scene) -> None:
    async with made.session.browser(made.queue) as browser:
        assert len([message async for message in browser]) >= 2


async def makes_a_temporary_queue(made: Scene) -> None:
    with suppress(redelivery.UnsupportedError):
        await made.session.temporary_queue()


async def listens(made: Scene) -> None:
    async def callback(message: aio.Message) -> None:
        made.received.append(message)

    await made.consumer.listen(callback)
    await made.consumer.listen(None)


async def connects(made: Scene) -> None:
    connection = await aio.connect(made.url)
    await connection.close()


@pytest.mark.parametrize(
    "act", [makes_a_consumer, makes_a_session, browses, makes_a_temporary_queue, listens, connects]
)
def test_after_any_other_call_that_was_cancelled_the_connection_goes_on(url: str, act: Act) -> None:
    async def check(made: Scene, _: BaseException | None) -> None:
        await made.consumer.listen(None)
        await made.session.close()
        async with made.connection.session("transacted") as session, session.consumer(made.queue) as consumer:
            got: list[Message] = [message for message in [await consumer.receive(1)] if message is not None]
            got += await consumer.receive_many(10, 0.2)
            await session.commit()
        seen = [each.body for each in made.received] + [each.body for each in got]
        assert sorted(set(seen)) == ["a", "b", "c", "d"]

    enumerated(url, AckMode.AUTO, act, check)


def test_the_probe_cancels_where_it_says(broker: EmbeddedBroker) -> None:
    """With one wait less there is nothing to cancel: the calls above do wait."""

    async def check(_: Scene, __: BaseException | None) -> None: ...

    assert enumerated(broker.stomp_url, AckMode.TRANSACTED, lambda made: made.session.commit(), check) >= 1
    assert enumerated(broker.stomp_url, AckMode.AUTO, closes_the_session, check) >= 1
    assert enumerated(broker.stomp_url, AckMode.AUTO, receives_what_comes_later, check) >= 1
