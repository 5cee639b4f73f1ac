"""The way in which the broker whose file is obeyed names destinations over STOMP, for the clients of that broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Destination, Queue, Topic, destination
from redelivery.model.errors import ProtocolError
from redelivery.policies.brokers.rules import Rules
from redelivery.transports.dialects.detect import spoken
from redelivery.transports.dialects.dialect import Headers, StompDialect

_USUAL: Final = "/queue/"
_QUALIFIED: Final = "::"
_ANY_WORDS: Final = ">"


@dataclass(frozen=True, slots=True)
class Spelling:
    """Another broker's names; ``queues`` and ``topics`` stand before them. ``table``: what else is known of it."""

    queues: str
    topics: str
    table: StompDialect

    def is_used(self, text: str) -> bool:
        """Check whether a destination is written so, and not as a client of this broker writes it."""
        return not text.startswith("/") and text.startswith((self.queues, self.topics))

    def sent(self, text: str, kind: str | None) -> Destination | None:
        """The destination of a SEND; None where only the broker can know whether the name is a queue's.

        Raises:
            ProtocolError: ``kind``, which is the header `destination-type`, is not one.
        """
        return self._read(text, kind, self.table.send_to_queue, self.table.send_to_topic)

    def consumed(self, text: str, kind: str | None) -> Destination | None:
        """The same of a SUBSCRIBE, whose header is `subscription-type`."""
        words = (_ANY_WORDS if word == self.table.any_words else word for word in text.split("."))
        return self._read(".".join(words), kind, self.table.consume_queue, self.table.consume_topic)

    def replied(self, text: str) -> Destination:
        """The destination of a `reply-to`: a name alone is a queue's."""
        return destination(text) if "://" in text else self._read(text, None, (), ()) or Queue(text)

    @property
    def type_of_sent(self) -> str:
        """The header of a SEND that says whether it is for a queue; empty: the name does."""
        return self.table.send_to_queue[0][0] if self.table.send_to_queue else ""

    @property
    def type_of_consumed(self) -> str:
        """The same of a SUBSCRIBE."""
        return self.table.consume_queue[0][0] if self.table.consume_queue else ""

    def write(self, destination: Destination) -> str:
        """The header `destination` of a MESSAGE: the address, also of what was read from one of its queues."""
        prefix = self.topics if isinstance(destination, Topic) else self.queues
        return prefix + destination.name.partition(_QUALIFIED)[0]

    def more_of(self, message: StoredMessage) -> Iterator[tuple[str, str]]:
        """Further headers of a MESSAGE."""
        for name, value in message.properties.items():
            if value is None:  # of a dead letter that no queue had
                yield name, ""
        if self.table.says_persistent:
            yield "persistent", "true" if message.persistent else "false"
        if message.group_id is not None:
            yield self.table.group_header, message.group_id

    def _read(self, text: str, kind: str | None, queue: Headers, topic: Headers) -> Destination | None:
        if kind is not None and (queue or topic):
            found = {value: of for headers, of in ((queue, Queue), (topic, Topic)) for _, value in headers}.get(kind)
            if found is None:
                raise ProtocolError(f"{(queue or topic)[0][0]}:{kind} is none of {queue[0][1]} and {topic[0][1]}")
            return found(text.removeprefix(self.queues if found is Queue else self.topics))
        for prefix, named in ((self.queues, Queue), (self.topics, Topic)):
            if prefix and text.startswith(prefix):
                return named(text.removeprefix(prefix))
        return Queue(text) if _QUALIFIED in text else None


def spelling_of(rules: Rules | None) -> Spelling | None:
    """The spelling of the broker of that file; None where that is as the embedded broker's."""
    table = None if rules is None else spoken(rules.dialect)
    if rules is None or table is None or table.queue_prefix == _USUAL:
        return None
    queues, topics = (rules.address_of(named("x")) or "x" for named in (Queue, Topic))
    return Spelling(queues.removesuffix("x"), topics.removesuffix("x"), table)
