"""One worker's session and consumer, of a thread and of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Final, cast

from redelivery.client.aio.consumer import Consumer as AioConsumer
from redelivery.client.aio.made import Message as AioMessage
from redelivery.client.aio.producer import Producer as AioProducer
from redelivery.client.aio.session import Session as AioSession
from redelivery.client.containers.outcomes import Verdict
from redelivery.client.containers.workers import Steps, Work
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.parking import awaited, dies
from redelivery.client.observing.traced import TracedWork
from redelivery.client.operations.commit import park, put_back, recall, rollback
from redelivery.client.session.state import SessionState
from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.transports.seam import Delivery, Flow

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
    AioProducer: lambda _message, session: session.producer(),  # to be awaited: see `Tasks.call`
}


class Pace:
    """The number of messages that may come ahead of the one that a worker has: none but where its handler is quick.

    That is a window of its own choice (no ``prefetch`` was given, and it `pulls`), where the protocol lets it choose.
    """

    def __init__(self, consumer: ConsumerState) -> None:
        self._consumer = consumer
        self._quick = 0  # messages in a row

    def handled(self, seconds: float) -> None:
        """The handler has had one for so long."""
        self._quick = self._quick + 1 if seconds < QUICK else 0
        link = self._consumer.link  # another one after a loss
        if link.spec.pulls and link.spec.window is None:
            link.ahead = AHEAD if self._quick >= IN_A_ROW else 0


class Lane:
    """One worker's session and consumer.

    ``parked``: how many messages wait in it, uncounted, until others have been tried: see `breaker`. ``recalls``: how
    often all such had been asked back when the first of them was set aside.
    """

    def __init__(self, session: Session | AioSession, consumer: Consumer | AioConsumer) -> None:
        self.session: Any = session  # its calls are awaited, or not
        self.consumer: Any = consumer
        self.pace = Pace(consumer._state)
        self.parked = 0
        self.recalls = 0
        self._tracer = session._core.tracer
        if self._tracer is not None:
            self._tracer.pushes = True  # it follows a handler's work, which to receive is no part of

    def work(self, message: Message) -> AbstractContextManager[TracedWork | None]:
        """The context of the handler's work on a message, until it is settled; None: nobody follows that."""
        return nullcontext() if self._tracer is None else self._tracer.processing(cast(Delivery, message.source))

    def dies(self) -> bool:
        """True: its message is dead-lettered if this attempt is counted as a failure."""
        return dies(self.session._core.ledger)

    @property
    def waits(self) -> bool:
        """True: something of it waits for its redelivery."""
        return awaited(self.session._core.ledger)

    @property
    def unfinished(self) -> bool:
        """True: it knows of failures that the broker does not. Another session would begin to count anew."""
        ledger = self.session._core.ledger
        failed = (each.redeliveries for consumer in ledger.consumers for each in consumer.ready)
        return ledger.delayed_count > 0 or any(failed)

    def keep(self, recalls: int) -> None:
        """Note that its message is to be set aside."""
        self.recalls = self.recalls if self.parked else recalls
        self.parked += 1

    # what waits, in steps: see `workers`

    def reply(self, message: Message, reply: object) -> Steps[bool]:
        """Send it, where the message asks for one and it can be one."""
        if message.reply_to is None or not isinstance(reply, _REPLIES):
            return False
        correlation_id = message.correlation_id or message.message_id
        producer = yield partial(self.session.producer, message.reply_to)
        yield partial(producer.send, reply, correlation_id=correlation_id)
        return True

    def commit(self) -> Work:
        """Consume the message, and make what was sent visible."""
        yield self.session.commit if self.session.transacted else self.session.acknowledge

    def roll_back(self, verdict: Verdict) -> Steps[bool]:
        """Redeliver its message; True: it was dead-lettered instead, or will be."""
        core: SessionState = self.session._core
        before = core.poisoned
        yield from self._perform(partial(rollback, core, verdict.cause, verdict.ruling))
        return core.poisoned > before

    def put_back(self) -> Work:
        """Have its message delivered again at once, as if it had not been."""
        with suppress(JMSError):  # it has failed, or is closed: the broker redelivers
            yield from self._perform(partial(put_back, self.session._core))

    def park(self) -> Work:
        """Do the same, but others come first, until `recall`."""
        with suppress(JMSError):  # as above
            yield from self._perform(partial(park, self.session._core))

    def recall(self) -> Work:
        """Have what was set aside come next."""
        self.parked = 0
        with suppress(JMSError):  # as above
            yield from self._perform(partial(recall, self.session._core))

    def _perform(self, begin: Callable[[], Flow[None]]) -> Work:
        core: Any = self.session._core  # of a thread or of a task
        yield lambda: core.inside("rollback", lambda: core.perform(begin()))
