"""Finding a destination before it is used, where its name alone would not do, and what is known of it then."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import unquote

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import UnsupportedError
from redelivery.transports.delivery import ReturnLimit
from redelivery.transports.dialects.amqp import ReturnLimits, Spellings
from redelivery.transports.flows import Flow

QUALIFIED: Final = "::"  # between an address and a queue of it
_POLICY: Final = "a policy may say otherwise, which connect(…, management=…) would ask for"
_USUAL: Final = f"the limit is the usual one, and {_POLICY}"
log = logging.getLogger(__name__)
_DELETES: Final = "the broker deletes it"
_ARGUMENTS: Final = f"by the queue's arguments; {_POLICY}"


class Finder(Protocol):
    """Finds what destinations are, for one connection."""

    def must_find(self, destination: Destination | None) -> bool:
        """Check whether nothing is known of the destination yet, and something must be."""

    def find(self, destination: Destination) -> Flow[None]:
        """Find it. Raises ConnectionLostError, RequestTimeoutError: the broker does not answer."""

    def forget(self, destination: Destination) -> None:
        """Forget what was found of the destination, as it is not so any more."""


class Meaning:
    """The meaning of destinations on one connection. ``declares``: False: no queue is made, whatever its destination
    says.

    ``spellings``: the broker's; None: a name is a name.
    """

    def __init__(self, spellings: Spellings | None = None, *, declares: bool = True) -> None:
        self._spellings = spellings
        self._declares = declares

    def of(self, destination: Destination) -> Destination:
        """The meaning of a destination: itself, a queue that is not to be made, or the topic of an exchange's name."""
        name, spellings = destination.name, self._spellings
        if type(destination) is not Queue:
            return destination
        if spellings is not None and name.startswith("/"):
            for prefix in spellings.queues:
                if name.startswith(prefix) and len(name) > len(prefix):
                    return Queue(_decoded(name, prefix, spellings), declare=False)
            if exchange_of(destination, spellings) is not None:
                return Topic(name)
        return destination if self._declares or not destination.declare else Queue(name, declare=False)


def exchange_of(destination: Destination, spellings: Spellings | None) -> tuple[str, str] | None:
    """The exchange that it means, and the routing key, or nothing; None: it means none."""
    name = destination.name
    if spellings is not None and name.startswith("/"):
        for prefix in spellings.exchanges:
            exchange, _, key = name[len(prefix) :].partition("/")
            if name.startswith(prefix) and exchange:
                return _decoded(exchange, "", spellings, prefix), _decoded(key, "", spellings, prefix)
    return None


def _decoded(name: str, prefix: str, spellings: Spellings, behind: str = "") -> str:
    rest = name[len(prefix) :]
    return unquote(rest) if (behind or prefix) in spellings.encoded else rest.replace("%2F", "/")


def refuse_to_leave(destination: Destination) -> UnsupportedError:
    """The error of a queue that is not to be made, where the broker makes it."""
    return UnsupportedError(
        f"{destination}: declare=False: this broker itself makes queues that are used, or not, as it is set up: turn "
        "that off in its configuration, and leave declare out"
    )


def warn_of_stream(destination: Destination) -> None:
    """Log what a consumer of a stream does not get."""
    log.warning(
        "%s is a stream: a consumer gets what is sent while it is attached and nothing of before, misses what comes "
        "while its connection is away, and acknowledges nothing; use the broker's own client for streams",
        destination,
    )


def found(finder: Finder | None, destination: Destination | None) -> Flow[None]:
    """Done when it is found, where it must be. Raises as `Finder.find`."""
    if finder is not None and destination is not None and finder.must_find(destination):
        yield from finder.find(destination)


def origin_notes(sent_to: str, source: str, message_id: str | None, *, queue: bool) -> dict[str, str]:
    """Return what Artemis and HornetQ write on a dead letter of their own, without the prefix of their names.

    Their console moves a letter to the queue that is named so, if that is there. ``sent_to``: the address that the
    message was sent to. ``source``: what it was consumed from: a queue, or one with its address. ``queue``: that is a
    queue; of a topic's subscription nobody but the broker names the queue.
    """
    notes = {"ADDRESS": sent_to.partition(QUALIFIED)[0]}
    if queue:
        notes["QUEUE"] = source.rpartition(QUALIFIED)[2]
    if message_id:
        notes["MESSAGE_ID"] = message_id
    return notes


def return_limit(
    names: ReturnLimits, arguments: Mapping[str, Any], policy: Mapping[str, Any] | None = None
) -> ReturnLimit | None:
    """The limit of a queue of the kind that counts, by its arguments and its policy; None: it gives nothing up.

    ``policy``: None where it cannot be seen.
    """
    ruled = {f"x-{name}": value for name, value in (policy or {}).items()}
    limits = [int(each[names.limit]) for each in (arguments, ruled) if names.limit in each]
    # the lower of the two, unless one of them says that there is none
    most = names.usual if not limits else max(limits) if min(limits) < 0 else min(limits)
    if most < 0:
        return None
    exchange, key = ({**ruled, **arguments}.get(each) for each in (names.exchange, names.key))
    unsure = "" if policy is not None else _ARGUMENTS if limits else _USUAL
    return ReturnLimit(most, _then(exchange, key), unsure)


def supposed_limit(names: ReturnLimits, refusal: str) -> ReturnLimit:
    """The limit of a queue of which only is known how it was refused to be made with other arguments; empty: it was
    not.

    A queue that has an exchange for its dead letters is refused for that, whatever else it has.
    """
    said = re.search(names.exchange_said, refusal)
    if said is not None:
        return ReturnLimit(names.usual, _then(said[1], None), _USUAL)
    if any(each in refusal for each in names.said):
        return ReturnLimit(names.usual, _then(None, None), _USUAL)
    return ReturnLimit(names.usual, f"{_DELETES} unless the queue has a dead-letter exchange", _USUAL)


def _then(exchange: object, key: object) -> str:
    if exchange is None:
        return f"{_DELETES}, as the queue has no dead-letter exchange"
    if exchange == "":
        return "it goes to a queue for dead letters" if key is None else f"it goes to the queue {key!r}"
    return f"it goes to the exchange {exchange!r}" + ("" if key is None else f" with the key {key!r}")
