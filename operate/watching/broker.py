"""Looks at a broker's queues, again and again over one connection."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from time import monotonic
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Queue
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import InvalidDestinationError, JMSError, UnsupportedError
from redelivery.operate.doctor.chosen import choose
from redelivery.operate.doctor.doctor import own_rules
from redelivery.operate.doctor.inspect import Inspector
from redelivery.operate.doctor.observed import ObservedQueue, is_called_dead
from redelivery.operate.management.opening import lists_none
from redelivery.operate.watching.rates import Look, Sample

_WILD: Final = frozenset("*?")
_NO_COUNTS: Final = "{} reports no counts of what has come and gone here"
_CHANNELS: Final = (
    "RabbitMQ counts what comes and goes over channels: not AMQP 1.0 on RabbitMQ 4, nor what it dead-letters or lets "
    "expire; and nothing of a queue in its first seconds"
)
_HELD_BACK: Final = (
    "{} does not say how many messages wait for a redelivery; those that a client holds back are in flight, and "
    "'redelivery top --app' shows them"
)


class BrokerWatch:
    """Looks at the queues of one connection's broker.

    ``queues``: names that are asked for, beside those that the broker lists; with ``*`` or ``?`` they only choose.

    Raises:
        InvalidDestinationError: one of them is no queue.
        UnsupportedError: the broker says nothing of its queues over this protocol, or does not list them and none was
            named; the text says what to do.
        JMSError: it does not answer, or refuses.
    """

    def __init__(self, connection: Connection, queues: Iterable[str] = ()) -> None:
        self._connection = connection
        self._names = [_queue(each).name for each in queues if not _WILD & set(each)]
        self._inspector = Inspector(connection)
        meta = connection.metadata
        self._provider = meta.provider_name
        self._source = " ".join(filter(None, (meta.provider_name, meta.provider_version, "over", meta.protocol)))
        if not self._inspector.lists_all and not self._names:
            self._inspector.states(())  # which says it better, where it says nothing at all
            raise UnsupportedError(lists_none(connection))
        self._dead = self._dead_letter_queues()

    def poll_once(self) -> Look:
        """Look once. Raises JMSError: as BrokerWatch."""
        seen = self._inspector.states(self._names)
        at = monotonic()
        samples = {name: self._sample(queue) for name, queue in seen.queues.items()}
        provider = self._provider
        counts = _CHANNELS if provider == "RabbitMQ" and self._inspector.lists_all else _NO_COUNTS.format(provider)
        why = {
            "messages": f"{provider} does not say it (yet)",
            "in": counts,
            "out": counts,
            "in_flight": f"{provider} does not say what consumers have",
            "retries": _HELD_BACK.format(provider),
        }
        unchecked = () if self._inspector.lists_all else seen.unchecked
        return Look(at, datetime.now(UTC), self._source, samples, why=why, unchecked=unchecked)

    def _sample(self, queue: ObservedQueue) -> Sample:
        dead = queue.name in self._dead or queue.address in self._dead or is_called_dead(queue.name)
        now = {
            "messages": queue.messages,
            "in_flight": queue.in_flight,
            "consumers": queue.consumers,
            "retries": queue.held_back,
        }
        return Sample(queue.name, now, {"in": queue.enqueued, "out": queue.dequeued}, dead)

    def _dead_letter_queues(self) -> frozenset[str]:
        """The queues, and addresses, of which the broker's own rules say it; nothing where they cannot be asked."""
        try:
            rules = own_rules(self._connection, (), [])
        except JMSError:
            return frozenset()
        return choose(rules, ()).dead_letters


def _queue(name: str) -> Queue:
    found = parse_destination(name)
    if not isinstance(found, Queue):
        raise InvalidDestinationError(f"{name}: a topic holds no messages; name a queue")
    return found
