"""Knows how many deliveries may come to a receiver ahead of the application, and when it is time for more credit."""

from __future__ import annotations

from typing import Final

from redelivery.policies.prefetch import GrowingWindow
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import LinkSpec

_STEP: Final = 100  # deliveries after which credit is given anew, at most


class CreditWindow:
    """The window of one receiver, where the dialect's own has ``default`` deliveries.

    ``size``: of it, in deliveries. ``step``: after so many that were dispatched there is credit to give. ``number``,
    ``bytes``: of what came since `grow`.
    """

    __slots__ = ("_growing", "bytes", "number", "size", "step")

    def __init__(self, spec: LinkSpec, dialect: AmqpDialect, default: int) -> None:
        most = spec.ahead(default)
        if dialect.most_credit:
            most = min(most, dialect.most_credit)
        self._growing = None if spec.max_bytes is None else GrowingWindow(most, spec.max_bytes)
        self.number = self.bytes = 0
        self._set(0 if spec.pulls else most if self._growing is None else self._growing.size)

    def grow(self) -> None:
        """Take into account what has come, where it is measured in bytes."""
        if self._growing is not None:
            self._set(self._growing.grow(self.number, self.bytes))
            self.number = self.bytes = 0

    def _set(self, size: int) -> None:
        self.size = size
        self.step = max(1, min(_STEP, size // 2))
