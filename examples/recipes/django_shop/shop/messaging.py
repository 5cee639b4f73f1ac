"""The connection of a web process, and the sends that belong to a transaction of the database."""

from functools import cache, partial
from typing import Any

from django.conf import settings
from django.db import transaction

import redelivery
from redelivery import ReconnectPolicy


@cache
def publisher() -> redelivery.Publisher:
    """The publisher of this process, made by its first send, so after gunicorn has forked; threads share it."""
    return redelivery.connect(settings.REDELIVERY_URL, reconnect=ReconnectPolicy(timeout=5)).publisher()


def send_on_commit(body: Any, destination: str, **options: Any) -> None:
    """Send when the open transaction is committed, and not at all when it is rolled back; without one, at once."""
    transaction.on_commit(partial(_send, body, destination, **options))


def _send(body: Any, destination: str, **options: Any) -> None:
    publisher().send(body, destination, **options)
