"""Queues of addresses that have other names, on a broker where an address is no queue.

Artemis puts what is sent to an address into the queues that are bound to it. Over STOMP a SEND that says ANYCAST makes
a queue of the address' own name, whatever queues there are, and from then on that one gets a part of the messages. One
that does not say it reaches the queues that are there; where there are none, it is lost. So the broker's management is
asked first, on a connection of its own, since a refusal ends it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    ConnectError,
    ConnectionLostError,
    InvalidDestinationError,
    RequestTimeoutError,
    SecurityError,
)
from redelivery.transports.dialects.dialect import AddressQuestion, StompDialect
from redelivery.transports.finding import QUALIFIED
from redelivery.transports.seam import Flow
from redelivery.transports.stomp.beside import Login, answers
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.names import QueueRoute
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_ANYCAST: Final = "ANYCAST"
_MOST: Final = 100  # queues of an address, or of a name, that are looked at
_FRESH: Final = 30.0  # seconds after which an address whose queues have other names is asked for again
_WHAT: Final = ("queues of the address", "queues of the name", "the address")


@dataclass(frozen=True, slots=True)
class BoundTo:
    """A queue as the management lists it."""

    name: str
    address: str
    anycast: bool
    temporary: bool


class AddressFinder:
    """Finds the queues behind names, for one connection.

    Args:
        log_in: opens a further connection.
        dialect: the broker's.
        timeout: seconds that its answer may take.

    Attributes:
        others: see `QueueFinder`; there are none.
        routes: where the name alone would be wrong, by name.
    """

    def __init__(self, log_in: Callable[[], Flow[Login]], dialect: StompDialect, timeout: float) -> None:
        assert dialect.addresses is not None, "its table says how"
        self.others: dict[str, str] = {}
        self.routes: dict[str, QueueRoute] = {}
        self._log_in = log_in
        self._dialect = dialect
        self._question: AddressQuestion = dialect.addresses
        self._timeout = timeout
        self._known: dict[str, float] = {}  # name -> until when, monotonic
        self._refused: str | None = None

    def must_find(self, destination: Destination | None) -> bool:
        """Check whether it is a queue of which nothing is known, or what is known may have changed."""
        if type(destination) is not Queue or destination.is_pattern:
            return False
        until = self._known.get(destination.name)
        changes = destination.name in self.routes or not destination.declare
        return until is None or (changes and until < monotonic())

    def forget(self, destination: Destination) -> None:
        """See `Finder.forget`."""
        self._known.pop(destination.name, None)
        self.routes.pop(destination.name, None)

    def find(self, destination: Destination) -> Flow[None]:
        """Ask for the queues of an address of this name, and for a queue of this name.

        Raises:
            InvalidDestinationError: it is not there, and not to be made.
            SecurityError: it is not to be made, and the management does not say whether it is there.
            ConnectionLostError, RequestTimeoutError: the broker does not answer.
        """
        name, declares = destination.name, not isinstance(destination, Queue) or destination.declare
        if self._refused is None:
            try:
                on, named, made = yield from self._ask(name)
            except SecurityError as error:
                self._refuse(str(error))
            else:
                route, there = route_to(name, on, named, self._dialect, made=made)
                if not there and not declares:
                    raise InvalidDestinationError(
                        f"{destination}: there is no such queue, and it is not to be made (declare=False)"
                    )
                self._keep(name, route)
                return
        if not declares:
            raise SecurityError(
                f"{destination}: it is not to be made, and only who may send to {self._question.node} can look whether "
                f"it is there: {self._refused}"
            )
        self._keep(name, QueueRoute(name, (), name) if QUALIFIED in name else None)

    def _keep(self, name: str, route: QueueRoute | None) -> None:
        self._known[name] = monotonic() + _FRESH
        self.routes.pop(name, None)
        if route is not None:
            self.routes[name] = route

    def _refuse(self, reason: str) -> None:
        self._refused = reason
        log.warning(
            "the broker does not say which queues an address has: what is sent over STOMP to an address whose queues "
            "have other names makes one more queue, of the address' own name, which gets a part of the messages: let "
            "this user send to %s (permission `manage`), or name such queues address::queue (%s)",
            self._question.node,
            reason,
        )

    def _ask(self, name: str) -> Flow[tuple[list[BoundTo], list[BoundTo], bool]]:
        """Raises SecurityError: there is no management to ask, or not for this user."""
        try:
            login = yield from self._log_in()
        except ConnectError as error:
            raise ConnectionLostError(f"looking for {name}: {error}") from error
        asked = _Asked()  # the address of the answers is everybody's
        question = self._frames(name, asked.number, login[1].version)
        try:
            frames = yield from answers(login, question, asked.is_answered, monotonic() + self._timeout)
        except TimeoutError:
            raise RequestTimeoutError(
                f"looking for {name}: the broker did not answer within {self._timeout:g} s"
            ) from None
        except ConnectionLostError as error:
            raise ConnectionLostError(f"looking for {name}: {error}") from error
        finally:
            login[0].close()
        rows = {what: self._rows(frame) for what, frame in asked.of(frames).items()}
        on, named, address = (rows[what] for what in _WHAT)
        made = any(each.get("autoCreated") == "false" for each in address)
        return [*_bound(on)], [*_bound(named)], made

    def _frames(self, name: str, number: str, version: str) -> bytes:
        question = self._question
        address, _, queue = name.rpartition(QUALIFIED)
        subscribe = [("destination", question.answers), ("id", "redelivery"), ("ack", "auto"), *question.consume]
        frames = [encode("SUBSCRIBE", subscribe, version=version)]
        address = address or name
        asked = (
            ("listQueues", "address", address),
            ("listQueues", "name", queue),
            ("listAddresses", "name", address),
        )
        for what, (operation, field, value) in zip(_WHAT, asked, strict=True):
            wanted = {"field": field, "operation": "EQUALS", "value": value, "sortField": "name", "sortOrder": "asc"}
            headers = [("destination", question.node), ("reply-to", question.reply_to)]
            headers += [("correlation-id", number + what), *question.headers, (question.operation, operation)]
            frames.append(encode("SEND", headers, json.dumps([json.dumps(wanted), 1, _MOST]).encode(), version=version))
        return b"".join(frames)

    def _rows(self, frame: Frame) -> list[Mapping[str, Any]]:
        if frame.command == "ERROR":
            raise SecurityError(str(broker_error(frame)))
        if frame.headers.get(self._question.succeeded) != "true":
            raise SecurityError(frame.body.decode("utf-8", "replace")[:200])
        try:
            rows: list[Mapping[str, Any]] = json.loads(json.loads(frame.body)[0])["data"]
        except (ValueError, LookupError, TypeError) as error:
            raise SecurityError(f"its management answers what cannot be read: {error!r}") from error
        return rows


class _Asked:
    """The questions of one look."""

    def __init__(self) -> None:
        self.number = uuid4().hex

    def of(self, frames: list[Frame]) -> dict[str, Frame]:
        """The answer to each, by what was asked; an ERROR answers all."""
        refused = next((each for each in frames if each.command == "ERROR"), None)
        if refused is not None:
            return dict.fromkeys(_WHAT, refused)
        said = {each.headers.get("correlation-id", ""): each for each in frames}
        return {what: said[self.number + what] for what in _WHAT if self.number + what in said}

    def is_answered(self, frames: list[Frame]) -> bool:
        """Check whether that is all."""
        return len(self.of(frames)) == len(_WHAT)


def _bound(rows: list[Mapping[str, Any]]) -> Iterator[BoundTo]:
    for each in rows:
        name, address = str(each.get("name", "")), str(each.get("address", ""))
        yield BoundTo(name, address, each.get("routingType") == _ANYCAST, each.get("temporary") == "true")


def route_to(
    name: str, on: list[BoundTo], named: list[BoundTo], dialect: StompDialect, *, made: bool
) -> tuple[QueueRoute | None, bool]:
    """Return the way to a queue's name, and whether a queue is there.

    No way: by the name alone, as ANYCAST, which makes the queue where it is not there.

    Args:
        name: as the application says it.
        on: the queues of the address of that name.
        named: those of the queue's name.
        dialect: the broker's.
        made: somebody has made the address, so that its MULTICAST queues are no mere subscriptions.
    """
    kinds = {each.anycast for each in on}
    if QUALIFIED in name:
        address = name.rpartition(QUALIFIED)[0]
        if any(each.address == address for each in named):
            return QueueRoute(name, (), name), True
        return (QueueRoute(name, dialect.send_to_topic, name) if kinds == {False} else None), False
    if own := next((each for each in named if each.address == name), None):
        return (None if own.anycast else QueueRoute(name, (), f"{name}{QUALIFIED}{name}")), True
    if named:
        there = f"{named[0].address}{QUALIFIED}{name}"
        return QueueRoute(there, (), there), True
    anycast = [each.name for each in on if each.anycast]
    if not anycast:
        bound = [each.name for each in on if not each.temporary]
        return (_several(name, bound, "MULTICAST") if bound and made else None), bool(bound) and made
    if anycast[1:]:
        return _several(name, anycast, _ANYCAST), True
    only = f"{name}{QUALIFIED}{anycast[0]}"
    return QueueRoute(only if False in kinds else name, (), only), True  # a topic's subscriptions may be beside it


def _several(name: str, queues: list[str], kind: str) -> QueueRoute:
    named = ", ".join(f"{name}{QUALIFIED}{each}" for each in sorted(queues)[:5])
    return QueueRoute(
        name,
        (),
        None,
        f"queue://{name}: it is an address of the broker's, whose {kind} queues have other names, and a consumer of "
        f"this name would make one more: consume one of them: {named}",
    )
