"""Artemis' and HornetQ's rules: what a client returns waits, and after so many deliveries it is a dead letter.

They follow the real brokers where these differ from their documents (docs/brokers/artemis.md, docs/brokers/hornetq.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.rules.rules import (
    CONSUMED,
    FAILED,
    UNCOUNTED,
    EngineRules,
    Failure,
    Manner,
    Origin,
    ReturnDecision,
)
from redelivery.broker.engine.stored import StoredMessage, size_of
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.selectors.selector import Selector
from redelivery.model.values import Byte, Long, Value
from redelivery.policies.activemq.back_off import Random
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.destinations.address_settings import NO_EXPIRY, AddressSettings

_QUALIFIED: Final = "::"
Values: TypeAlias = Callable[[str], Value]
Exists: TypeAlias = Callable[[str], bool]
_PREFIXES: Final = {"artemis": "_AMQ_", "hornetq": "_HQ_"}
_ANYCAST, _MULTICAST = Byte(1), Byte(0)
_FAILED_ON_HORNETQ: Final = (Manner.MODIFIED, Manner.UNDELIVERABLE, Manner.REJECTED)
_WAITS: Final = (Manner.FAILED, Manner.UNDELIVERABLE, Manner.DISCONNECTED)


class BoundQueues:
    """The queues of one file, in their order; a queue of the address' own name has that, another one both."""

    def __init__(self, rules: ArtemisRules) -> None:
        self._in_turn = rules.dialect == "artemis"  # in HornetQ each queue of an address gets what is sent there
        self._filters = {each.filter: Selector(each.filter) for each in rules.queues if each.filter}
        self._on: dict[str, list[BoundQueue]] = {}
        self._turns: Counter[str] = Counter()
        self._second: set[str] = set()
        for each in rules.queues:
            self._on.setdefault(each.address, []).append(each)

    def named(self, name: str) -> str | None:
        """The place of the queue of that name, or of the first ANYCAST one of the address; None: the file has none."""
        for queues in self._on.values():
            for each in queues:
                if each.name == name:
                    return place_of(each)
        return next((place_of(each) for each in self._on.get(name, ()) if self._is_anycast(each)), None)

    def add(self, address: str) -> None:
        """Add the queue of the address' own name that a client has made, beside those that the address has."""
        if address in self._on and all(each.name != address for each in self._on[address]):
            self._second.add(address)

    def is_added(self, address: str) -> bool:
        """Check whether a client has made that."""
        return address in self._second

    def reached(self, address: str, values: Values, exists: Exists, *, every: bool) -> Sequence[str]:
        """The places of a message at an address; none: the file makes no queue there that takes it.

        Of its ANYCAST queues they are one, in turn. ``every``: its MULTICAST queues too; else they are meant only where
        there is no other one. ``exists`` says whether there is a queue of a name.
        """
        found = [each for each in self._on.get(address, ()) if self._takes(each, values)]
        anycast = [place_of(each) for each in found if self._is_anycast(each)]
        all_of_them = [place_of(each) for each in found if not self._is_anycast(each)]
        if address in self._second or (found and exists(address) and address not in (*anycast, *all_of_them)):
            anycast.append(address)  # of who consumes or sends by the address' name as a queue's
        if not anycast:
            return all_of_them
        self._turns[address] += 1
        one = anycast[(self._turns[address] - 1) % len(anycast)]
        return [*(all_of_them if every else ()), one]

    def of_topic(self, address: str, values: Values) -> Iterator[str]:
        """The places of what is published there: the MULTICAST queues."""
        for each in self._on.get(address, ()):
            if each.routing == "multicast" and self._takes(each, values):
                yield place_of(each)

    def _is_anycast(self, queue: BoundQueue) -> bool:
        return self._in_turn and queue.routing == "anycast"

    def _takes(self, queue: BoundQueue, values: Values) -> bool:
        condition = self._filters.get(queue.filter or "")
        return condition is None or condition.matches(values)


def place_of(queue: BoundQueue) -> str:
    """The queue's name in the engine."""
    return queue.name if queue.name == queue.address else f"{queue.address}{_QUALIFIED}{queue.name}"


