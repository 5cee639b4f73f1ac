"""The transactions of one AMQP client (part 4 of the standard), over the engine's.

A message that was accepted and settled is the transaction's: a rollback redelivers it. One that was accepted and not
settled stays with the client after a rollback, as it does with ActiveMQ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

from redelivery.broker.amqp_refusals import UNKNOWN_TRANSACTION, RefusedError
from redelivery.broker.amqp_states import ACCEPTED, Outcome
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.errors import MessageFormatError, TransactionRolledBackError
from redelivery.transports.amqp.sections import VALUE, body_sections, find
from redelivery.transports.amqp.values import read

if TYPE_CHECKING:
    from redelivery.broker.amqp_consumer import Held
    from redelivery.broker.amqp_conversation import AmqpConversation
    from redelivery.broker.amqp_incoming import CoordinatorLink

_DECLARE: Final = (0x31, "amqp:declare:list")
_DISCHARGE: Final = (0x32, "amqp:discharge:list")


@dataclass(frozen=True, slots=True)
class Discharge:
    """The end of a transaction; ``fail`` undoes it."""

    transaction: bytes
    fail: bool


def read_request(raw: bytes | bytearray) -> Discharge | None:
    """A message to the coordinator; None is a declare. Raises MessageFormatError."""
    body = find(raw)[4]
    sections = body_sections(raw, body) if body >= 0 else []
    if len(sections) != 1 or sections[0][0] != VALUE or raw[sections[0][1]] != 0:
        raise MessageFormatError("a message to the coordinator is a declare or a discharge")
    kind, at = read(raw, sections[0][1] + 1)
    fields, _ = read(raw, at)
    if kind in _DECLARE:
        return None
    if kind not in _DISCHARGE or not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes):
        raise MessageFormatError("a message to the coordinator is a declare or a discharge with a transaction's id")
    return Discharge(fields[0], len(fields) > 1 and fields[1] is True)


@dataclass(slots=True, eq=False)
class Unit:
    """One transaction: ``retired`` are its outcomes, in order."""

    owner: CoordinatorLink
    transaction: Transaction = field(default_factory=Transaction)
    retired: list[tuple[Held, Outcome]] = field(default_factory=list)


class Units:
    """The open transactions of a connection, by id."""

    def __init__(self, conversation: AmqpConversation) -> None:
        self._conversation = conversation
        self._open: dict[bytes, Unit] = {}
        self._numbers = count(1)

    def declare(self, owner: CoordinatorLink) -> bytes:
        """Begin one; its id."""
        identity = next(self._numbers).to_bytes(8, "big")
        self._open[identity] = Unit(owner)
        return identity

    def known(self, identity: bytes) -> Unit:
        """The open transaction of that id. Raises RefusedError."""
        unit = self._open.get(identity)
        if unit is None:
            raise RefusedError(UNKNOWN_TRANSACTION, f"there is no open transaction {identity.hex() or 'without an id'}")
        return unit

    def retire(self, identity: bytes, held: Held, outcome: Outcome) -> None:
        """An outcome that counts from the commit on. Raises RefusedError."""
        unit = self.known(identity)
        if held.unit is unit and not held.settled:
            self._recall(unit, held)
        if held.unit is not None:
            raise RefusedError("amqp:illegal-state", "the delivery has an outcome in another transaction")
        if outcome.kind == ACCEPTED:
            self._conversation.core.call(lambda engine, now: engine.enlist(unit.transaction, [held.dispatch], now))
        held.unit = unit
        held.settled = outcome.settled
        unit.retired.append((held, outcome))

    def recall(self, held: Held) -> None:
        """The client has thought again: the delivery is in no transaction any more."""
        if held.unit is not None:
            self._recall(held.unit, held)

    def discharge(self, identity: bytes, *, fail: bool) -> None:
        """End a transaction.

        Raises:
            RefusedError: it is not known.
            TransactionRolledBackError: it was rolled back instead.
        """
        unit = self.known(identity)
        del self._open[identity]
        if fail:
            self._roll_back([unit])
        else:
            self._commit(unit)

    def forget(self, identity: bytes) -> None:
        """Roll it back if it is there."""
        unit = self._open.pop(identity, None)
        if unit is not None:
            self._roll_back([unit])

    def end_of(self, owner: CoordinatorLink) -> None:
        """The coordinator's link is over: so are its transactions."""
        mine = [identity for identity, unit in self._open.items() if unit.owner is owner]
        if mine:
            self._roll_back([self._open.pop(identity) for identity in mine])

    def end(self) -> None:
        """The connection is over."""
        units, self._open = list(self._open.values()), {}
        if units:
            self._roll_back(units)

    def _commit(self, unit: Unit) -> None:
        def finish(engine: Engine, now: int) -> None:
            engine.commit(unit.transaction, now)
            for held, outcome in unit.retired:
                if outcome.kind != ACCEPTED and not held.dispatch.subscription.closed:
                    held.apply(engine, outcome, now)

        try:
            self._conversation.core.call(finish)
        except TransactionRolledBackError:
            self._conversation.core.call(lambda engine, now: self._give_back(engine, unit, now))
            raise
        for held, outcome in unit.retired:
            held.unit = None
            held.link.settle(held, outcome.kind)

    def _roll_back(self, units: list[Unit]) -> None:
        def undo(engine: Engine, now: int) -> None:
            for unit in units:
                engine.rollback(unit.transaction, now)
                self._give_back(engine, unit, now)

        self._conversation.core.call(undo)

    @staticmethod
    def _give_back(engine: Engine, unit: Unit, now: int) -> None:
        """What was settled is the broker's again, counted as delivered."""
        back = []
        for held, _ in unit.retired:
            held.unit = None
            if held.settled and not held.dispatch.subscription.closed:
                held.dispatch.seen = True
                back.append(held.dispatch)
        engine.release(back, now)

    def _recall(self, unit: Unit, held: Held) -> None:
        held.unit = None
        before = [outcome for each, outcome in unit.retired if each is held]
        unit.retired = [(each, outcome) for each, outcome in unit.retired if each is not held]
        if before[-1].kind == ACCEPTED:
            self._conversation.core.call(lambda engine, _now: engine.withdraw(unit.transaction, held.dispatch))
