"""Taking letters from their queue, and sending them: none is lost, and where there are transactions none is doubled.

With transactions, a batch is received and sent as one: a process that is killed has moved all of it or nothing.
Without (RabbitMQ over AMQP), each letter is sent, confirmed, and then acknowledged: a process that is killed in between
may have left it twice.

Which letters are meant is known by looking first. Where all of them are, they are received as they come; where some
are not, those that are meant are chosen by their ids in a selector; a broker that does not do that gets back what is
not meant at the end, as if it had not been received. A queue that cannot be looked into, or that a look costs a
delivery of each letter, is asked for all that it has.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from redelivery.client.entry.sync import Connection
from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session
from redelivery.model.errors import JMSError, MessageFormatError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.operate.letters.receipts.receipt import PlannedLetter, content_of
from redelivery.operate.letters.routes import Leaving, NoWayError, ReplayedOftenError, Route
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import browsed, check_received, consumer_of, is_seen, looked_into_by

BATCH: Final = 200  # letters of a transaction, at most
_HEAVY: Final = 1 << 23  # bytes of the bodies of one: then it is committed
_IDS: Final = 50  # of letters in a selector: so many fit a header of every broker
_AHEAD: Final = 100  # letters that the broker sends before they are asked for, where nobody knows how large they are
_STAYS: Final = (NoWayError, MessageFormatError)  # of a letter that names no origin, or that cannot be read
_COMES: Final = 5.0  # seconds within which a letter that was browsed is received
_IS_THERE: Final = 2.0  # the same, where nobody could look
_ALL: Final = sys.maxsize
_DIGITS: Final = re.compile("[0-9a-f]+")
_HELD: Final = 1000  # letters that stay, and are held meanwhile, where nobody has looked how many there are
_MOST_HELD: Final = 20_000  # the same where somebody has


@dataclass(slots=True)
class MovePlan:
    """The moves that would be made.

    ``ids``: of the letters that would leave, in order; ``contents``: of those that have none, and
    ``there`` how many letters without an id have each of these. ``stay``: how many do
    not: see `_STAYS`; ``why``: of the first of them. ``skipped``: ids of those that were replayed too often, which are
    not in ``stay``. ``others``: how many letters the selector finds that are not meant. ``unseen``: nobody has looked,
    so all of them are meant. ``largest``: bytes of the body of the largest letter that was seen.
    """

    ids: list[str | None]
    stay: int = 0
    why: str = ""
    others: int = 0
    unseen: bool = False
    contents: list[str] = field(default_factory=list)
    there: Mapping[str, int] = field(default_factory=dict)
    skipped: list[str | None] = field(default_factory=list)
    largest: int = 0

    @property
    def ahead(self) -> int:
        """Letters that the broker sends before they are asked for: a transaction whole, where that is not much memory.

        One that is larger than what comes ahead waits, in its middle, for the broker's answer to more.
        """
        return _AHEAD if self.unseen or self.largest * BATCH > _HEAVY else BATCH

    @property
    def staying(self) -> int:
        """The letters that the selector finds and that do not leave; 0: what it finds leaves as it comes."""
        return self.others + self.stay + len(self.skipped)

    def letters(self, edits: Sequence[PlannedLetter] | None = None) -> list[PlannedLetter]:
        """The letters that would leave; ``edits``: the same, as they are edited."""
        contents = iter(self.contents)
        found = edits or [PlannedLetter(each, next(contents) if each is None else None) for each in self.ids]
        return [
            replace(each, there=self.there.get(each.content or "", 0)) if each.id is None else each for each in found
        ]


def plan(
    connection: Connection,
    selection: Selection,
    route: Route,
    noted: Callable[[Message, Leaving | None], None] = lambda _letter, _leaving: None,
    *,
    kept: bool = False,
) -> MovePlan:
    """Look, and take nothing.

    ``noted``: called with each letter that would leave, and as what. ``kept``: what is only taken away is to be put
    back some day. Raises UnsupportedError: a group is meant, and the queue cannot be looked into; or a letter cannot be
    received whole.
    """
    found, selection = MovePlan([]), selection.on(connection)
    if selection.group is None and selection.ids is None and not is_seen(connection, selection.queue):
        return MovePlan([], unseen=True)
    for message in Selection(selection.queue, selection.where).browse(connection):
        if len(found.ids) == selection.limit:
            break
        found.largest = max(found.largest, len(message.raw_body))
        if not selection.accepts(message):
            found.others += 1
            continue
        try:
            leaving = route(message)
        except ReplayedOftenError:
            found.skipped.append(message.message_id)
        except _STAYS as error:
            found.stay += 1
            found.why = found.why or str(error)
        else:
            _check_whole(message, leaving, kept)
            found.ids.append(message.message_id)
            noted(message, leaving)
            if message.message_id is None:
                found.contents.append(content_of(message))
    if found.contents:
        nameless = (each for each in browsed(connection, selection.queue) if each.message_id is None)
        found.there = Counter(map(content_of, nameless))
    return found


def _check_whole(letter: Message, leaving: Leaving | None, kept: bool) -> None:
    if kept or leaving is not None:
        check_received(letter, letter.properties if leaving is None else leaving.message.properties)


class _ChangedError(JMSError):
    """A letter has come that must stay, or is not meant: its batch is not committed."""


class BatchRecord(Protocol):
    """A record of what leaves: each batch is announced before its commit."""

    def before(self, letters: Sequence[tuple[Message, Leaving | None]], *, alone: bool = False) -> None:
        """Write which letters the next commit takes, and what is sent for each; ``alone``: one, without a commit."""

    def after(self) -> None:
        """Write that it was confirmed."""


class Mover:
    """Moves what was planned; ``receipt``: where it is written what leaves.

    ``rate``: letters per second, at most; None: as many as possible. ``moved``: called with the number of letters that
    have left until now, when that is certain.
    """

    def __init__(
        self,
        connection: Connection,
        selection: Selection,
        route: Route,
        *,
        rate: float | None = None,
        moved: Callable[[int], None] = lambda _: None,
        receipt: BatchRecord | None = None,
    ) -> None:
        self._connection = connection
        self._selection = selection.on(connection)
        self._route = route
        self._pause = 0.0 if rate is None else 1.0 / rate
        self._due = 0.0
        self._notify = moved
        self._receipt = receipt
        self._patience = _COMES
        self.moved = 0

    def move(self, planned: MovePlan) -> int:
        """Move them; how many have left. Fewer than planned where somebody else took some meanwhile.

        Raises:
            InDoubtError: the answer to a commit or send did not come: this batch may have left.
            NoQueueError: nobody has looked into the queue, and there is none.
            JMSError: the broker refused; the batch is where it was.
        """
        capabilities = self._connection.metadata.capabilities
        self._patience = _IS_THERE if planned.unseen else _COMES
        if planned.unseen:
            count = _ALL if self._selection.limit is None else self._selection.limit
            if capabilities.transactions and self._selection.here is None:
                with self._seeing_none():
                    self._move_batches([count], [self._selection.where], planned.ahead)
            else:
                self._move_each(count)
            return self.moved
        if not planned.ids:
            return 0
        if not capabilities.transactions:
            self._move_each(len(planned.ids), planned.staying)
        elif not planned.staying:
            try:
                self._move_batches([len(planned.ids)], [self._selection.where], planned.ahead)
            except _ChangedError:  # somebody has sent others meanwhile
                limit = len(planned.ids) - self.moved
                planned = plan(self._connection, replace(self._selection, limit=limit), self._route)
                if not planned.ids:
                    raise
                self.move(replace(planned, others=planned.others + 1))
        else:
            can = capabilities.selectors and capabilities.browse  # a look by a management says nothing of selectors
            named = self._found_named(planned.ids) if can else []
            batches = [named[at : at + _IDS] for at in range(0, len(named), _IDS)]
            self._move_batches([len(each) for each in batches], [_named(each) for each in batches], planned.ahead)
            if len(named) < len(planned.ids):
                self._move_each(len(planned.ids) - len(named), planned.staying)
        return self.moved

    def _found_named(self, ids: Sequence[str | None]) -> list[str | None]:
        """The ids that a selector finds here: not all brokers find those that another client has written."""
        alike: dict[str, list[str | None]] = {}
        for each in ids:
            if each is not None:
                alike.setdefault(_DIGITS.sub("", each), []).append(each)
        found: list[str | None] = []
        for some in alike.values():
            named = Selection(self._selection.queue, _named(some[:1]))
            if [each.message_id for each in named.browse(self._connection)] == some[:1]:
                found += some
        return found

    def _move_batches(self, counts: Sequence[int], selectors: Sequence[str | None], ahead: int) -> None:
        with self._connection.session(AckMode.TRANSACTED) as session:
            producer = session.producer()
            for count, selector in zip(counts, selectors, strict=True):
                most = min(count, ahead)
                with consumer_of(session, self._selection.queue, selector=selector, prefetch=most) as consumer:
                    while count > 0 and (taken := self._move_batch(session, consumer, producer, min(count, BATCH))):
                        count -= taken

    def _move_batch(self, session: Session, consumer: Consumer, producer: Producer, size: int) -> int:
        taken: list[tuple[Message, Leaving | None]] = []
        weight = 0
        while len(taken) < size and (letter := consumer.receive(timeout=self._patience)) is not None:
            if not self._selection.accepts(letter):
                raise _ChangedError("the queue has changed meanwhile: nothing of this batch was moved; look again")
            self._wait_for_turn()
            try:
                taken.append((letter, self._send(producer, letter)))
            except _STAYS as error:
                raise _ChangedError(str(error)) from error
            weight += len(letter.raw_body)
            if weight >= _HEAVY or len(taken) * self._pause >= 1.0:
                break  # a slow run commits once a second
        with self._written(taken):
            session.commit()
        self._count(len(taken))
        return len(taken)

    def _move_each(self, count: int, others: int = 0) -> None:
        """``others``: letters that stay, as far as they were seen: those that are meant may stand behind them all."""
        most = min(_HELD + others, _MOST_HELD)
        with (
            self._connection.session(AckMode.INDIVIDUAL) as session,
            consumer_of(session, self._selection.queue, selector=self._selection.where, prefetch=most) as consumer,
        ):
            producer, held, until = session.producer(), 0, self.moved + count
            while self.moved < until and held < most:
                letter = consumer.receive(timeout=self._patience)
                if letter is None:
                    return
                held += 1
                if not self._selection.accepts(letter):
                    continue
                self._wait_for_turn()
                try:
                    leaving = self._route(letter)
                    with self._written([(letter, leaving)], alone=True):
                        self._send_out(producer, leaving)
                        letter.acknowledge()
                except _STAYS:
                    continue
                held -= 1
                self._count(1)

    @contextmanager
    def _written(self, letters: Sequence[tuple[Message, Leaving | None]], *, alone: bool = False) -> Iterator[None]:
        """Announce a step to the receipt, and say there that it was confirmed."""
        if self._receipt is None or not letters:
            yield
            return
        self._receipt.before(letters, alone=alone)
        yield
        self._receipt.after()

    @contextmanager
    def _seeing_none(self) -> Iterator[None]:
        """Say of a letter that is to be skipped why the run ends: in a transaction it cannot be passed over."""
        try:
            yield
        except _ChangedError as error:
            try:
                looked_into_by(self._connection)
            except UnsupportedError as why:
                if isinstance(error.__cause__, ReplayedOftenError):
                    error.add_note(f"no letter can be passed over without a look at them: {why}")
            raise

    def _send(self, producer: Producer, letter: Message) -> Leaving | None:
        leaving = self._route(letter)
        self._send_out(producer, leaving)
        return leaving

    def _send_out(self, producer: Producer, leaving: Leaving | None) -> None:
        if leaving is not None:
            producer.send(
                leaving.message, leaving.destination, priority=leaving.priority, persistent=leaving.persistent
            )

    def _wait_for_turn(self) -> None:
        if self._pause:
            now = time.monotonic()
            self._due = max(self._due, now) + self._pause
            time.sleep(max(0.0, self._due - self._pause - now))

    def _count(self, more: int) -> None:
        self.moved += more
        self._notify(self.moved)


def add_to(moved: Callable[[int], None], before: int, more: int) -> None:
    """Say how many have left, of which so many before."""
    moved(before + more)


def _named(ids: Sequence[str | None]) -> str:
    quoted = ("'" + str(each).replace("'", "''") + "'" for each in ids)
    return f"JMSMessageID IN ({', '.join(quoted)})"
