"""The address settings and queues that the operator's image has before a resource, and how they are merged with it.

They are those of ``artemis create``. The image's launch script merges by the text of ``match``, in the order of its own
settings that have no counterpart, then those of the resource.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.rules import AddressEntry
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.places import Place

_PLACE: Final = Place("the image's broker.xml")
_SETTINGS: Final = AddressSettings(dead_letter_address="DLQ", expiry_address="ExpiryQueue", redelivery_delay=0)

ENTRIES: Final = tuple(
    AddressEntry(match, _SETTINGS, _PLACE, dict.fromkeys(_SETTINGS.fields_set, _PLACE))
    for match in ("activemq.management.#", "#")
)
QUEUES: Final = tuple(BoundQueue(name, name, "anycast", place=_PLACE) for name in ("DLQ", "ExpiryQueue"))


def merged(given: tuple[AddressEntry, ...], rule: str) -> tuple[AddressEntry, ...]:
    """Return the image's settings with those of a resource; without any of those the image's, whatever the rule.

    ``rule``: ``merge_all``: of the same match each setting counts, the resource's before the image's.
    ``merge_replace``: of the same match only the resource's. ``replace_all``: only the resource's at all.
    """
    if rule == "replace_all" and given:
        return given
    known = {each.match: each for each in ENTRIES}
    others = tuple(each for each in ENTRIES if all(each.match != one.match for one in given))
    if rule == "merge_replace":
        return (*given, *others)
    return (*others, *(_joined(each, known[each.match]) if each.match in known else each for each in given))


def _joined(given: AddressEntry, base: AddressEntry) -> AddressEntry:
    settings = given.settings.merged_with(base.settings)
    return replace(given, settings=settings, places={**base.places, **given.places})
