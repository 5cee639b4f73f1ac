"""The way in which the broker whose file is obeyed names destinations over STOMP, for the clients of that broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Destination, Queue, Topic, destination
from redelivery.model.errors import ProtocolError
from redelivery.policies.brokers.rules import Rules
from redelivery.transports.dialects import embedded
from redelivery.transports.dialects.detect import spoken
from redelivery.transports.dialects.dialect import Headers, StompDialect

_USUAL: Final = "/queue/"
_QUALIFIED: Final = "::"
_ANY_WORDS: Final = ">"
_CREDITS: Final = 10 << 10  # bytes: what their acceptors give a consumer
_NO_END: Final = 1 << 62
_DURABLE: Final = "durable-subscriber-name"  # the name that all of them know


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

    def window(self, headers: Mapping[str, str], *, acknowledged: bool) -> int:
        """The window of a SUBSCRIBE in bytes; ``acknowledged``: by its client, and not as it is written.

        0 is one message at a time, -1 has no end, and below that nothing comes. Raises ProtocolError: it is none.
        """
        names = (self.table.prefetch_header, embedded.HEADERS[0]) if self.table.prefetch_header else ()
        text = next((headers[name] for name in names if name in headers), None)
        if text is None:
            return _CREDITS if acknowledged else _NO_END
        try:
            window = int(text) if text.isascii() and not {"_", " "} & set(text) else _NO_END
        except ValueError:
            window = _NO_END
        if not -(1 << 31) <= window < 1 << 31:
            raise ProtocolError(f'For input string "{text}": a window is a number of bytes')
        return _NO_END if window == -1 else window or 1

    def subscription_of(self, headers: Mapping[str, str]) -> str | None:
        """The name of the durable subscription that a SUBSCRIBE or UNSUBSCRIBE is about."""
        return next((headers[name] for name in (_DURABLE, self.table.subscription_header) if headers.get(name)), None)

    def write(self, destination: Destination) -> str:
        """The header `destination` of a MESSAGE."""
        return (self.topics if isinstance(destination, Topic) else self.queues) + destination.name

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
