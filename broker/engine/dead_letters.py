"""What the broker makes of a message that failed for good or expired: ActiveMQ's RegionBroker.sendToDeadLetterQueue."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.stored import StoredMessage, size_of
from redelivery.model.values import Value
from redelivery.policies.dead_letter_headers import FAILURE_CAUSE, ORIGINAL_DELIVERY_MODE, ORIGINAL_EXPIRATION
from redelivery.policies.dead_letters import CopyTo, IndividualDeadLetterStrategy

AUDIT_DEPTH: Final = 2048 * 64  # ids remembered per strategy, ActiveMQ's maxAuditDepth for maxProducersToAudit


class DeadLetters:
    """Makes dead letters, each message id once per strategy (an individual strategy: once per original destination)."""

    __slots__ = ("_audits", "_config")

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._audits: dict[object, OrderedDict[str, None]] = {}

    def letter(self, message: StoredMessage, cause: str | None, now: int, *, expired: bool) -> StoredMessage | None:
        """What to put on the dead-letter queue; None where the message is dropped."""
        strategy = self._config.strategy_for(message.destination)
        decision = strategy.decide(
            message.destination, persistent=message.persistent, expired=expired, native_available=False
        )
        if not isinstance(decision, CopyTo):
            return None
        audit = message.destination if isinstance(strategy, IndividualDeadLetterStrategy) else id(strategy)
        if not self._first(audit, message.identity or message.message_id):
            return None
        properties: dict[str, Value] = dict(message.properties)
        if cause is not None:
            properties[FAILURE_CAUSE] = cause
        if not message.persistent:
            properties[ORIGINAL_DELIVERY_MODE] = "NON_PERSISTENT"
        expiration = 0
        if decision.expiration:
            expiration = now + round(decision.expiration * 1000)
        else:
            properties[ORIGINAL_EXPIRATION] = str(message.expiration)
        return replace(
            message,
            destination=decision.destination,
            original_destination=message.destination,
            properties=MappingProxyType(properties),
            expiration=expiration,
            delivery_time=0,
            persistent=True,
            size=size_of(message.body, properties),
        )

    def _first(self, audit: object, message_id: str) -> bool:
        ids = self._audits.setdefault(audit, OrderedDict())
        if message_id in ids:
            return False
        ids[message_id] = None
        if len(ids) > AUDIT_DEPTH:
            ids.popitem(last=False)
        return True
