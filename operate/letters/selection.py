"""Which letters of a queue are meant, found by a browser, which takes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from redelivery.client.sync.connection import Connection
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.model.selectors.selector import Selector
from redelivery.model.times import to_epoch_ms
from redelivery.model.values import Value
from redelivery.operate.letters.groups import fingerprint


@dataclass(frozen=True, slots=True)
class Selection:
    """Letters of ``queue``.

    ``where``: a JMS selector, judged by the broker. ``group``: a fingerprint, or its first digits.
    ``limit``: so many at most, from the head. ``here``: a selector that is judged here, as the broker has none.
    """

    queue: Destination
    where: str | None = None
    group: str | None = None
    limit: int | None = None
    here: Selector | None = None

    def on(self, connection: Connection) -> Selection:
        """The same, as it is asked of the broker of a connection.

        Raises:
            InvalidSelectorError: ``where`` is not a selector.
        """
        if self.where is None or connection.metadata.capabilities.selectors:
            return self
        return replace(self, where=None, here=Selector(self.where, lenient=True))

    def accepts(self, message: Message) -> bool:
        """Whether it is meant, as far as the broker has not judged that."""
        if self.here is not None and not self.here.matches(lambda name: _value(message, name)):
            return False
        return self.group is None or fingerprint(message).startswith(self.group)

    def browse(self, connection: Connection) -> Iterator[Message]:
        """The letters that are meant.

        Raises:
            UnsupportedError: the broker cannot browse.
            JMSError: as `Session.browser`.
        """
        asked, left = self.on(connection), self.limit
        with connection.session() as session, session.browser(self.queue, selector=asked.where) as browser:
            for message in browser:
                if left == 0:
                    return
                if asked.accepts(message):
                    left = None if left is None else left - 1
                    yield message


def _value(message: Message, name: str) -> Value:
    """Of a header or property, for a selector."""
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
