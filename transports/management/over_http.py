"""RabbitMQ's queues by its HTTP API, for a session whose protocol declares none.

The API blocks, so each question is asked in a thread of its own, which ends with the answer or at its own time limit,
also where nobody waits for it any more: so a flow of either shell can wait, be interrupted, and notice that its
connection is lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar, cast

from redelivery.model.destinations import Queue
from redelivery.model.errors import (
    ConnectError,
    InvalidDestinationError,
    JMSError,
    ProtocolError,
    RequestTimeoutError,
    SecurityError,
)
from redelivery.transports.delivery import ReturnLimit
from redelivery.transports.dialects.detect import limits
from redelivery.transports.finding import return_limit
from redelivery.transports.flows import Flow, Pending, Waiter
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.declaring import Declaration, Queues
from redelivery.transports.management.rabbitmq import OtherwiseError, RabbitApi
from redelivery.transports.management.x_arguments import ArgumentQueues, arguments_of
from redelivery.transports.wire.answers import finish

log = logging.getLogger(__name__)
T = TypeVar("T")
_POLICY: Final = "effective_policy_definition"
_DIALECT: Final = "rabbitmq"
_LIMITED_SINCE: Final = 4  # a queue that counts has a limit, whether it was declared with one or not


class HttpQueues(ArgumentQueues):
    """See `Queues`."""

    def __init__(self, address: ManagementAddress, waiter: Waiter, *, limited: bool) -> None:
        super().__init__(limited=limited)
        self._api = RabbitApi(address)
        self._waiter = waiter

    def exists(self, queue: Queue) -> Flow[bool]:
        """See `Queues.exists`."""
        return (yield from threaded(lambda: self._api.queue(queue.name), self._waiter)) is not None

    def make(self, wanted: Declaration) -> Flow[bool]:
        """See `Queues.make`."""
        return (yield from threaded(lambda: self._declare(wanted), self._waiter))

    def remove(self, queue: Queue) -> Flow[int | None]:
        """See `Queues.remove`; the number of messages that this API knows is some seconds old."""
        yield from threaded(lambda: self._delete(queue), self._waiter)
        return None

    def _declare(self, wanted: Declaration) -> bool:
        try:
            return self._api.declare_queue(wanted.queue.name, arguments=arguments_of(wanted))
        except OtherwiseError as error:
            raise InvalidDestinationError(str(error)) from error
        except JMSError as error:
            if type(error) is not JMSError:
                raise
            raise InvalidDestinationError(str(error)) from error

    def _delete(self, queue: Queue) -> None:
        if self._api.queue(queue.name) is None:
            raise InvalidDestinationError(f"deleting {queue}: there is no such queue")
        self._api.delete_queue(queue.name)


def queues_over_http(dialect: str, version: str, address: ManagementAddress | None, waiter: Waiter) -> Queues | None:
    """The queues of a broker that can be declared so; None: of another one, or its management is not named."""
    if address is None or dialect != _DIALECT:
        return None
    major = version.partition(".")[0]
    return HttpQueues(address, waiter, limited=major.isdecimal() and int(major) >= _LIMITED_SINCE)


def limit_over_http(
    supposed: ReturnLimit, dialect: str, address: ManagementAddress, queue: Queue, waiter: Waiter
) -> Flow[ReturnLimit | None]:
    """The queue's limit for what goes back to it too often, policies and all; ``supposed`` where nothing answers."""
    names = limits(dialect)
    if names is None:
        return supposed
    try:
        found = yield from threaded(lambda: RabbitApi(address).queue(queue.name), waiter)
    except (ConnectError, ProtocolError, RequestTimeoutError, SecurityError) as error:
        log.warning("%s: its policy is not known: %s", queue, error)
        return supposed
    if found is None or found.get("type") != names.kind:
        return None
    # of a new queue, or a new policy, it is not known for some seconds; and where there is none, it may be no map
    policy = found.get(_POLICY, None)
    return return_limit(names, found.get("arguments") or {}, {} if policy == [] else policy)


def threaded(work: Callable[[], T], waiter: Waiter) -> Flow[T]:
    """Run ``work`` on a thread of its own: its result, or the JMSError that it raises."""
    pending = Pending(waiter)

    def run() -> None:
        try:
            finish(pending, None, work())
        except JMSError as error:
            finish(pending, error)

    threading.Thread(target=run, name="redelivery-management", daemon=True).start()
    yield pending
    if pending.error is not None:
        raise pending.error
    return cast(T, pending.value)
