"""Finding a destination before it is used, where its name alone would not do, and what is known of it then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from redelivery.model.destinations import Destination
from redelivery.transports.delivery import ReturnLimit
from redelivery.transports.dialects.amqp import ReturnLimits
from redelivery.transports.flows import Flow

_POLICY: Final = "a policy may say otherwise"
_USUAL: Final = f"the limit is the usual one, and {_POLICY}"
_DELETES: Final = "the broker deletes it"
_ARGUMENTS: Final = f"by the queue's arguments; {_POLICY}"


class Finder(Protocol):
    """Of one connection."""

    def must_find(self, destination: Destination | None) -> bool:
        """Whether nothing is known of it yet, and something must be."""

    def find(self, destination: Destination) -> Flow[None]:
        """Find it.

        Raises:
            ConnectionLostError, RequestTimeoutError: the broker does not answer.
        """

    def forget(self, destination: Destination) -> None:
        """What was found of it is not so any more."""


def found(finder: Finder | None, destination: Destination | None) -> Flow[None]:
    """Done when it is found, where it must be. Raises as `Finder.find`."""
    if finder is not None and destination is not None and finder.must_find(destination):
        yield from finder.find(destination)


def return_limit(
    names: ReturnLimits, arguments: Mapping[str, Any], policy: Mapping[str, Any] | None = None
) -> ReturnLimit | None:
    """Of a queue of the kind that counts, by its arguments and its policy; None: it gives nothing up.

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
    """Of a queue of which nothing is known but how it was refused to be made with other arguments; empty: it was not.

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
