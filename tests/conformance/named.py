"""Addresses whose queues have other names, which the broker's own configuration has made: by which names they are used.

| names | queues | the tests send to | and consume from |
|---|---|---|---|
| address | ANYCAST | the address | the address |
| queue | ANYCAST | the queue's own name | the queue's own name |
| both | ANYCAST | address::queue | address::queue |
| both | HornetQ's | the address, of address::queue | the queue |
| multicast | MULTICAST | address::queue | address::queue: of the address alone a consumer is one more subscriber |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pytest
from tests.conformance.pairs import DEAD_LETTERS, KINDS, Kind
from tests.run import forms

from redelivery.testing.brokers.spec import Site

_POOL: Final = 60 if forms.brief() else 900  # queues of a place
_TURNS: Final = 3
_OF_ALL: Final = (DEAD_LETTERS, "DLQ", "ExpiryQueue")


_NO_INDIVIDUAL: Final = {"individual dead letters": "only ActiveMQ has a strategy per destination"}
# Of the tests' user who may not do everything.
_UNSEEN: Final = {"refusals": "over STOMP who may not send to activemq.management must name a queue with its address"}
_UNSELECTED: Final = {"selectors": "Artemis heeds none over STOMP at a MULTICAST queue"}
_UNCOUNTED: Final = {
    "redelivered after a close": "what a closed consumer had is not counted, as by Artemis' own clients"
}
_AS_OVER_STOMP: Final = {each: KINDS["stomp-artemis"].cannot[each] for each in (*_UNCOUNTED, "lists beyond the window")}


@dataclass(frozen=True, slots=True)
class Place:
    """A pair, and the names by which its queues are used; ``file``: whose file made them."""

    pair: str
    names: str
    file: str

    @property
    def name(self) -> str:
        """Of its tests."""
        return f"{self.pair}-{self.names}" if self.kind.real else f"{self.pair}-{self.file}-{self.names}"

    @property
    def kind(self) -> Kind:
        """Its pair's, and what that cannot do under this file."""
        usual = KINDS[self.pair]
        more = {"vm": _UNCOUNTED, "stomp-embedded": _AS_OVER_STOMP}.get(self.pair, {})
        if self.pair == "stomp-artemis":
            more = _UNSELECTED if self.names == "multicast" else _UNSEEN
        cannot = {**usual.cannot, **_NO_INDIVIDUAL, **more}
        if self.pair == "stomp-embedded":
            del cannot["the count of an unseen message"]  # which is Classic's: here nothing is counted at a close
        return replace(usual, cannot=cannot)

    @property
    def broker(self) -> str | None:
        """See `Kind`."""
        return self.kind.broker

    def queues(self) -> Iterator[str]:
        """The names of its queues as the tests say them, one after the other."""
        for number in range(_POOL):
            address, queue = self.made(number)
            yield {"address": address, "queue": queue}.get(self.names, f"{address}::{queue}")
        raise AssertionError(f"{self.name}: more than {_POOL} queues are asked for")

    def said(self, name: str) -> str:
        """What the messages of such a queue say that they were sent to: the destination of its SEND."""
        if self.file == "hornetq":
            return name.partition("::")[0]
        if self.names == "queue" and self.kind.real:
            return f"{name.replace('.queue.', '.address.')}::{name}"
        return name

    def made(self, number: int) -> tuple[str, str]:
        """An address, and its queue."""
        return f"{self.name}.address.{number}", f"{self.name}.queue.{number}"


PLACES: Final = (
    Place("stomp-artemis", "address", "artemis"),
    Place("stomp-artemis", "queue", "artemis"),
    Place("stomp-artemis", "multicast", "artemis"),
    Place("amqp-artemis", "address", "artemis"),
    Place("amqp-artemis", "both", "artemis"),
    Place("stomp-hornetq", "both", "hornetq"),
    Place("vm", "address", "artemis"),
    Place("vm", "queue", "artemis"),
    Place("stomp-embedded", "address", "artemis"),
    Place("stomp-embedded", "both", "artemis"),
    Place("stomp-embedded", "multicast", "artemis"),
    Place("amqp-embedded", "address", "artemis"),
    Place("amqp-embedded", "multicast", "artemis"),
    Place("vm", "both", "hornetq"),
    Place("stomp-embedded", "both", "hornetq"),
)


def parameters(turn: int | None = None) -> list[object]:
    """The places, or every third of them from a turn on, as parameters; those of a real broker are in one process."""
    marks = {each.name: [pytest.mark.together(f"addresses of {each.broker}")] if each.broker else [] for each in PLACES}
    chosen = PLACES if turn is None else PLACES[turn % _TURNS :: _TURNS]
    return [pytest.param(each, id=each.name, marks=marks[each.name]) for each in chosen]


def broker_xml(site: Site) -> str:
    """The file of the suite's Artemis, with these addresses."""
    usual = (site.folder / "broker.xml").read_text(encoding="utf-8")
    before, _, rest = usual.partition("<addresses>")
    made = _addresses(*(each for each in PLACES if each.broker == "artemis"))
    return f"{before}{made}{rest.partition('</addresses>')[2]}"


def hornetq_xml(_: Site) -> str:
    """The file of the suite's HornetQ, with these queues."""
    return _hornetq(*(each for each in PLACES if each.broker == "hornetq"))


def embedded_xml(place: Place) -> str:
    """The file of the embedded broker, for a place."""
    if place.file == "hornetq":
        return _hornetq(place)
    settings = _setting("#", "DLQ", "<auto-delete-queues>false</auto-delete-queues>")
    inside = f"<address-settings>{settings}</address-settings>{_addresses(place)}"
    return f"<configuration><core>{inside}</core></configuration>"


def _addresses(*places: Place) -> str:
    made = [_address(name, f"queue.of.{name}", "anycast") for name in _OF_ALL]
    for place in places:
        routing = "multicast" if place.names == "multicast" else "anycast"
        made += [_address(*place.made(number), routing) for number in range(_POOL)]
    return f"<addresses>{''.join(made)}</addresses>"


def _address(name: str, queue: str, routing: str) -> str:
    return f'<address name="{name}"><{routing}><queue name="{queue}"/></{routing}></address>'


def _hornetq(*places: Place) -> str:
    made = [(f"jms.queue.{each}", f"jms.queue.{each}") for each in _OF_ALL]  # nobody can consume them otherwise
    for place in places:
        made += [(f"jms.queue.{address}", f"jms.queue.{queue}") for address, queue in map(place.made, range(_POOL))]
    queues = "".join(f'<queue name="{queue}"><address>{address}</address></queue>' for address, queue in made)
    full = "<max-size-bytes>65536</max-size-bytes><address-full-policy>FAIL</address-full-policy>"
    settings = _setting("#", "jms.queue.DLQ") + _setting("jms.queue.full.#", "jms.queue.DLQ", full)
    return (
        f'<configuration xmlns="urn:hornetq"><queues>{queues}</queues>'
        f"<address-settings>{settings}</address-settings></configuration>"
    )


def _setting(match: str, letters: str, more: str = "") -> str:
    inside = f"<dead-letter-address>{letters}</dead-letter-address><max-delivery-attempts>10</max-delivery-attempts>"
    return f'<address-setting match="{match}">{inside}{more}</address-setting>'
