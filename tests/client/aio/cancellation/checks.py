"""What must hold after a call that was cancelled: in the client's ledgers, on the wire, at the broker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from redelivery import JMSError, aio
from redelivery.broker import EmbeddedBroker
from redelivery.broker.servers.stomp import session as stomp
from redelivery.client.aio.core import SessionCore
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.state import ACCEPTED, CONDEMNED, HELD, READY

PATIENCE = 5.0


@contextmanager
def watched() -> Iterator[list[str]]:
    """What the embedded broker's servers get meanwhile that no client of ours should send.

    Acknowledgements of what is not in flight, and whatever else they refuse.
    """
    wrong: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        _watch_stomp(patch, wrong)
        try:
            import proton  # noqa: F401  without it there is no server to watch
        except ImportError:
            pass
        else:
            _watch_amqp(patch, wrong)
        yield wrong


def _watch_stomp(patch: pytest.MonkeyPatch, wrong: list[str]) -> None:
    named, refuse = stomp.StompServerSession._named, stomp.StompServerSession.refuse

    def _named(session: Any, frame: Any) -> Any:
        found = named(session, frame)
        if found is None:
            wrong.append(f"{frame.command} of a subscription that has ended: {dict(frame.headers)}")
        return found

    def _refuse(session: Any, error: JMSError, receipt: bytes | None) -> None:
        wrong.append(f"refused: {error}")
        refuse(session, error, receipt)

    patch.setattr(stomp.StompServerSession, "_named", _named)
    patch.setattr(stomp.StompServerSession, "refuse", _refuse)


def _watch_amqp(patch: pytest.MonkeyPatch, wrong: list[str]) -> None:
    from redelivery.broker.servers.amqp.commands import Command, Settle
    from redelivery.broker.servers.amqp.session import AmqpServerSession
    from redelivery.transports.amqp.links.dispositions import RELEASED

    execute, refuse = AmqpServerSession.execute, AmqpServerSession.refuse

    def _execute(session: Any, command: Command) -> None:
        if isinstance(command, Settle):
            link = session._links.get(command.link)
            crossed = link is None and command.outcome.kind == RELEASED  # with our detach
            if not crossed and (link is None or command.delivery not in link._unsettled):
                wrong.append(f"settled what is not in flight: {command}")
        execute(session, command)

    def _refuse(session: Any, command: Command, error: JMSError) -> None:
        wrong.append(f"refused: {command}: {error}")
        refuse(session, command, error)

    patch.setattr(AmqpServerSession, "execute", _execute)
    patch.setattr(AmqpServerSession, "refuse", _refuse)


async def settle(broker: EmbeddedBroker, connection: aio.Connection, queue: str) -> None:
    """Wait until nobody is inside a session and ledgers and broker agree; what they say where they do not.

    What the broker has in flight of ``queue`` is what the ledgers have of it: nothing is in no place.
    """

    def difference() -> str | None:
        cores = [core for core in connection._core._cores() if not core.life.ended]
        inside = [core.number for core in cores if core.turn.taken or core.visitors or core.waiter.awaits]
        if inside:
            return f"somebody is inside of the sessions {inside}"
        for core in cores:
            core.take_in()
        if any(core.epoch.lost is not None for core in cores):
            return "a session has not come back"
        ours = sum(_kept(core, queue) for core in cores)
        theirs = _in_flight(broker, queue)
        return None if ours == theirs else f"the ledgers have {ours} of what is in flight, the broker {theirs}"

    await until(difference)
    for core in connection._core._cores():
        _check_whole(core)


async def until(difference: Callable[[], str | None]) -> None:
    """Until there is none."""
    try:
        async with asyncio.timeout(PATIENCE):
            while difference() is not None:
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(difference()) from None


def _kept(core: SessionCore, queue: str) -> int:
    consumers = [each for each in core.ledger.consumers if each.link.destination.name == queue]
    ready = sum(delivery.state is not ACCEPTED for consumer in consumers for delivery in consumer.ready)
    delayed = sum(len(batch) for _, _, consumer, batch in core.ledger.delayed if consumer in consumers)
    held = [delivery for delivery in core.ledger.held if delivery.link.destination.name == queue]
    return ready + delayed + len(held)


def _in_flight(broker: EmbeddedBroker, queue: str) -> int:
    def count(engine: Any, _now: int) -> int:
        found = engine.queues.get(queue)
        return 0 if found is None else sum(len(each.in_flight) for each in found.consumers)

    return broker.core.call(count)


def _check_whole(core: SessionCore) -> None:
    """Each delivery of a ledger is in one place, in the state of that place."""
    ledger = core.ledger
    places: Counter[int] = Counter()
    for consumer in ledger.consumers:
        assert {each.state for each in consumer.ready} <= {READY, CONDEMNED, ACCEPTED}
        places.update(map(id, consumer.ready))
        assert consumer.held == sum(_of(each, consumer) for each in ledger.held)
    places.update(map(id, ledger.held))
    places.update(id(each) for *_, batch in ledger.delayed for each in batch)
    assert {each.state for each in ledger.held} <= {HELD}
    assert set(places.values()) <= {1}, "a delivery is in two places"
    assert not core.arrivals


def _of(delivery: Any, consumer: ConsumerState) -> bool:
    return delivery.link is consumer.link
