"""Connects to a broker and looks: at its queues, its settings and its clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Queue
from redelivery.model.errors import ConnectionLostError, JMSError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.operate.doctor.broker_j import broker_j_names, broker_j_queues, broker_j_time
from redelivery.operate.doctor.chosen import MOST
from redelivery.operate.doctor.embedded import embedded_queues, is_embedded, is_embedded_here
from redelivery.operate.doctor.management import artemis_queues, artemis_time, asked_over_http, managed_as
from redelivery.operate.doctor.observed import ALIKE, ObservedQueue, observed
from redelivery.operate.doctor.rabbitmq.over_amqp import NOT_NAMED, described_queues, described_states, describes_queues
from redelivery.operate.doctor.statistics import classic_queues, has_statistics
from redelivery.operate.management.artemis import ArtemisManagement
from redelivery.operate.management.browsing import browsed
from redelivery.operate.management.interface import Management
from redelivery.operate.management.opening import lists_none, management_of
from redelivery.transports.wire.clock import epoch_ms

_SECONDS: Final = 5.0
_SHOWN: Final = 3  # queues of a sentence that are named
BROWSED: Final = 10_000
"""Messages that are counted by browsing, at most."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    "artemis": "Artemis reports its queues over amqp://, or over HTTP: pass --management http://user:password@host:8161",
    "hornetq": "HornetQ reports its queues over JMX and its own protocol only, and shows none to a browser over STOMP",
    "rabbitmq": "RabbitMQ reports its queues over HTTP: pass --management http://user:password@host:15672, or see "
    "'rabbitmqctl list_queues name messages consumers'",
}
_CONSUMERS: Final[Mapping[str, str]] = {
    "activemq": "ActiveMQ Classic reports them over amqp://, where its activemq.xml has statisticsBrokerPlugin and "
    "the user may write to ActiveMQ.Statistics.>, or by its console: pass --management http://user:password@host:8161",
    "qpid": "Broker-J reports them over amqp:// only",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """``queues``: by name; ``unchecked``: what could not be seen, with the reason, in sentences."""

    queues: Mapping[str, ObservedQueue]
    unchecked: tuple[str, ...] = ()


class Inspector:
    """Looks at the queues of one broker, as often as it is asked to.

    ``most``: messages of a queue that are counted by browsing, where nobody says how many it has; ``counted`` is that
    where the last look did. ``kept``: of these, the first so many are kept, so that nobody need browse once more.
    """

    def __init__(self, connection: Connection, most: int = BROWSED, kept: int = 0) -> None:
        self._connection = connection
        self._most, self._kept = most, kept
        self.counted: int | None = None
        self._heads: dict[str, list[Message]] = {}

    def states(self, names: Iterable[str]) -> Seen:
        """The queues of the broker where it lists them, else those of these names that exist or can be browsed.

        Raises:
            UnsupportedError: it says nothing about queues over this protocol.
            JMSError: it does not answer, or refuses.
        """
        connection = self._connection
        if self._managed is not None:
            return Seen({each.name: observed(each) for each in self._managed.queues()})
        if is_embedded(connection):
            return Seen(embedded_queues(connection, names))
        if describes_queues(connection):
            return Seen(described_states(described_queues(connection, names)), (NOT_NAMED,))
        match managed_as(connection):
            case "artemis":
                return Seen(artemis_queues(connection))
            case "qpid":
                return self._by_name(names)
        if self._statistics and (known := classic_queues(connection, names)) is not None:
            return Seen(known)
        if not connection.metadata.capabilities.browse:
            raise UnsupportedError(_ELSEWHERE.get(connection.dialect, "this broker reports none over this protocol"))
        return self._browsed(names)

    def holding_dead_letters(self, queues: Mapping[str, ObservedQueue]) -> frozenset[str]:
        """The queues with messages and without a reader whose first message is a dead letter.

        At most 200 are looked at; one that cannot be browsed is not among them.
        """
        if not (self._connection.metadata.capabilities.browse or asked_over_http(self._connection)):
            return frozenset()
        asked = [each.name for each in queues.values() if each.messages and not each.consumers]
        return frozenset(name for name in asked[:MOST] if self._begins_with_dead_letter(name))

    def _begins_with_dead_letter(self, name: str) -> bool:
        try:
            return any(message.dead_letter is not None for message in self.head(name, 1))
        except ConnectionLostError:
            raise
        except JMSError:
            return False

    def head(self, name: str, most: int) -> Iterator[Message]:
        """The first messages of a queue, so many at most: those that were seen when they were counted, or browsed now.

        Raises:
            JMSError: as `browsed`.
        """
        seen = self._heads.get(name)
        return browsed(self._connection, Queue(name), limit=most) if seen is None else islice(seen, most)

    @property
    def lists_all(self) -> bool:
        """Check whether the broker itself says which queues it has."""
        return is_embedded(self._connection) or self._managed is not None or managed_as(self._connection) is not None

    @property
    def unnamed(self) -> tuple[str, ...]:
        """The sentence that queues which nobody named were not looked at, where the broker does not list them."""
        if self.lists_all or describes_queues(self._connection):  # whose look says it
            return ()
        return (f"queues that nobody named: {lists_none(self._connection)}",)

    @cached_property
    def _managed(self) -> Management | None:
        """The management of ``management=``, where it lists the queues; Artemis' is asked as its own node is."""
        found = management_of(self._connection)
        return None if isinstance(found, ArtemisManagement) else found

    @cached_property
    def _statistics(self) -> bool:
        return has_statistics(self._connection)

    def _by_name(self, names: Iterable[str]) -> Seen:
        """Broker-J's queues, of which each is asked by itself: these, and of the others as many as make 200."""
        unchecked = []
        try:
            names = [*names, *broker_j_names(self._connection)]
        except ConnectionLostError:
            raise
        except JMSError as error:
            unchecked.append(f"queues that nobody named: {error}")
        names = list(dict.fromkeys(names))
        if len(names) > MOST:
            unchecked.append(f"{len(names) - MOST} more queues: name those that matter by --queue")
        return Seen(broker_j_queues(self._connection, names[:MOST]), tuple(unchecked))

    def _browsed(self, names: Iterable[str]) -> Seen:
        self.counted = self._most
        found: dict[str, ObservedQueue] = {}
        refusals: dict[str, list[tuple[str, JMSError]]] = {}
        for name in names:
            try:
                depth, head = _depth(self._connection, name, self._most, self._kept)
                found[name] = ObservedQueue(name, depth)
                if self._kept:
                    self._heads[name] = head
            except ConnectionLostError:
                raise
            except JMSError as error:
                refusals.setdefault(str(error).replace(name, ""), []).append((name, error))
        refused = list(chain.from_iterable(map(_depths, refusals.values())))
        reason = _CONSUMERS.get(self._connection.dialect, "this broker does not report them over this protocol")
        if found:
            refused.append(f"whether queues have consumers: {reason}")
        return Seen(found, tuple(refused))


def _depths(refused: list[tuple[str, JMSError]]) -> Iterator[str]:
    """That these could not be seen; five for the same reason or more are one sentence."""
    if len(refused) < ALIKE:
        yield from (f"the depth of {name}: {error}" for name, error in refused)
    else:
        names = ", ".join(name for name, _ in refused[:_SHOWN])
        yield f"the depths of {names} and {len(refused) - _SHOWN} more queues: {refused[0][1]}"


def clock_skew(connection: Connection) -> float:
    """Seconds by which the broker's clock is ahead of ours.

    Over STOMP it sends a message to a temporary queue, which says when the broker got it. Over AMQP a message says only
    when it was sent: Artemis is asked when it made a consumer, and the answers of Broker-J's management say when.

    Raises:
        UnsupportedError: the broker does not say its time over this protocol.
        JMSError: the broker refuses that, or does not answer.
    """
    if is_embedded_here(connection):
        return 0.0
    managed = None if asked_over_http(connection) else managed_as(connection)
    if connection.dialect == "rabbitmq":
        raise UnsupportedError("RabbitMQ hands on the time of the sender, and does not say its own")
    if managed is None and not connection.metadata.protocol.startswith("STOMP"):
        raise UnsupportedError("the messages of this broker do not say its time over AMQP; use stomp://")
    before = epoch_ms()
    match managed:
        case "artemis":
            broker = artemis_time(connection)
        case "qpid":
            broker = broker_j_time(connection)
        case _:
            broker = _stamped(connection)
    after = epoch_ms()
    if before <= broker <= after:
        return 0.0
    return (broker - (after if broker > after else before)) / 1000


def _stamped(connection: Connection) -> float:
    """The time that the broker puts on a message, in milliseconds since 1970."""
    with connection.session() as session:
        queue = session.temporary_queue()
        with session.consumer(queue) as consumer:
            session.producer(queue).send("what time is it?", persistent=False)
            message = consumer.receive(timeout=_SECONDS)
    if message is None:
        raise JMSError(f"a message that was sent to {queue} did not arrive within {_SECONDS:g} s")
    if message.timestamp is None:
        raise UnsupportedError("the messages of this broker do not say when it got them")
    return message.timestamp.timestamp() * 1000


def _depth(connection: Connection, name: str, most: int, kept: int) -> tuple[int, list[Message]]:
    """Count so many messages at most; with the first of them, as many as are to be kept."""
    with connection.session() as session, session.browser(name) as browser:
        seen = islice(browser, most)
        head = list(islice(seen, kept))
        return len(head) + sum(1 for _ in seen), head
