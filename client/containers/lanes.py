"""One worker's session and consumer, of a thread and of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final, cast

from redelivery.client.aio.consumer import Consumer as AioConsumer
from redelivery.client.aio.made import Made
from redelivery.client.aio.made import Message as AioMessage
from redelivery.client.aio.producer import Producer as AioProducer
from redelivery.client.aio.session import Session as AioSession
from redelivery.client.containers.outcomes import Verdict
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.parking import awaited, dies
from redelivery.client.observing.traced import SessionTracer, TracedWork
from redelivery.client.operations.commit import park, put_back, recall, rollback
from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.transports.seam import Delivery

QUICK: Final = 0.005  # seconds: a handler that takes less is quick
IN_A_ROW: Final = 100  # where one was that for so many messages,
AHEAD: Final = 16  # so many more may come with the next one
_REPLIES: Final = (str, bytes, dict, list, Message)
# What a handler may take beside the message; the first is what a second argument without an annotation is.
MAKERS: Final[Mapping[type, Callable[[Message, Any], Any]]] = {
    Session: lambda _message, session: session,
    Message: lambda message, _session: message,
    Producer: lambda _message, session: session.producer(),
}
AIO_MAKERS: Final[Mapping[type, Callable[[Message, Any], Any]]] = {
    AioSession: lambda _message, session: session,
    AioMessage: lambda message, _session: message,
    Message: lambda message, _session: message,
    AioProducer: lambda _message, session: session.producer(),  # to be awaited: see `made`
}


async def made(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A handler's arguments, when what is to be awaited of them has been."""
    return {name: await value if isinstance(value, Made) else value for name, value in arguments.items()}


def _pushed(tracer: SessionTracer | None) -> SessionTracer | None:
    """It follows a handler's work, which to receive is no part of."""
    if tracer is not None:
        tracer.pushes = True
    return tracer


def _work(tracer: SessionTracer | None, message: Message) -> AbstractContextManager[TracedWork | None]:
    return nullcontext() if tracer is None else tracer.processing(cast(Delivery, message.source))


class Pace:
    """How many messages may come ahead of the one that a worker has: none but where its handler is quick.

    That is a window of its own choice (no ``prefetch`` was given, and it `pulls`), where the protocol lets it choose.
    """

    def __init__(self, consumer: ConsumerState) -> None:
        self._consumer = consumer
        self._quick = 0  # messages in a row

    def handled(self, seconds: float) -> None:
        """The handler has had one for so long."""
        self._quick = self._quick + 1 if seconds < QUICK else 0
        link = self._consumer.link  # another one after a loss
        if link.pulls and link.window is None:
            link.ahead = AHEAD if self._quick >= IN_A_ROW else 0


class BaseLane:
    """Of a thread or a task.

    Attributes:
        parked: how many messages wait in it, uncounted, until others have been tried: see `breaker`.
        recalls: how often all such had been asked back when the first of them was set aside.
    """

    session: Session | AioSession
    consumer: Consumer | AioConsumer

    def __init__(self) -> None:
        self.parked = 0
        self.recalls = 0

    def dies(self) -> bool:
        """Whether its message is dead-lettered if this attempt is counted as a failure."""
        return dies(self.session._core.ledger)

    @property
    def waits(self) -> bool:
        """Whether something of it waits for its redelivery."""
        return awaited(self.session._core.ledger)

    @property
    def unfinished(self) -> bool:
        """Whether it knows of failures that the broker does not: another session would begin to count anew."""
        ledger = self.session._core.ledger
        failed = (each.redeliveries for consumer in ledger.consumers for each in consumer.ready)
        return ledger.delayed_count > 0 or any(failed)

    def keep(self, recalls: int) -> None:
        """Its message is to be set aside."""
        self.recalls = self.recalls if self.parked else recalls
        self.parked += 1


