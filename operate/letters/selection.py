"""Selects letters of a queue by looking into it, which takes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError
from redelivery.model.messages import Message
from redelivery.model.selectors.selector import Selector
from redelivery.operate.letters.fingerprints import Fingerprints, LetterTraits, traits
from redelivery.operate.letters.folding import failure, literal
from redelivery.operate.letters.receipts.receipt import content_of
from redelivery.operate.management.browsing import browsed, is_selected


@dataclass(frozen=True, slots=True)
class Selection:
    """Letters of ``queue``.

    ``where``: a JMS selector, judged by the broker. ``group``: a fingerprint, or its first digits. ``limit``: so many
    at most, from the head. ``here``: a selector that is judged here, as the broker has none. ``members``: the traits of
    the group's letters, once the queue has been looked at. ``ids``: of messages; None: any; ``contents``: beside those
    of these ids, letters without one, by what their senders wrote (`content_of`). Raises ConfigError: ``group`` is
    empty, and would be all of them.
    """

    queue: Destination
    where: str | None = None
    group: str | None = None
    limit: int | None = None
    here: Selector | None = None
    members: frozenset[LetterTraits] | None = None
    ids: frozenset[str] | None = None
    contents: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.group == "":
            raise ConfigError("the group is empty: name it by its fingerprint, or leave it out to mean all letters")

    @property
    def selector(self) -> str | None:
        """The selector, wherever it is judged."""
        return self.where if self.here is None else self.here.text

    def on(self, connection: Connection) -> Selection:
        """The same, as it is asked of the broker of a connection; of a group it is found out who belongs to it.

        Raises:
            InvalidSelectorError: ``where`` is not a selector.
            JMSError: a group is meant, and the broker lets nobody look.
        """
        found = self
        if found.where is not None and not connection.metadata.capabilities.selectors:
            found = replace(found, where=None, here=Selector(found.where, lenient=True))
        if found.group is not None and found.members is None:
            known = Fingerprints(map(traits, replace(found, group=None, limit=None, ids=None).browse(connection)))
            found = replace(found, members=known.members(found.group))
        return found

    def accepts(self, message: Message) -> bool:
        """Check whether it is meant, as far as the broker has not judged that."""
        if self.here is not None and not is_selected(message, self.here):
            return False
        if self.ids is not None and not self._is_named(message, self.ids):
            return False
        if self.members is None:
            return self.group is None or literal(failure(message)).startswith(self.group)
        return traits(message) in self.members

    def _is_named(self, message: Message, ids: frozenset[str]) -> bool:
        if message.message_id is None and self.contents:
            return content_of(message) in self.contents
        return message.message_id in ids

    def browse(self, connection: Connection) -> Iterator[Message]:
        """The letters that are meant.

        Raises:
            UnsupportedError: the queue cannot be looked into.
            JMSError: as `browsed`.
        """
        asked = self.on(connection)
        all_are_meant = asked.here is None and asked.group is None and asked.ids is None
        seen = browsed(connection, self.queue, asked.where, self.limit if all_are_meant else None)
        yield from islice(filter(asked.accepts, seen), self.limit)
