"""Looking into a queue: by the protocol's own browser or, where it has none, by the broker's management.

Such a look can cost something, and shows all that it shows at once. So a command that looks several times may `keep`
what it saw at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Final
from weakref import WeakKeyDictionary

from redelivery.client.entry.sync import Connection
from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.session import Session
from redelivery.model.content.dead_letters import ORIGINAL_DESTINATION
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError, JMSError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.selectors.selector import Selector
from redelivery.model.values import Value, to_epoch_ms
from redelivery.operate.management.interface import Management, PartlyReceived
from redelivery.operate.management.opening import EXAMPLES, INSTEAD, management_of

_kept: Final[WeakKeyDictionary[Connection, dict[str, list[Message] | None]]] = WeakKeyDictionary()


def looked_into_by(connection: Connection) -> Management | None:
    """The management by which queues are looked into; None: the protocol has a browser, which is free.

    Raises:
        UnsupportedError: there is neither; the text names the option.
    """
    meta = connection.metadata
    if meta.capabilities.browse:
        return None
    management = management_of(connection)
    if management is None:
        how, example = INSTEAD.get(connection.dialect), EXAMPLES.get(connection.dialect)
        if example is not None:
            named = f"name its management, --management {example} (management= in Python)"
            how = named if how is None else f"{how}, or {named}"
        said = f"{meta.provider_name} lets nobody look into a queue over {meta.protocol}"
        if connection.management is not None:
            said += ", and its management over HTTP is not known here"
        raise UnsupportedError(said if how is None else f"{said}: {how}")
    return management


def browsed(
    connection: Connection, queue: Destination, selector: str | None = None, limit: int | None = None
) -> Iterator[Message]:
    """The messages that a queue holds, from its head, so many at most; nothing is taken.

    A management knows no selectors: what it shows is judged here.

    Raises:
        UnsupportedError: as `looked_into_by`; or the queue cannot be looked into.
        InvalidDestinationError: it is a topic; or the management knows no such queue.
        JMSError: as `Session.browser`, and as those of `Management`.
    """
    management = looked_into_by(connection)
    if management is None:
        with connection.session() as session, session.browser(queue, selector=selector) as browser:
            yield from islice(browser, limit)
        return
    if selector is not None:
        asked = Selector(selector, lenient=True)
        meant = (each for each in browsed(connection, queue) if is_selected(each, asked))
        yield from islice(meant, limit)
        return
    name = _of_queue(queue)
    kept = _kept.get(connection, {})
    if name not in kept:
        yield from management.browse(name, limit)
        return
    if (seen := kept[name]) is None:
        seen = kept[name] = list(management.browse(name))
    yield from islice(seen, limit)


def is_selected(message: Message, selector: Selector) -> bool:
    """Judge a selector here, as a broker would that had it."""
    return selector.matches(lambda name: _value(message, name))


def _value(message: Message, name: str) -> Value:
    """The value of a header or property, for a selector."""
    match name:
        case "JMSMessageID":
            return message.message_id
        case "JMSCorrelationID":
            return message.correlation_id if isinstance(message.correlation_id, str) else None
        case "JMSType":
            return message.type
        case "JMSPriority":
            return message.priority
        case "JMSDeliveryMode":
            return "PERSISTENT" if message.persistent else "NON_PERSISTENT"
        case "JMSTimestamp":
            return to_epoch_ms(message.timestamp)
    return message.properties.get(name)


def check_received(letter: Message, properties: Mapping[str, object]) -> None:
    """Raises UnsupportedError: a consumer gets less of a letter than ``properties``, with which it is to be sent."""
    source = letter.source
    names: frozenset[str] = source.unreceived() if isinstance(source, PartlyReceived) else frozenset()
    lost = sorted(names & properties.keys())
    if not lost and names and ORIGINAL_DESTINATION in properties and ORIGINAL_DESTINATION not in letter.properties:
        lost = ["x-death"]  # by which alone the broker says why it is here
    if lost:
        raise UnsupportedError(
            f"over AMQP 1.0 this broker does not hand on headers of AMQP 0-9-1, and {', '.join(lost)} would be lost; "
            "connect by stomp://, which gets them; nothing was moved"
        )


def keep(connection: Connection, queue: Destination) -> None:
    """Look into this queue by the management once, from now on, and show what was seen then again."""
    _kept.setdefault(connection, {}).setdefault(queue.name, None)


@contextmanager
def kept(connection: Connection, queues: Iterable[Destination]) -> Iterator[None]:
    """Do as `keep` of these queues, within the block."""
    own = [each for each in dict.fromkeys(queues) if each.name not in _kept.get(connection, {})]
    for each in own:
        keep(connection, each)
    try:
        yield
    finally:
        for each in own:
            del _kept[connection][each.name]


def forget(connection: Connection, queue: Destination) -> None:
    """Look into this queue once more, when the next one asks."""
    if queue.name in _kept.get(connection, {}):
        _kept[connection][queue.name] = None


def is_seen(connection: Connection, queue: Destination) -> bool:
    """Check whether this queue can be looked into at no price beyond what was agreed to."""
    try:
        management = looked_into_by(connection)
    except UnsupportedError:
        return False
    if management is None or queue.name in _kept.get(connection, {}):
        return True
    found = management.queue(_of_queue(queue))
    return found is None or not management.cost(found).counts


def _of_queue(queue: Destination) -> str:
    if not isinstance(queue, Queue):
        raise InvalidDestinationError(f"{queue}: a topic holds no messages; browse a queue")
    if queue.is_pattern:
        raise UnsupportedError(f"{queue} is a pattern: look into one queue after the other")
    return queue.name


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
