"""Arguments of calls: the keywords that several have, written once; what other clients call them; and checks.

What would have no effect, or another than was meant, is refused.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Final, TypedDict

from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.content.headers import SYNONYMS
from redelivery.model.destinations import Destination, Queue, SubscriptionName, TemporaryTopic, Topic, check_spelling
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, InvalidDestinationError, UnsupportedError
from redelivery.model.selectors.selector import Selector
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Peer

_USUAL = 1e6
_LONGEST = threading.TIMEOUT_MAX / 2  # more than a hundred years: what a wait can take
_NO_DURATION = 1e300

CONNECTION_SYNONYMS: Final = {
    "user": "username",
    "login": "username",
    "passwd": "password",
    "passcode": "password",
    "virtual_host": "vhost",
    "ssl": "tls",
    "ssl_context": "tls",
    "timeout": "connect_timeout",
    "heartbeats": "heartbeat",
    "policy": "redelivery_policy",
    "dlq": "dead_letter_strategy",
    "config": "policies",
    "on_error": "exception_listener",
    "management_url": "management",
    "app": "application",
    "application_name": "application",
}
"""What other clients call an option -> its name here."""


class ConsumerKeywords(TypedDict, total=False):
    """The keywords of a consumer beside its destination and the name of its subscription.

    selector: JMS's condition on headers and properties, judged by the broker.
    no_local: a topic's messages of this connection are not wanted; of a durable subscription those of any connection
        of its client id. A shared one cannot have it.
    prefetch: how many unacknowledged messages the broker may push; None is the connection's policy.
    redelivery_policy: instead of the connection's for this destination.
    bodies: over STOMP, where senders and broker do not say it right: "text" or "bytes", which all are taken for.
    """

    selector: str | None
    no_local: bool
    prefetch: int | None
    redelivery_policy: RedeliveryPolicy | None
    bodies: str


CONSUMER_DEFAULTS: Final[ConsumerKeywords] = {
    "selector": None,
    "no_local": False,
    "prefetch": None,
    "redelivery_policy": None,
    "bodies": "auto",
}
CONSUMER_SYNONYMS: Final = {
    "message_selector": "selector",
    "filter": "selector",
    "window": "prefetch",
    "policy": "redelivery_policy",
}
"""What other clients call a keyword -> its name here."""


class ProducerKeywords(TypedDict, total=False):
    """The keywords of a producer, which count where a send does not say otherwise.

    persistent: whether the broker keeps the messages through a restart.
    priority: 0 to 9.
    ttl: seconds until they expire; None or 0: never.
    delivery_delay: seconds before they may be delivered.
    """

    persistent: bool
    priority: int
    ttl: float | timedelta | None
    delivery_delay: float | timedelta | None


PRODUCER_DEFAULTS: Final[ProducerKeywords] = {"persistent": True, "priority": 4, "ttl": None, "delivery_delay": None}
PRODUCER_SYNONYMS: Final = {other: name for other, name in SYNONYMS.items() if name in PRODUCER_DEFAULTS}


def check_selector(selector: object) -> Selector | None:
    """The selector as it was read; None where there is none, or nothing but spaces in it.

    Raises:
        ConfigError: it is neither a str nor None.
        InvalidSelectorError: it does not follow JMS's grammar (JMS 3.1 §3.8.1); the error shows where.
    """
    if selector is not None and not isinstance(selector, str):
        raise ConfigError(f"selector must be a str, not a {type(selector).__name__}")
    return Selector(selector) if selector and not selector.isspace() else None


def check_evaluates(peer: Peer | ConnectionMetaData, selector: Selector | None) -> None:
    """Raise UnsupportedError where the broker evaluates no selectors, or would be busy with this one for hours."""
    can = peer.capabilities
    if selector is None:
        return
    if not can.selectors:
        raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no selectors")
    if can.most_wildcards and selector.wildcards > can.most_wildcards:
        raise UnsupportedError(
            f"a pattern of LIKE in the selector has {selector.wildcards} wildcards %: {peer.provider_name} tries all "
            f"ways to spread what is between them, for hours; use at most {can.most_wildcards}"
        )


def check_no_local(target: Destination, no_local: object) -> None:
    """Raise ConfigError for a queue, whose messages each go to one consumer, whatever sent them (JMS 3.1, §8.3.1)."""
    if no_local and isinstance(target, Queue):
        raise ConfigError(f"no_local=True has no effect on {target}: it is for topics")


def check_subscription(topic: Destination, named: SubscriptionName, no_local: object) -> None:
    """Raise where there can be no such subscription.

    Raises:
        InvalidDestinationError: of a queue; or a durable one of a temporary topic, which goes with its connection.
        ConfigError: the name is not a str, or empty, or has a control character; or a shared one is no_local.
    """
    if not isinstance(topic, Topic):
        raise InvalidDestinationError(
            f"{named} needs a topic, and {topic} is none: write 'topic://{topic.name}' or session.topic({topic.name!r})"
        )
    if named.durable and isinstance(topic, TemporaryTopic):
        raise InvalidDestinationError(f"{named}: {topic} is temporary, so it cannot be durable")
    name = named.name
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable():
        raise ConfigError(
            f"{repr(name)[:40]} is not a name of a subscription: pass a str without control characters and outer spaces"
        )
    if named.shared and no_local:
        raise ConfigError(f"no_local=True is not for {named}, which consumers of several connections may have")


def check_cause(action: str, cause: object) -> None:
    """Raise ConfigError where the cause of a rollback is not an exception."""
    if cause is not None and not isinstance(cause, BaseException):
        right = f"ValueError({cause!r})" if isinstance(cause, str) else "error"
        raise ConfigError(
            f"{action}: the cause must be an exception, not a {type(cause).__name__}: write {action}(cause={right})"
        )


def consumer_options(wished: Destination | str) -> tuple[Destination | str, bool]:
    """A destination without the options of a consumer that ActiveMQ writes behind it, and whether it is exclusive.

    ``orders?consumer.exclusive=true`` is the one that there is no argument for. A ``?`` that no option follows belongs
    to the name. Raises ConfigError: another option, or a value that is neither true nor false; or it is a topic's.
    """
    text = wished.name if isinstance(wished, Destination) else wished
    if not isinstance(text, str) or ("?consumer." not in text and "&consumer." not in text):
        return wished, False
    name, _, options = text.partition("?")
    exclusive, declare = False, ""
    for option in options.split("&"):
        key, _, value = option.partition("=")
        if key == "declare":
            declare = f"?{option}"
            continue
        if key != "consumer.exclusive" or value not in ("true", "false"):
            raise ConfigError(
                f"{text!r}: {option!r} is not an option of a consumer here: write ?consumer.exclusive=true, and the "
                "others as arguments (prefetch=, selector=, no_local=)"
            )
        exclusive = value == "true"
    target = type(wished)(name) if isinstance(wished, Destination) else name + declare
    if exclusive and not isinstance(parse_destination(target), Queue):
        raise ConfigError(f"{text!r}: an exclusive consumer is of a queue; each subscriber of a topic gets all anyway")
    return target, exclusive


def plain_name(scheme: str, name: str) -> str:
    """The name of a queue or topic, without a scheme before it that says the same.

    Raises:
        InvalidDestinationError: the scheme says the other kind, or it begins as other clients write destinations.
    """
    if not isinstance(name, str):
        return name  # refused where the destination is made
    other = "topic" if scheme == "queue" else "queue"
    if name.startswith(f"{other}://"):
        raise InvalidDestinationError(f"{name!r} is a {other}: write session.{other}({name.partition('://')[2]!r})")
    name = name.removeprefix(f"{scheme}://")
    check_spelling(name)
    return name


def seconds(name: str, value: float | timedelta) -> float:
    """Seconds, not negative.

    Raises:
        ConfigError: it is neither a finite number >= 0 nor a timedelta; the text names ``name``.
    """
    if value.__class__ is float or value.__class__ is int:  # the usual case, on the path of every receive
        if 0 <= value < _USUAL:
            return value
    elif isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _NO_DURATION:
        raise ConfigError(f"{name}={repr(value)[:40]} is not a duration: pass seconds ≥ 0 or a timedelta")
    return min(float(value), _LONGEST)


def optional_seconds(name: str, value: float | timedelta | None) -> float | None:
    """The same, where None means "without end"."""
    return None if value is None else seconds(name, value)


def check_flag(name: str, value: object) -> None:
    """Raises ConfigError: it is not a bool."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} is neither True nor False")
