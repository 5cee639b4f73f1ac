"""Queues of addresses that have other names, on a broker where an address is no queue.

Artemis puts what is sent to an address into the queues that are bound to it. Over STOMP a SEND that says ANYCAST makes
a queue of the address' own name, whatever queues there are, and from then on that one gets a part of the messages. One
that does not say it reaches the queues that are there; where there are none, it is lost. So the broker's management is
asked first, on a connection of its own, since a refusal ends it. Of a user whom it does not answer, the broker's file
says it, where the application has given that; else see `looking`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from redelivery.policies.destinations.bound import BoundTo
from redelivery.transports.dialects.dialect import AddressQuestion, StompDialect
from redelivery.transports.finding import QUALIFIED
from redelivery.transports.management.bound import ANYCAST, FRESH, bound_queues, is_made, listing, queues_of
from redelivery.transports.seam import Flow
from redelivery.transports.stomp.beside import Login, answers
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.names import QueueRoute
from redelivery.transports.stomp.looking import QueueLooks
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_WHAT: Final = ("queues of the address", "queues of the name", "the address", "its settings")
_TRIES: Final = 3  # at a list
_NOT_MADE: Final = {
    False: "it is not to be made (declare=False)",
    True: "the broker makes none there (auto-create-queues, auto-create-addresses): what is sent would be lost",
}
_WITHOUT: Final = "a queue that this user cannot see is neither sent to nor consumed over STOMP"


class AddressFinder:
    """Finds the queues behind names, for one connection.

    Args:
        log_in: opens a further connection.
        dialect: the broker's.
        timeout: seconds that its answer may take.
        made: the queues that the broker's file makes; None: no file was given, or it does not list them.

    Attributes:
        others: see `QueueFinder`; there are none.
        routes: where the name alone would be wrong, by name.
    """

    def __init__(
        self,
        log_in: Callable[[], Flow[Login]],
        dialect: StompDialect,
        timeout: float,
        made: Sequence[BoundTo] | None = None,
    ) -> None:
        assert dialect.addresses is not None, "its table says how"
        self.others: dict[str, str] = {}
        self.routes: dict[str, QueueRoute] = {}
        self._log_in = log_in
        self._dialect = dialect
        self._question: AddressQuestion = dialect.addresses
        self._timeout = timeout
        self._made = made
        self._looks = QueueLooks(log_in, dialect, timeout)
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
                on, named, made, creates, mixed = yield from self._ask(name)
            except SecurityError as error:
                self._refuse(str(error))
            else:
                route, there = route_to(name, on, named, self._dialect, made=made)
                if not there and not (declares and creates):
                    raise InvalidDestinationError(f"{destination}: there is no such queue, and {_NOT_MADE[declares]}")
                self._keep(name, _selecting(route, mixed=mixed))
                return
        route, there = self._listed(name)
        if not there and not declares:
            raise SecurityError(
                f"{destination}: it is not to be made, and only who may send to {self._question.node} can look whether "
                f"it is there: {self._refused}"
            )
        if not there and (self._made is None or QUALIFIED in name):
            route = yield from self._looks.way_to(name)
        self._keep(name, route)

    def _listed(self, name: str) -> tuple[QueueRoute | None, bool]:
        """As `route_to`, by the broker's file."""
        address, _, queue = name.rpartition(QUALIFIED)
        on = [each for each in self._made or () if each.address == (address or name)]
        named = [each for each in self._made or () if each.name == queue]
        route, there = route_to(name, on, named, self._dialect, made=True)
        return _selecting(route, mixed=any(each.anycast for each in on)), there

    def _keep(self, name: str, route: QueueRoute | None) -> None:
        self._known[name] = monotonic() + FRESH
        self.routes.pop(name, None)
        if route is not None:
            self.routes[name] = route

    def _refuse(self, reason: str) -> None:
        self._refused = reason
        log.warning(
            "the broker does not say which queues an address has: %s: let this user send to %s (permission `manage`), "
            "or name queues address::queue (%s)",
            "what is sent over STOMP goes by the file given" if self._made is not None else _WITHOUT,
            self._question.node,
            reason,
        )

    def _ask(self, name: str) -> Flow[tuple[list[BoundTo], list[BoundTo], bool, bool, bool]]:
        """The queues of the address, and of the name; somebody has made the address; queues are made there when used;
        and queues of both kinds may be there.

        Raises:
            SecurityError: there is no management to ask, or not for this user.
        """
        for again in range(_TRIES, 0, -1):
            frames = yield from self._answers(name)
            if again == 1 or all(self._succeeded(each) for each in frames.values()):
                break  # a list fails where a queue in it ends meanwhile
        said = {what: self._said(frame) for what, frame in frames.items()}
        on, named, address, rules = (said[what] for what in _WHAT)
        made = is_made(address.get("data", ()))
        mixed = any(ANYCAST in str(each.get("routingTypes")) for each in address.get("data", ()))
        needed = ("autoCreateQueues",) if address.get("data") else ("autoCreateAddresses", "autoCreateQueues")
        creates = all(rules.get(each) is not False for each in needed)
        return bound_queues(on.get("data", ())), bound_queues(named.get("data", ())), made, creates, mixed

    def _answers(self, name: str) -> Flow[dict[str, Frame]]:
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
        return asked.of(frames)

    def _frames(self, name: str, number: str, version: str) -> bytes:
        question = self._question
        address, _, queue = name.rpartition(QUALIFIED)
        subscribe = [("destination", question.answers), ("id", "redelivery"), ("ack", "auto"), *question.consume]
        frames = [encode("SUBSCRIBE", subscribe, version=version)]
        address = address or name
        asked: tuple[tuple[str, list[object]], ...] = (
            ("listQueues", listing("address", address)),
            ("listQueues", listing("name", queue)),
            ("listAddresses", listing("name", address)),
            ("getAddressSettingsAsJSON", [address]),
        )
        for what, (operation, arguments) in zip(_WHAT, asked, strict=True):
            headers = [("destination", question.node), ("reply-to", question.reply_to)]
            headers += [("correlation-id", number + what), *question.headers, (question.operation, operation)]
            frames.append(encode("SEND", headers, json.dumps(arguments).encode(), version=version))
        return b"".join(frames)

    def _succeeded(self, frame: Frame) -> bool:
        return frame.command == "ERROR" or frame.headers.get(self._question.succeeded) == "true"

    def _said(self, frame: Frame) -> Mapping[str, Any]:
        if frame.command == "ERROR":
            raise SecurityError(str(broker_error(frame)))
        if not self._succeeded(frame):
            raise SecurityError(frame.body.decode("utf-8", "replace")[:200])
        try:
            said: Mapping[str, Any] = json.loads(json.loads(frame.body)[0])
        except (ValueError, LookupError, TypeError) as error:
            raise SecurityError(f"its management answers what cannot be read: {error!r}") from error
        return said


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
    found = queues_of(name, on, named, made=made)
    if not found:
        of_a_topic = QUALIFIED in name and kinds == {False}
        return (_way(BoundTo(name, "", anycast=False), dialect) if of_a_topic else None), False
    first = found[0]
    if first.address != name:  # it is named whole, or its address has another name
        return _way(first, dialect), True
    if first.name == name:
        return (None if first.anycast else _way(first, dialect)), True
    if found[1:] or not first.anycast:
        return _several(name, found), True
    way = _way(first, dialect)
    return (
        way if False in kinds else QueueRoute(name, (), way.source)
    ), True  # a topic's subscriptions may be beside it


def _way(queue: BoundTo, dialect: StompDialect) -> QueueRoute:
    """The way to a queue of a known kind; to say the other one would give its address both kinds."""
    name = f"{queue.address}{QUALIFIED}{queue.name}" if queue.address else queue.name
    if queue.anycast:
        return QueueRoute(name, dialect.send_to_queue, name)
    return QueueRoute(name, dialect.send_to_topic, name, consume=dialect.consume_topic)


def _selecting(route: QueueRoute | None, *, mixed: bool) -> QueueRoute | None:
    """The way, which knows whether a selector is heeded: of a MULTICAST queue where its address is ``mixed``, of both
    kinds.
    """
    return replace(route, selects=mixed) if route is not None and route.consume else route


def _several(name: str, queues: Sequence[BoundTo]) -> QueueRoute:
    named = ", ".join(f"{name}{QUALIFIED}{each}" for each in sorted(each.name for each in queues)[:5])
    kind = ANYCAST if queues[0].anycast else "MULTICAST"
    return QueueRoute(
        name,
        (),
        None,
        f"queue://{name}: it is an address of the broker's, whose {kind} queues "
        f"have other names, and a consumer of this name would make one more: consume one of them: {named}",
    )
