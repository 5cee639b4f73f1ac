"""Sends letters of a file: all of them as one transaction, or each where the broker has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.operate.letters.receipts.receipt import PlannedLetter, content_of
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.operate.letters.records import expiration, fit
from redelivery.operate.letters.routes import Leaving
from redelivery.operate.management.browsing import browsed, is_seen

Letters: TypeAlias = Sequence[tuple[Mapping[str, Any], Message]]
"""Records, as `to_record` makes them, and their messages."""


def there(connection: Connection, target: Destination, letters: Letters) -> dict[str, int] | None:
    """Count the letters like these that are there already, by `content_of`; None: a look has its price."""
    meant = {content_of(message) for _, message in letters}
    try:
        if not isinstance(target, Queue) or not is_seen(connection, target):
            return None
        return dict(Counter(content for each in browsed(connection, target) if (content := content_of(each)) in meant))
    except InvalidDestinationError:  # there is no such queue yet
        return {}


def planned(letters: Letters) -> list[PlannedLetter]:
    """The letters, for a receipt, which has all that is to be sent: so that they can be sent without their file."""
    return [PlannedLetter(None, content_of(message), record) for record, message in letters]


def send(
    connection: Connection,
    target: Destination,
    letters: Letters,
    writer: ReceiptWriter,
    sent: Callable[[int], None] = lambda _: None,
) -> None:
    """Send letters to a queue or topic.

    ``sent``: is called with how many were sent until now.

    Raises:
        InDoubtError: the answer to a commit or send did not come: this batch may have been sent.
        JMSError: the broker refused, or the receipt cannot be written; nothing of this batch was sent.
    """
    transacted = connection.metadata.capabilities.transactions
    now, count = datetime.now(UTC), 0
    with connection.session("transacted" if transacted else "auto") as session:
        producer = session.producer(target)
        for batch in (letters,) if transacted else ((each,) for each in letters):
            writer.before([(message, _leaving(record, message, target)) for record, message in batch])
            for record, message in batch:
                ends = expiration(record)
                ttl = None if ends is None else max(timedelta(milliseconds=1), ends - now)
                leaving = _leaving(record, message, target)
                producer.send(
                    fit(message, connection), priority=leaving.priority, persistent=leaving.persistent, ttl=ttl
                )
                count += 1
                sent(count)
            if transacted:
                session.commit()
            writer.after()


def _leaving(record: Mapping[str, Any], message: Message, target: Destination) -> Leaving:
    return Leaving(message, target, record.get("priority", 4), record.get("persistent", True))
