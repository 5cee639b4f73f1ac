"""The listeners that `manage.py runlisteners` runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.db import close_old_connections, transaction
from django.db.models import F

import redelivery
from redelivery import SharedDeadLetterStrategy
from shop.models import Order, Processed

app = redelivery.App(settings.REDELIVERY_URL, dead_letter_strategy=SharedDeadLetterStrategy("shop.DLQ"))


@dataclass
class Ordered:
    id: int


@contextmanager
def database() -> Iterator[None]:
    """A transaction, on a connection as fresh as a request's: a worker's thread lives for long."""
    close_old_connections()
    try:
        with transaction.atomic():
            yield
    finally:
        close_old_connections()


@app.listener("orders", body_type=Ordered, concurrency=2)
def pack(order: Ordered, session: redelivery.Session) -> None:
    with database():
        _, first = Processed.objects.get_or_create(consumer="pack", message=str(order.id))
        if first:
            Order.objects.filter(pk=order.id).update(packed=F("packed") + 1)
    session.producer("parcels").send(f"parcel {order.id}")  # also the second time: see the recipe
