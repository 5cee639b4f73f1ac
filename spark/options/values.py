"""From the str of an option to its value; each parser raises a ConfigError that names the option and what it takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from redelivery.client.arguments import check_subscription
from redelivery.client.observing.passports import check_application
from redelivery.model.destinations import Destination, SubscriptionName, Topic, destination
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.model.suggestions import did_you_mean
from redelivery.policies.checks import read_flag, read_whole
from redelivery.policies.connection_url import ConnectionURL, parse_connection_url
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE
from redelivery.spark.log.store.locations import check_location
from redelivery.spark.rows.column_names import COLUMNS
from redelivery.transports.dialects.detect import check_name
from redelivery.transports.failover import is_failover, parse_failover_url

Parser: TypeAlias = Callable[[str, str], Any]

SCHEMES: Final = ("stomp", "stomp+ssl", "amqp", "amqps")
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]*)", re.IGNORECASE | re.ASCII)
_UNITS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_SIZE: Final = re.compile(r"(\d{1,15})\s*(b|[kmg](?:i?b)?|)", re.IGNORECASE | re.ASCII)
_SHIFTS: Final = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30}
_CONVERTER: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_LONGEST_JSON: Final = 100_000  # characters


def string(name: str, value: str) -> str:
    """A str that is not empty."""
    if not value.strip():
        raise ConfigError(f"{name}={value!r} is empty: pass a str, or leave the option out")
    return value


def secret(name: str, value: str) -> str:
    """Any str, which no error shows; it may be empty."""
    if "\0" in value:
        raise ConfigError(f"{name} contains a NUL, which no broker accepts")
    return value


def variable(name: str, value: str) -> str:
    """The name of an environment variable: a password that was typed here by mistake is not shown."""
    if not re.fullmatch(r"[A-Za-z_]\w*", value.strip(), re.ASCII):
        raise ConfigError(f"{name} (not shown) is not the name of an environment variable, such as BROKER_PASSWORD")
    return value.strip()


def flag(name: str, value: str) -> bool:
    """``true`` or ``false``, in any case."""
    return read_flag(name, value.strip())


def whole(minimum: int, maximum: int) -> Parser:
    """Return a parser of integers between two bounds, both included."""
    return lambda name, value: read_whole(name, value.strip(), minimum, maximum)


def choice(*values: str) -> Parser:
    """A parser of one of these words, in any case."""
    by_lower = {each.lower(): each for each in values}

    def parse(name: str, value: str) -> str:
        found = by_lower.get(value.strip().lower())
        if found is None:
            raise ConfigError(f"{name}={value!r}: use {', '.join(values[:-1])} or {values[-1]}")
        return found

    return parse


def duration(minimum: float = 0.0, maximum: float = 366 * 86400.0) -> Parser:
    """A parser of durations, giving seconds: a number is seconds, or has a unit such as ``100 ms`` or ``24h``."""

    def parse(name: str, value: str) -> float:
        found = _DURATION.fullmatch(value.strip())
        unit = _UNITS.get(found[2].lower()) if found else None
        if found is None or unit is None:
            raise ConfigError(
                f"{name}={value!r} is not a duration: use seconds, or a number with ms, s, min, h or d, such as '5 s'"
            )
        seconds = float(found[1]) * unit
        if not minimum <= seconds <= maximum:
            raise ConfigError(f"{name}={value!r} is not a duration of {minimum:g} s to {maximum:g} s")
        return seconds

    return parse


def size(minimum: int, maximum: int) -> Parser:
    """A parser of numbers of bytes: a number is bytes, or has a unit of 1024, such as ``64 MiB`` or ``64m``."""

    def parse(name: str, value: str) -> int:
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            raise ConfigError(
                f"{name}={value!r} is not a size: use bytes, or a number with KiB, MiB or GiB, such as '64 MiB'"
            )
        bytes_ = int(found[1]) << _SHIFTS[found[2].lower()[:1]]
        if not minimum <= bytes_ <= maximum:
            raise ConfigError(f"{name}={value!r} is not a size from {shown_size(minimum)} to {shown_size(maximum)}")
        return bytes_

    return parse


def shown_size(value: int) -> str:
    """A number of bytes as it is written in options."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value and not value % (1 << shift):
            return f"{value >> shift} {unit}"
    return str(value)


def url(name: str, value: str) -> str:
    """A connection URL of brokers that other processes can reach; what the options say may not be said there."""
    try:
        found = brokers(value)
        shown = f"{name}={masked(value)!r}"
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None  # the error shows no password; its traceback would
    for parsed in found:
        if parsed.scheme == "vm":
            raise ConfigError(
                f"{shown}: a vm broker lives inside one process, and Spark's workers are others; use stomp:// or amqp://"
            )
        if parsed.scheme not in SCHEMES:
            raise ConfigError(f"{shown}: the scheme must be one of {', '.join(SCHEMES)}")
        said = (
            (parsed.prefetch, "jms.prefetchPolicy.*", "use the option prefetch"),
            (parsed.client_id, "jms.clientID", "use the option clientId, which is that of a subscription"),
            (
                parsed.non_blocking_redelivery,
                "jms.nonBlockingRedelivery",
                "the source redelivers in order; leave it out",
            ),
        )
        for part, option, advice in said:
            if part is not None:
                raise ConfigError(f"{shown}: {option} has no effect here: {advice}")
    return value


