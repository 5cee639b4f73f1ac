"""Asks before a page looks into a queue where a look counts as a delivery."""

from __future__ import annotations

from collections.abc import Iterable

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.operate.views.reading import price
from redelivery.web.asked import Asked, Templated
from redelivery.web.guard import FORM


def question(asked: Asked, connection: Connection, queues: Iterable[Destination]) -> Templated | None:
    """The page that asks whether these queues are to be looked into; None: it was agreed to, or costs nothing."""
    if asked.optional("look") is not None:
        return None
    for queue in queues:
        cost = price(connection, queue)
        if cost.counts:
            values = {"queue": queue, "cost": cost, "fields": asked.fields, "form": FORM in asked.fields}
            return Templated("price.html", values)
    return None
