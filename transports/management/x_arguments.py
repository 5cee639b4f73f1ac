"""RabbitMQ's queues are declared by arguments, whose names begin with ``x-``: over AMQP and over HTTP alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.transports.management.declaring import NO_LIMIT, Declaration, Queues

_PREFIX: Final = "x-"
_SPELLED: Final = ("/queues/", "/amq/queue/", "/exchange/", "/exchanges/", "/topic/")
_TYPE: Final = "x-queue-type"
_LIMIT: Final = "x-delivery-limit"
_EXCHANGE: Final = "x-dead-letter-exchange"
_KEY: Final = "x-dead-letter-routing-key"
_COUNTS: Final = "quorum"  # the type of those that count


class ArgumentQueues(Queues):
    """The base of both.

    Args:
        limited: a queue that counts has a limit of its own, from RabbitMQ 4 on.
    """

    def __init__(self, *, limited: bool) -> None:
        self._limited = limited

    def check(self, wanted: Declaration) -> None:
        """See `Queues.check`: the broker stores a name that it does not know, and does nothing by it."""
        for queue in (wanted.queue, wanted.dead_letters):
            if queue is not None and queue.name.startswith(_SPELLED):
                raise InvalidDestinationError(
                    f"{queue} is an address, by which this broker's clients use a queue: to declare or delete one, "
                    "write its name alone"
                )
        for name in wanted.arguments:
            if not name.startswith(_PREFIX):
                raise ConfigError(
                    f"{wanted.queue}: the arguments of this broker begin with x-: write {_PREFIX + name!r} if that is "
                    f"one; by {name!r} it would do nothing"
                )
        if wanted.type is not None:
            wanted.check_free(_TYPE)
        if wanted.dead_letters is not None:
            wanted.check_free(_EXCHANGE, _KEY)
        if wanted.maximum_redeliveries is not None:
            wanted.check_free(_LIMIT)

    def for_dead_letters(self, wanted: Declaration) -> Declaration:
        """See `Queues.for_dead_letters`: of the same type, since it is as dear, and nothing of it is ever given up."""
        assert wanted.dead_letters is not None, "asked only then"
        kind = wanted.type or wanted.arguments.get(_TYPE)
        unlimited = self._limited and kind == _COUNTS
        return Declaration(wanted.dead_letters, kind, {_LIMIT: NO_LIMIT} if unlimited else {})


def arguments_of(wanted: Declaration) -> Mapping[str, Any]:
    """All arguments. Dead letters go by the default exchange, which brings them to the queue of the key's name."""
    arguments = dict(wanted.arguments)
    if wanted.type is not None:
        arguments[_TYPE] = wanted.type
    if wanted.dead_letters is not None:
        arguments[_EXCHANGE] = ""
        arguments[_KEY] = wanted.dead_letters.name
    if wanted.maximum_redeliveries is not None:
        arguments[_LIMIT] = wanted.maximum_redeliveries
    return arguments