class ArtemisBroker(EngineRules):
    """See `redelivery.broker.engine.rules.rules.EngineRules`; ``rng`` is what collision avoidance draws from."""

    origin = Origin.ANNOTATIONS
    enlists_acks = False  # over STOMP an ACK counts at once, in a transaction as well
    letters_of_volatile = True
    browses_last_count = True

    def __init__(self, rules: ArtemisRules, rng: Random | None = None) -> None:
        super().__init__()
        self._rules = rules
        self._rng = rng
        self._prefix = _PREFIXES[rules.dialect]
        self._settings: dict[str, AddressSettings] = {}
        self._bound = BoundQueues(rules)
        self._made = {f"{each.address}::{each.name}" for each in rules.queues if each.name != each.address}
        self.counts_first = rules.persist_delivery_count_before_delivery

    def arriving(self, message: StoredMessage, now: int, *, is_letter: bool) -> StoredMessage:
        """Give it the time to live of ``expiry-delay``, ``min-`` and ``max-expiry-delay`` and ``no-expiry``.

        What is sent to ``address::queue`` goes to the address in HornetQ, where no queue can be sent to.
        """
        address, qualified, _ = message.destination.name.partition(_QUALIFIED)
        if self._rules.jms_names and qualified and isinstance(message.destination, Queue) and not is_letter:
            message = replace(message, destination=Queue(address))
        settings = self._settings_for(message.destination)
        expiration = message.expiration
        if settings.no_expiry:
            expiration = 0
        elif not expiration:
            given = settings.expiry_delay if settings.expiry_delay != NO_EXPIRY else settings.max_expiry_delay
            if given == NO_EXPIRY:
                given = settings.min_expiry_delay
            expiration = 0 if given == NO_EXPIRY else now + round(given * 1000)
        elif settings.expiry_delay == NO_EXPIRY:
            if settings.min_expiry_delay != NO_EXPIRY:
                expiration = max(expiration, now + round(settings.min_expiry_delay * 1000))
            if settings.max_expiry_delay != NO_EXPIRY:
                expiration = min(expiration, now + round(settings.max_expiry_delay * 1000))
        if expiration == message.expiration:
            return message
        return replace(message, expiration=expiration, own_expiration=message.expiration)

    def keeps_unrouted(self, topic: Destination) -> bool:
        """Obey ``send-to-dla-on-no-route``."""
        return self._settings_for(topic).send_to_dla_on_no_route

    def queue_of(self, name: str, queues: Collection[str]) -> str:
        """A queue is found by its own name too, with whatever address: ``DLQ.orders`` is ``DLA::DLQ.orders``.

        In HornetQ by nothing else, so that the address before it says only where to send.
        """
        address, _, queue = name.partition(_QUALIFIED)
        if self._rules.jms_names:
            return queue or name
        if name in queues or queue or self._bound.is_added(name):
            return address if address == queue else name
        made = (each for each in self._made if each.endswith(_QUALIFIED + name))
        return next(made, None) or self._bound.named(name) or name

    def places(self, message: StoredMessage, exists: Callable[[str], bool]) -> Sequence[str]:
        """The queues that the address has, or one of its name; a queue's name stands for the queue, too."""
        destination, values = message.destination, message.properties.get
        address = self._rules.address_of(destination)
        if isinstance(destination, Topic):
            return tuple(self._bound.of_topic(address, values))
        if _QUALIFIED in destination.name or address != self._rules.spelled(destination):
            return (self.queue_of(destination.name, ()),)
        found = [self._at(each).name for each in self._bound.reached(address, values, exists, every=False)]
        return found or (self.queue_of(destination.name, ()),)

    def add_queue(self, name: str) -> None:
        """Over STOMP a client that says ANYCAST makes it, beside other queues of the address."""
        self._bound.add(name)

    def makes(self, name: str) -> bool:
        """Look for an anycast queue of that name or address in the file."""
        return any(name in (each.address, each.name) and each.routing == "anycast" for each in self._rules.queues)

    def returned(self, entry: Entry, manner: Manner, *, seen: bool) -> ReturnDecision:
        """Count and delay what failed; only delay what was released; at a closed consumer neither happens.

        Over AMQP HornetQ takes each other outcome than accepted and released for a failure.
        """
        elsewhere = manner is Manner.UNDELIVERABLE
        if manner in _FAILED_ON_HORNETQ and self._rules.dialect == "hornetq":
            return self.returned(entry, Manner.FAILED, seen=True)
        if manner is Manner.NACKED:
            return CONSUMED  # it is an ACK there
        if manner is Manner.REJECTED:
            return FAILED
        if manner in (Manner.RELEASED, Manner.MODIFIED) or (elsewhere and not seen):
            return ReturnDecision(counted=False, delay=self._delay(entry, 1), elsewhere=elsewhere)
        if not seen or manner is Manner.CLOSED:
            return UNCOUNTED
        deliveries = entry.redeliveries + 1
        if self._settings_for(entry.message.destination).exceeded(deliveries):
            return FAILED
        delay = self._delay(entry, deliveries) if manner in _WAITS else 0
        return ReturnDecision(counted=True, delay=delay, elsewhere=elsewhere)

    def letters(self, failure: Failure) -> Sequence[StoredMessage]:
        """A copy in each queue that is bound to the dead-letter or expiry address; none where no queue is."""
        message = failure.message
        settings = self._settings_for(message.destination)
        address = settings.expiry_address if failure.expired else settings.dead_letter_address
        if address is None:
            if not failure.expired:
                self.lost.note(message, "no dead-letter-address is set for it", failure.now)
            return ()
        properties = MappingProxyType({**message.properties, **self._origin(failure)})
        letter = replace(
            message,
            original_destination=None,  # the properties say it
            properties=properties,
            expiration=0,
            own_expiration=None,
            delivery_time=0,
            size=size_of(message.body, properties),
        )
        places = dict.fromkeys(self._queues_of(address, settings, letter, failure))
        if not places:
            self.lost.note(message, f"no queue is bound to {address}, where it should go", failure.now)
        return tuple(replace(letter, destination=place) for place in places)

    def _origin(self, failure: Failure) -> dict[str, Value]:
        message, prefix = failure.message, self._prefix
        found: dict[str, Value] = {
            f"{prefix}ORIG_ADDRESS": self._rules.address_of(message.destination),
            f"{prefix}ORIG_QUEUE": None if failure.entry.queue is None else self._queue_of(failure.entry.queue),
            f"{prefix}ORIG_MESSAGE_ID": Long(failure.entry.order),  # there too the broker's own number
        }
        if self._rules.dialect == "hornetq":
            found = {name: value for name, value in found.items() if value is not None}
        else:
            is_topic = isinstance(message.destination, Topic)
            found[f"{prefix}ORIG_ROUTING_TYPE"] = _MULTICAST if is_topic else _ANYCAST
        if failure.expired:
            found[f"{prefix}ACTUAL_EXPIRY"] = Long(failure.now)
        return found

    def _queue_of(self, name: str) -> str:
        """``DLQ.orders`` of ``DLA::DLQ.orders``; with JMS' names an address and its queue have one name."""
        return self._rules.spelled(Queue(name)) if self._rules.jms_names else name.rpartition("::")[2]

    def _queues_of(
        self, address: str, settings: AddressSettings, letter: StoredMessage, failure: Failure
    ) -> Iterator[Destination]:
        expired = failure.expired
        original = self._rules.address_of(failure.message.destination)
        if settings.auto_create_expiry_resources if expired else settings.auto_create_dead_letter_resources:
            prefix = settings.expiry_queue_prefix if expired else settings.dead_letter_queue_prefix
            suffix = settings.expiry_queue_suffix if expired else settings.dead_letter_queue_suffix
            name = f"{prefix}{original}{suffix}"
            made = f"{address}{_QUALIFIED}{name}"
            if made in self._made or failure.exists(made) or not failure.exists(name):
                self._made.add(made)
                yield Queue(made)  # else a queue of that name has another address, and Artemis makes no second one
        for place_name in self._bound.reached(address, letter.properties.get, failure.exists, every=True):
            yield self._at(place_name)
        place = self._place(address)
        if failure.exists(place.name):
            yield place

    def _at(self, place: str) -> Destination:
        return self._place(place.rpartition(_QUALIFIED)[2]) if self._rules.jms_names else Queue(place)

    def _place(self, address: str) -> Destination:
        if self._rules.jms_names:
            for prefix, kind in (("jms.queue.", Queue), ("jms.topic.", Topic)):
                if address.startswith(prefix):
                    return kind(address.removeprefix(prefix))
        return Queue(address)

    def _delay(self, entry: Entry, deliveries: int) -> int:
        return round(self._settings_for(entry.message.destination).delay(deliveries, self._rng) * 1000)

    def _settings_for(self, destination: Destination) -> AddressSettings:
        address = self._rules.address_of(destination)
        found = self._settings.get(address)
        if found is None:
            found = self._settings[address] = self._rules.settings_for(address)
        return found
