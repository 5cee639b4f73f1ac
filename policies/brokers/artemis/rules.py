"""Artemis' and HornetQ's rules: address settings that are merged field by field, and the queues that a file makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import InvalidDestinationError
from redelivery.policies.brokers.artemis import bound
from redelivery.policies.brokers.artemis.bound import BoundQueue, queue_on
from redelivery.policies.brokers.artemis.names import NAMES, written
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS, LITERAL, Wildcards
from redelivery.policies.brokers.rules import (
    Address,
    DestinationRules,
    Lifetime,
    Matched,
    Rules,
    listed_delays,
    separately,
    strategy_to,
)
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
)
from redelivery.policies.destinations.address_settings import AddressSettings, client_policy
from redelivery.policies.destinations.examples import examples_of
from redelivery.policies.destinations.overlaps import usable, with_overlaps
from redelivery.policies.destinations.patterns import ONE, REST, covers
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import NOWHERE, Place, Places, Setting

_SHOWN: Final = (
    *("redelivery_delay", "redelivery_delay_multiplier", "redelivery_collision_avoidance_factor"),
    *("max_redelivery_delay", "max_delivery_attempts", "dead_letter_address"),
)
_QUALIFIED: Final = "::"
_UNLESS: Final = {"artemis": "a client has made one", "hornetq": "hornetq-jms.xml makes it"}
JMS_QUEUE: Final = "jms.queue."
JMS_TOPIC: Final = "jms.topic."
_JMS: Final = {JMS_QUEUE: "queue", JMS_TOPIC: "topic"}


@dataclass(frozen=True, slots=True)
class AddressEntry:
    """One ``address-setting``: what it matches, and the settings that it gives (``settings.fields_set``)."""

    match: str
    settings: AddressSettings
    place: Place = field(default=NOWHERE, compare=False)
    places: Places = field(default_factory=dict, compare=False)
    fields_set: frozenset[str] = field(init=False, repr=False)  # a field that is set to its default differs, in a merge

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields_set", self.settings.fields_set)


@dataclass(frozen=True, slots=True)
class ArtemisRules(Rules):
    """The contents of a ``broker.xml`` or ``hornetq-configuration.xml`` says.

    ``dialect``: ``artemis`` or ``hornetq``. ``entries``: in the order of the file; of several with the same match one
    counts. ``queues``: those that the file makes, by address; ``elsewhere``: their addresses of other names, by name.
    ``persist_delivery_count_before_delivery``: False: after a crash of the broker, a message whose first delivery was
    under way looks like one that was never delivered. ``max_redelivery_records``: journal records for each message.
    ``lists_queues``: False: it is a part of a configuration, and the queues may be in another one.
    """

    dialect: str = "artemis"
    entries: tuple[AddressEntry, ...] = ()
    queues: tuple[BoundQueue, ...] = ()
    wildcards: Wildcards = DEFAULT_WILDCARDS
    persist_delivery_count_before_delivery: bool = False
    max_redelivery_records: int | None = None
    lists_queues: bool = field(default=True, compare=False)
    elsewhere: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elsewhere", bound.elsewhere(self.queues))

    @property
    def broker(self) -> str:
        """The broker's name."""
        return "HornetQ" if self.dialect == "hornetq" else "Artemis"

    @property
    def jms_names(self) -> bool:
        """True where the address of a queue or topic has ``jms.queue.`` or ``jms.topic.`` before its name."""
        return self.dialect == "hornetq"

    @property
    def makes_queues(self) -> bool:
        """True but in HornetQ."""
        return self.dialect != "hornetq"

    @property
    def unless(self) -> str:
        """Name who else may make the queues of dead letters."""
        return _UNLESS[self.dialect]

    @property
    def counting(self) -> tuple[AddressEntry, ...]:
        """Return one entry for each match: the first in Artemis, which ignores the others, the last in HornetQ."""
        found: dict[str, AddressEntry] = {}
        for each in self.entries:
            if self.dialect == "hornetq" or each.match not in found:
                found[each.match] = each
        return tuple(found.values())

    def address_of(self, destination: Destination) -> str:
        """Return the address of a queue or topic: its name, and in HornetQ ``jms.queue.`` or ``jms.topic.`` before it.

        A queue can be named with its address: that of ``DLA::DLQ.orders`` is ``DLA``. One that the file makes on an
        address of another name has that one.
        """
        name = self.spelled(destination)
        alone = isinstance(destination, Queue) and _QUALIFIED not in destination.name
        return self.elsewhere.get(name, name) if alone else name

    def spelled(self, destination: Destination) -> str:
        """Return its name as the broker has it, without a queue behind an address."""
        name = destination.name.partition(_QUALIFIED)[0]
        if not self.jms_names or isinstance(destination, Address) or name.startswith(tuple(_JMS)):
            return name
        return (JMS_TOPIC if isinstance(destination, Topic) else JMS_QUEUE) + name

    def candidates(self, address: str) -> tuple[AddressEntry, ...]:
        """List the entries that match an address, in the broker's order: each field comes from the first that sets it.

        The exact match comes first, then patterns without ``#`` before those with it; of two with ``#`` the longer
        match, of two without it the one whose first word that differs is not ``*`` (HierarchicalObjectRepository).
        """
        words = self.wildcards.words(address)
        found = [each for each in self.counting if covers(self.wildcards.words(each.match), words)]
        return tuple(sorted(found, key=lambda each: self._rank(each.match, address)))

    def settings_for(self, address: str) -> AddressSettings:
        """Return the merged settings of an address; of the embedded broker too."""
        merged = AddressSettings()
        for entry in self.candidates(address):
            merged = merged.merged_with(entry.settings)
        return merged

    def dead_letter_queue(self, address: str, settings: AddressSettings | None = None) -> str | None:
        """Say where dead letters of an address are read: ``DLQ``, or ``DLA::DLQ.orders`` where it is created for them.

        For what fails at ``DLA`` itself, that is in such a queue, Artemis 2.44 makes one more: ``DLA::DLQ.DLA``.
        """
        given = self.settings_for(address) if settings is None else settings
        named = given.dead_letter_queue_prefix + address + given.dead_letter_queue_suffix
        return queue_on(given.dead_letter_address, named if given.auto_create_dead_letter_resources else None)

    def expiry_queue(self, address: str, settings: AddressSettings | None = None) -> str | None:
        """Say where expired messages of an address are read, as `dead_letter_queue`; None where they are removed."""
        given = self.settings_for(address) if settings is None else settings
        named = given.expiry_queue_prefix + address + given.expiry_queue_suffix
        return queue_on(given.expiry_address, named if given.auto_create_expiry_resources else None)

    def match_of(self, key: str) -> str:
        """Spell a key of our maps as a match of the file; `settings_for` it are what all of its addresses have."""
        kinds = {ONE: self.wildcards.single_word, REST: self.wildcards.any_words}
        if key == REST:
            every = self.wildcards.any_words
            return "jms" + self.wildcards.delimiter + every if self.jms_names else every
        kind = Topic if key.startswith("topic://") else Queue
        words = self.spelled(kind(key.partition("://")[2] or key)).split(".")
        return self.wildcards.delimiter.join(kinds.get(word, word) for word in words)

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        address = self.address_of(destination)
        matched = self.candidates(address)
        settings = self.settings_for(address)
        limit = settings.max_delivery_attempts if settings.max_delivery_attempts > 0 else None
        target = self.dead_letter_queue(address, settings)
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="deliveries",
            maximum=limit,
            delays=listed_delays(settings.delay, limit),
            dead_letter=target,
            removed_because="" if target else "no dead-letter-address is set",
            expired=self.expiry_queue(address, settings),
            matched=tuple(Matched(f"address-setting {each.match!r}", each.place) for each in matched),
            settings=tuple(self._shown(settings, matched)),
            notes=(*self._notes(settings), *self._uncovered(address, matched), *self._ignored(matched)),
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return each match with its merged settings as a client's policy; collision avoidance in whole per cents."""
        entries = {key: client_policy(self.settings_for(match)) for key, match in self._client_keys().items()}
        default = entries.pop(REST, None) or client_policy(AddressSettings())
        shared = with_overlaps(usable(entries), lambda key: client_policy(self.settings_for(self.match_of(key))))
        shared |= {key: client_policy(self.settings_for(address)) for key, address in self._own_names()}
        return RedeliveryPolicyMap(shared, default=default)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return each match as a client's strategy: left to Artemis where that can be; without an address discarded."""
        entries = {key: self._strategy(self.settings_for(match)) for key, match in self._client_keys().items()}
        default = entries.pop(REST, None) or self._strategy(AddressSettings())
        shared = with_overlaps(usable(entries), lambda key: self._strategy(self.settings_for(self.match_of(key))))
        shared |= {key: self._strategy(self.settings_for(address)) for key, address in self._own_names()}
        made = None if self.jms_names or not self.lists_queues else bound.made(self.queues)
        return DeadLetterStrategyMap(shared, default=default, queues=made)

    def names(self) -> tuple[str, ...]:
        """List the matches, and the queues that the file makes."""
        made = filter(None, map(self._destination, self.queues))
        return tuple(dict.fromkeys([*self._by_key(), *made]))

    def lifetime(self, key: str) -> Lifetime:
        """Return the times to live that the merged settings of all that a pattern matches give."""
        settings = self.settings_for(self.match_of(key))
        to: bool | str = settings.expiry_address or False
        if to and to == settings.dead_letter_address and not settings.auto_create_dead_letter_resources:
            to = True
        if isinstance(to, str) and self.jms_names:
            to = to.removeprefix(JMS_QUEUE)
        least, most = settings.min_expiry_delay, settings.max_expiry_delay
        return Lifetime(to, least if least >= 0 else None, most if most >= 0 else None)

    def unmade(self) -> tuple[str, ...]:
        """List the addresses of dead letters, and of what expires, on which this file makes no queue."""
        settings = (self.settings_for(each.match) for each in self.counting)
        return bound.unmade(settings, self.queues) if self.lists_queues else ()

    def selectors(self) -> tuple[tuple[str, str, Place], ...]:
        """List the queues that the file makes with a filter: name, filter and place of each."""
        return tuple((each.name, each.filter, each.place) for each in self.queues if each.filter is not None)

    def expressions(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """List the address-settings for names that no destination of ours can have, such as ``/queue/x``."""
        for entry in self.entries:
            examples = examples_of(".".join(self.wildcards.words(entry.match)), ())
            found = (one for each in examples for one in self.candidates(self.spelled(each)))
            if all(entry.match != one.match for one in found):
                yield f"address-setting {entry.match!r}", dict(sorted(written(entry.settings).items()))

    def _rank(self, match: str, address: str) -> tuple[int, int, tuple[bool, ...], int]:
        words = self.wildcards.words(match)
        if match == address:
            return 0, 0, (), 0
        if REST in words:
            return 2, -len(match), (), 0
        return 1, 0, tuple(word == ONE for word in words), len(match)

    def _by_key(self) -> dict[str, AddressEntry]:
        keys = {self.key_of(each.match): each for each in self.counting}
        return {key: each for key, each in keys.items() if LITERAL not in key}

    def _written(self, address: str) -> str:
        """Return the name by which a client sends to an address."""
        return address.removeprefix(JMS_QUEUE).removeprefix(JMS_TOPIC) if self.jms_names else address

    def _client_keys(self) -> dict[str, str]:
        """The keys of a client's maps, each with its match."""
        return {key: each.match for key, each in self._by_key().items()}

    def key_of(self, match: str) -> str:
        """Return a match as a key of our maps, with a NUL if it can be none; JMS' addresses are queues and topics."""
        text = ".".join(self.wildcards.words(match))
        for prefix, scheme in _JMS.items():
            if self.jms_names and text.startswith(prefix):
                return f"{scheme}://{text.removeprefix(prefix)}"
        if self.jms_names and text != REST:
            return REST if text == "jms.>" else LITERAL + text  # an address that is no queue's or topic's
        return text

    def _own_names(self) -> Iterable[tuple[str, str]]:
        return usable(bound.own_names(self.elsewhere, JMS_QUEUE if self.jms_names else "")).items()

    def _destination(self, queue: BoundQueue) -> str | None:
        """The destination of ours that is a queue; None where its name can be none of ours."""
        kind = Topic if queue.routing == "multicast" else Queue
        plain = queue.address.removeprefix(JMS_QUEUE).removeprefix(JMS_TOPIC)
        try:
            named = str(kind(plain))
            return named if plain == queue.address else self.key_of(queue.address)
        except InvalidDestinationError:
            return None

    def _strategy(self, settings: AddressSettings) -> DeadLetterStrategy:
        prefix, suffix = settings.dead_letter_queue_prefix, settings.dead_letter_queue_suffix
        created = settings.auto_create_dead_letter_resources
        failed = self._strategy_to(settings.dead_letter_address, prefix, suffix, created=created)
        prefix, suffix = settings.expiry_queue_prefix, settings.expiry_queue_suffix
        created = settings.auto_create_expiry_resources
        return separately(failed, self._strategy_to(settings.expiry_address, prefix, suffix, created=created))

    def _strategy_to(self, target: str | None, prefix: str, suffix: str, *, created: bool) -> DeadLetterStrategy:
        target = target and self._written(target)
        copies = strategy_to(target)
        if target is not None and created:
            copies = IndividualDeadLetterStrategy(
                queue_prefix=prefix,
                topic_prefix=prefix,
                queue_suffix=suffix,
                topic_suffix=suffix,
                process_non_persistent=True,
                on_address=target,
            )
        if self.dialect == "hornetq" or isinstance(copies, DiscardingDeadLetterStrategy):
            return copies
        return BrokerDeadLetterStrategy(configured=True, broker=self.dialect, otherwise=copies)

    def _shown(self, settings: AddressSettings, matched: tuple[AddressEntry, ...]) -> Iterator[Setting]:
        for name, (of, kind) in NAMES.items():
            entry = next((each for each in matched if of in each.fields_set), None)
            if entry is not None:
                value = kind.spell(getattr(settings, of))
                yield Setting(name, value, f"address-setting {entry.match!r}", entry.places.get(of))
            elif of in _SHOWN:
                default = settings.longest_delay if of == "max_redelivery_delay" else getattr(settings, of)
                yield Setting(name, "(none)" if default is None else kind.spell(default), "default")

    def _notes(self, settings: AddressSettings) -> Iterator[str]:
        target = settings.dead_letter_address
        if self.lists_queues:
            yield from bound.notes(settings, self.queues, self.unless)
        if target and settings.auto_create_dead_letter_resources:
            yield (
                f"read these dead letters from {target}::…: a consumer of the bare name that comes before the first "
                "one makes another queue of that name, and the dead letters are lost"
            )
        if settings.redelivery_delay and settings.redelivery_delay < 0.1 and self.max_redelivery_records is None:
            yield "each redelivery writes two records to the journal; with so short a delay, max-redelivery-records=1"
        if not self.persist_delivery_count_before_delivery:
            yield "a crash of the broker can lose a count (persist-delivery-count-before-delivery is false)"

    def _uncovered(self, address: str, matched: tuple[AddressEntry, ...]) -> Iterator[str]:
        """Say where HornetQ 2.4 (Match) does not do what its document says."""
        words = self.wildcards.words(address)
        for each in matched:
            if self.dialect == "hornetq" and self.wildcards.words(each.match) == (*words, REST):
                yield f"HornetQ 2.4 itself does not take {each.match} for {address}, though its document says so"

    def _ignored(self, matched: tuple[AddressEntry, ...]) -> Iterator[str]:
        """An entry whose match another one has too, and that does not count."""
        for each in self.entries:
            if all(each is not one for one in matched) and any(each.match == one.match for one in matched):
                yield f"{Matched(f'another address-setting {each.match!r}', each.place)} does not count"