class Lane(BaseLane):
    """One worker's session and consumer."""

    session: Session
    consumer: Consumer

    def __init__(self, session: Session, consumer: Consumer) -> None:
        super().__init__()
        self.session = session
        self.consumer = consumer
        self.pace = Pace(consumer._state)
        self._tracer = _pushed(session._core.tracer)

    def work(self, message: Message) -> AbstractContextManager[TracedWork | None]:
        """What follows is the handler's work on it, until it is settled; None: nobody follows that."""
        return _work(self._tracer, message)

    def reply(self, message: Message, reply: object) -> bool:
        """Send it, where the message asks for one and it can be one."""
        if message.reply_to is None or not isinstance(reply, _REPLIES):
            return False
        correlation_id = message.correlation_id or message.message_id
        self.session.producer(message.reply_to).send(reply, correlation_id=correlation_id)
        return True

    def commit(self) -> None:
        """The message is consumed, and what was sent is visible."""
        if self.session.transacted:
            self.session.commit()
        else:
            self.session.acknowledge()

    def roll_back(self, verdict: Verdict) -> bool:
        """It is redelivered; True: it was dead-lettered instead, or will be."""
        core = self.session._core
        before = core.poisoned
        core.inside("rollback", lambda: core.perform(rollback(core, verdict.cause, verdict.ruling)))
        return core.poisoned > before

    def put_back(self) -> None:
        """It is delivered again at once, as if it had not been."""
        core = self.session._core
        with suppress(JMSError):  # it has failed, or is closed: the broker redelivers
            core.inside("rollback", lambda: core.perform(put_back(core)))

    def park(self) -> None:
        """The same, but others come first, until `recall`."""
        core = self.session._core
        with suppress(JMSError):  # as above
            core.inside("rollback", lambda: core.perform(park(core)))

    def recall(self) -> None:
        """What was set aside comes next."""
        core = self.session._core
        self.parked = 0
        with suppress(JMSError):  # as above
            core.inside("rollback", lambda: core.perform(recall(core)))


class AioLane(BaseLane):
    """One worker's session and consumer."""

    session: AioSession
    consumer: AioConsumer

    def __init__(self, session: AioSession, consumer: AioConsumer) -> None:
        super().__init__()
        self.session = session
        self.consumer = consumer
        self.pace = Pace(consumer._state)
        self._tracer = _pushed(session._core.tracer)

    def work(self, message: Message) -> AbstractContextManager[TracedWork | None]:
        """What follows is the handler's work on it, until it is settled; None: nobody follows that."""
        return _work(self._tracer, message)

    async def reply(self, message: Message, reply: object) -> bool:
        """Send it, where the message asks for one and it can be one."""
        if message.reply_to is None or not isinstance(reply, _REPLIES):
            return False
        producer: AioProducer = await self.session.producer(message.reply_to)
        await producer.send(reply, correlation_id=message.correlation_id or message.message_id)
        return True

    async def commit(self) -> None:
        """The message is consumed, and what was sent is visible."""
        if self.session.transacted:
            await self.session.commit()
        else:
            await self.session.acknowledge()

    async def roll_back(self, verdict: Verdict) -> bool:
        """It is redelivered; True: it was dead-lettered instead, or will be."""
        core = self.session._core
        before = core.poisoned
        await core.inside("rollback", lambda: core.perform(rollback(core, verdict.cause, verdict.ruling)))
        return core.poisoned > before

    async def put_back(self) -> None:
        """It is delivered again at once, as if it had not been."""
        core = self.session._core
        with suppress(JMSError):  # it has failed, or is closed: the broker redelivers
            await core.inside("rollback", lambda: core.perform(put_back(core)))

    async def park(self) -> None:
        """The same, but others come first, until `recall`."""
        core = self.session._core
        with suppress(JMSError):  # as above
            await core.inside("rollback", lambda: core.perform(park(core)))

    async def recall(self) -> None:
        """What was set aside comes next."""
        core = self.session._core
        self.parked = 0
        with suppress(JMSError):  # as above
            await core.inside("rollback", lambda: core.perform(recall(core)))
