"""Taking from a queue that is there: a command that names another one by mistake makes none."""

from __future__ import annotations

from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.session import Session
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError, JMSError, UnsupportedError


class NoQueueError(JMSError):
    """The queue that was to be taken from is not there, and was not made."""


def consumer_of(
    session: Session, destination: Destination, *, selector: str | None = None, prefetch: int | None = None
) -> Consumer:
    """A consumer that makes no queue, but where the broker itself makes each that is used (ActiveMQ, Artemis by AMQP).

    Raises:
        NoQueueError: it is not there.
        JMSError: as `Session.consumer`.
    """
    if type(destination) is Queue and not destination.is_pattern:
        try:
            return session.consumer(Queue(destination.name, declare=False), selector=selector, prefetch=prefetch)
        except InvalidDestinationError as error:
            raise NoQueueError(f"{destination}: there is no such queue, and none was made") from error
        except UnsupportedError:
            pass  # the broker makes what is used, as it is set up
    return session.consumer(destination, selector=selector, prefetch=prefetch)