def brokers(value: str) -> tuple[ConnectionURL, ...]:
    """The brokers of a URL: several where it is a ``failover:`` one. Raises ConfigError: it has not the form of one."""
    urls = parse_failover_url(value).urls if is_failover(value) else (value,)
    return tuple(map(parse_connection_url, urls))


def masked(value: str) -> str:
    """A URL, without passwords."""
    return parse_failover_url(value).masked if is_failover(value) else parse_connection_url(value).masked


def place(name: str, value: str) -> Destination:
    """A queue or topic; a str without a scheme is a queue."""
    try:
        return destination(value.strip())
    except InvalidDestinationError as error:
        raise ConfigError(f"{name}: {error}") from None


def source(name: str, value: str) -> Destination:
    """One queue or topic, or a pattern, to consume from."""
    found = place(name, value)
    if "," in found.name:
        raise ConfigError(
            f"{name}={value!r} has a comma: for several queues write .option('destinations', {value!r}), which gives "
            "each row the queue that its message was on"
        )
    return found


def queue(name: str, value: str) -> Destination:
    """A queue, to look at."""
    found = source(name, value)
    if found.scheme != "queue":
        raise ConfigError(f"{name}={value!r}: a topic holds nothing that can be looked at; read it with a stream")
    return found


def _several(one: Callable[[str, str], Destination]) -> Callable[[str, str], tuple[Destination, ...]]:
    """A parser of several, with commas between them."""

    def parse(name: str, value: str) -> tuple[Destination, ...]:
        found: list[Destination] = []
        for each in value.split(","):
            if not each.strip():
                raise ConfigError(f"{name}={value!r} has an empty name: write names with one comma between two")
            place = one(name, each)
            if place in found:
                raise ConfigError(f"{name}={value!r} has {place} twice: leave one of them out")
            found.append(place)
        return tuple(found)

    return parse


sources: Final = _several(source)
queues: Final = _several(queue)


def subscription(name: str, value: str) -> str:
    """The name of a subscription."""
    try:
        check_subscription(Topic("any"), SubscriptionName(value, durable=True, shared=False), no_local=False)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    return value


def client_id(name: str, value: str) -> str:
    """A client id, as brokers write them into the names of queues."""
    if not value or value != value.strip() or not value.isprintable():
        raise ConfigError(f"{name}={value!r}: use a str without control characters and outer spaces")
    return value


def columns(name: str, value: str) -> tuple[str, ...]:
    """Names of columns, with commas between them."""
    found: list[str] = []
    for each in map(str.strip, value.split(",")):
        if each not in COLUMNS:
            raise ConfigError(
                f"{name}={value!r}: there is no column {each!r}{did_you_mean(each, COLUMNS)}; there are "
                f"{', '.join(COLUMNS)}"
            )
        if each in found:
            raise ConfigError(f"{name}={value!r} has {each} twice: leave one of them out")
        found.append(each)
    return tuple(found)


def target(name: str, value: str) -> Destination:
    """A queue or topic that can be sent to."""
    found = place(name, value)
    if found.is_pattern:
        raise ConfigError(f"{name}={value!r} is a pattern: it can be consumed from, not sent to")
    return found


def queue_name(name: str, value: str) -> str:
    """The name of a queue that can be sent to."""
    found = place(name, value)
    if found.scheme != "queue" or found.is_pattern:
        raise ConfigError(f"{name}={value!r}: use the name of one queue, such as {DEFAULT_DEAD_LETTER_QUEUE!r}")
    return found.name


def dialect(name: str, value: str) -> str:
    """``auto`` or the name of a dialect."""
    try:
        check_name(value.strip().lower())
    except ConfigError as error:
        raise ConfigError(str(error).replace("dialect", name, 1)) from None
    return value.strip().lower()


def application(name: str, value: str) -> str:
    """As `redelivery.connect` takes it."""
    try:
        check_application(value)
    except ConfigError as error:
        raise ConfigError(str(error).replace("application", name, 1)) from None
    return value


def location(name: str, value: str) -> str:  # noqa: ARG001  # there is one such option
    """An absolute path, or a URL of a file system that is known to be durable; see `check_location`."""
    return check_location(value.strip())


def json_object(name: str, value: str) -> dict[str, Any]:
    """A JSON object. Its values may be secret, so no error shows them."""
    try:
        found = json.loads(value) if len(value) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f'{name} (not shown: it may hold secrets): use a JSON object such as {{"anon": true}}')
    return found


def converter(name: str, value: str) -> str:
    """``module:function``; it is imported where it is used."""
    found = value.strip()
    if not _CONVERTER.fullmatch(found):
        raise ConfigError(
            f"{name}={value!r} does not name a function: use 'module:function', such as 'shop.orders:decode'"
        )
    return found
