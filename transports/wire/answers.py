"""Completing an answer on the thread that reads for all: a callback that fails must not end that thread."""

from __future__ import annotations

import logging

from redelivery.model.errors import JMSError
from redelivery.transports.seam import Pending

log = logging.getLogger(__name__)


def finish(pending: Pending, error: JMSError | None, value: object = None) -> None:
    """The broker's answer is there."""
    try:
        if error is None:
            pending.complete(value)
        else:
            pending.fail(error)
    except Exception:  # an application's callback
        log.exception("a callback that was notified of a broker's answer failed")
