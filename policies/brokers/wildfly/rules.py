"""WildFly's rules: those of the Artemis or HornetQ in it, for addresses with the prefixes of JMS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from redelivery.model.destinations import Destination
from redelivery.policies.brokers.artemis import bound
from redelivery.policies.brokers.artemis.rules import JMS_QUEUE, JMS_TOPIC, AddressEntry, ArtemisRules
from redelivery.policies.brokers.rules import DestinationRules
from redelivery.policies.destinations.patterns import covers
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap


@dataclass(frozen=True, slots=True)
class WildFlyRules(ArtemisRules):
    """The contents of one server of a messaging subsystem.

    ``server``: its name. ``topics``: the names of its JMS topics.
    ``by_address``: clients name the addresses of its queues, as in Artemis.
    ``filled``: its address-settings have the defaults of what they do not say, as in JBoss AS 7 and WildFly 8.
    """

    server: str = "default"
    topics: tuple[str, ...] = ()
    filled: bool = field(default=False, compare=False)
    by_address: bool = field(default=False, compare=False)

    @property
    def broker(self) -> str:
        """The broker's name."""
        return f"{'HornetQ' if self.dialect == 'hornetq' else 'Artemis'} in WildFly"

    @property
    def jms_names(self) -> bool:
        """True: the queue ``orders`` has the address ``jms.queue.orders``."""
        return True

    @property
    def unless(self) -> str:
        """Name who else may make the queues of dead letters."""
        return "an application brings it along (*-jms.xml, @JMSDestinationDefinition)"

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        found = ArtemisRules.rules_for(self, destination)
        address = self.address_of(destination)
        notes = (*self._unprefixed(address), *self._filled(self.candidates(address)))
        return replace(found, notes=(*found.notes, *notes))

    def names(self) -> tuple[str, ...]:
        """List the matches, queues and topics."""
        return tuple(dict.fromkeys([*ArtemisRules.names(self), *(f"topic://{each}" for each in self.topics)]))

    def for_clients(self) -> Self:
        """Return the rules with names of addresses in a client's maps, but for HornetQ's, whose client adds them."""
        return self if self.dialect == "hornetq" else replace(self, by_address=True)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return each match with its merged settings as a client's strategy, and the queues that the file makes."""
        found = ArtemisRules.dead_letter_strategies(self)
        queues = bound.made(self.queues) if self.by_address else None
        return DeadLetterStrategyMap(found, default=found.default, queues=queues)

    def _written(self, address: str) -> str:
        return address if self.by_address else ArtemisRules._written(self, address)

    def _client_keys(self) -> dict[str, str]:
        """With those of the addresses, which are what clients of Artemis name: ``jms.queue.orders``."""
        keys = ArtemisRules._client_keys(self)
        if not self.by_address:
            return keys
        prefixes = {"queue://": JMS_QUEUE, "topic://": JMS_TOPIC}
        named = [(scheme, prefix, key) for key in keys for scheme, prefix in prefixes.items() if key.startswith(scheme)]
        addresses = {f"{scheme}{prefix}{key.removeprefix(scheme)}": keys[key] for scheme, prefix, key in named}
        return {**addresses, **keys}

    def _unprefixed(self, address: str) -> Iterator[str]:
        """An entry that was probably meant for the queue or topic, and is for another address."""
        for prefix in (JMS_QUEUE, JMS_TOPIC):
            words = self.wildcards.words(address.removeprefix(prefix))
            for each in self.counting if address.startswith(prefix) else ():
                match = self.wildcards.words(each.match)
                if covers(match, words) and not covers(match, self.wildcards.words(address)):
                    yield f"address-setting {each.match!r} is not for {address}: that would be {prefix}{each.match}"

    def _filled(self, matched: tuple[AddressEntry, ...]) -> Iterator[str]:
        if self.filled and len(matched) > 1 and matched[0].fields_set - matched[0].places.keys():
            yield (
                f"address-setting {matched[0].match!r} has the defaults of all attempts and delays that it does not "
                "say, as in JBoss AS 7 and WildFly 8; WildFly 9 takes them from the less specific ones"
            )
