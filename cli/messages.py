"""``redelivery send``, ``receive``, ``browse`` and ``tail``: messages by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import typer

from redelivery import Connection, Message
from redelivery.cli.parts.broker import Broker, with_broker
from redelivery.cli.parts.looking import looking
from redelivery.cli.parts.shown import CUT, as_json, complain, visible
from redelivery.cli.parts.target import AsJson, NothingError, Queue, Where, nothing_in
from redelivery.model.destinations import Destination, Topic
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import consumer_of

_SUSPICIOUS: Final = 3600  # seconds
_SHOWN: Final = 100  # characters of a body in a line
_REMEMBERED: Final = 100_000  # messages that tail has shown


@with_broker("send")
def send(
    queue: Queue,
    body: Annotated[
        list[str] | None, typer.Argument(metavar="[BODY]...", help="A message each; without one, standard input.")
    ] = None,
    *,
    broker: Broker,
    lines: Annotated[bool, typer.Option("--lines", help="Each line of standard input is a message.")] = False,
    property: Annotated[list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="A str.")] = None,
    type: Annotated[str | None, typer.Option("--type", help="JMSType.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="JMSCorrelationID.")] = None,
    reply_to: Annotated[str | None, typer.Option(help="Where a reply is expected.")] = None,
    group_id: Annotated[str | None, typer.Option(help="JMSXGroupID.")] = None,
    priority: Annotated[int, typer.Option(help="0 to 9.")] = 4,
    ttl: Annotated[float | None, typer.Option(help="Seconds until it expires.")] = None,
    delay: Annotated[float | None, typer.Option(help="Seconds before it is delivered.")] = None,
    non_persistent: Annotated[bool, typer.Option("--non-persistent", help="It may be lost with the broker.")] = False,
    json_: AsJson = False,
) -> None:
    """Send text messages. It ends when the broker has them all."""
    options: dict[str, Any] = {
        "properties": dict(map(_pair, property or ())) or None,
        "type": type,
        "correlation_id": correlation_id,
        "reply_to": reply_to,
        "group_id": group_id,
        "ttl": _duration("--ttl", ttl),
        "delivery_delay": _duration("--delay", delay),
    }
    given = {name: value for name, value in options.items() if value is not None}
    with broker.connect() as connection, connection.session() as session:
        producer, sent = session.producer(queue), 0
        for each in body or _input(lines=lines):
            message = producer.send(each, priority=priority, persistent=not non_persistent, **given)
            sent += 1
            if json_:
                print(as_json(to_record(message)), flush=True)
    if not json_:
        print(f"{sent} sent to {visible(parse_destination(queue))}")


@with_broker("receive")
def receive(
    queue: Queue,
    *,
    broker: Broker,
    count: Annotated[int, typer.Option(min=1, help="How many at most.")] = 1,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for each.")] = 5.0,
    where: Where = None,
    json_: AsJson = False,
) -> None:
    """Receive messages, and print their bodies. Each is acknowledged when it has been printed.

    A terminal shows control characters as \\x1b; a file or a pipe gets each body as it is. Exit code 1 where none came.
    """
    received = 0
    with broker.connect() as connection, connection.session("client") as session:
        consumer = consumer_of(session, parse_destination(queue), selector=where, prefetch=1)
        while received < count and (message := consumer.receive(timeout=timeout)) is not None:
            _print(message, json_)
            message.acknowledge()
            received += 1
    if not received:
        raise NothingError(f"nothing came within {timeout:g} s")


@with_broker("browse")
def browse(
    queue: Queue,
    *,
    broker: Broker,
    limit: Annotated[int | None, typer.Option(min=1, help="How many at most.")] = None,
    where: Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, whatever a look costs.")] = False,
    json_: AsJson = False,
) -> None:
    """Print what a queue holds, a line each, and take nothing. Exit code 1 where nothing is there."""
    shown = 0
    with looking("browse", broker, queue, yes=yes) as connection:
        for message in Selection(parse_destination(queue), where, limit=limit).browse(connection):
            _show(message, json_)
            shown += 1
    if not shown:
        raise nothing_in(parse_destination(queue), where)


@with_broker("tail")
def tail(
    queue: Queue,
    *,
    broker: Broker,
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks at a queue.")] = 1.0,
    where: Where = None,
    json_: AsJson = False,
) -> None:
    """Print messages as they come, until Ctrl-C: those of a topic, or what comes to a queue, of which it takes nothing.

    What is on a queue for a shorter time than the interval may be missed.
    """
    with broker.connect() as connection:
        target = parse_destination(queue)
        for message in _news(connection, target, where, interval):
            _show(message, json_)


def _news(connection: Connection, target: Destination, where: str | None, interval: float) -> Iterator[Message]:
    with connection.session() as session:
        if isinstance(target, Topic):
            yield from session.consumer(target, selector=where)
            return
        known: dict[object, None] = {}
        while True:
            with session.browser(target, selector=where) as browser:
                for message in browser:
                    if message.message_id not in known:
                        known[message.message_id] = None
                        yield message
            while len(known) > _REMEMBERED:
                del known[next(iter(known))]
            time.sleep(interval)


def _input(*, lines: bool) -> Iterator[str]:
    if lines:
        yield from (line.rstrip("\n") for line in sys.stdin)
    else:
        yield sys.stdin.read()


def _duration(name: str, seconds: float | None) -> timedelta | None:
    """Seconds; of so many that milliseconds were probably meant, this is said."""
    if seconds is None:
        return None
    if seconds > _SUSPICIOUS:
        complain("send", f"{name} {seconds:g} is {seconds / 3600:.3g} hours, as it is in seconds")
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise ConfigError(f"{name} {seconds:g} is not a duration: give seconds") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"--property {text!r}: write NAME=VALUE")
    return name, value


def _print(message: Message, json_: bool) -> None:
    """Print the body, as it is where that is text or bytes and no terminal shows it."""
    if json_:
        print(as_json(to_record(message)), flush=True)
        return
    try:
        body: Any = message.body
    except MessageFormatError as error:
        complain("receive", f"{message.message_id}: {error}")
        return
    if sys.stdout.isatty() and isinstance(body, bytes | str):
        text = body if isinstance(body, str) else body.decode("utf-8", "backslashreplace")
        print(visible(text, lines=True), flush=True)
    elif isinstance(body, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(body + b"\n")
        sys.stdout.buffer.flush()
    elif isinstance(body, str):
        print(body, flush=True)
    else:
        print(as_json(to_record(message)["body"]), flush=True)


def _show(message: Message, json_: bool) -> None:
    if json_:
        print(as_json(to_record(message)), flush=True)
        return
    print(f"{stamp(message.timestamp)}  {visible(message.message_id or '-', CUT)}  {_body(message)}", flush=True)


def stamp(at: datetime | None) -> str:
    """A time, to the second."""
    return "-" if at is None else at.isoformat(sep=" ", timespec="seconds")


def _body(message: Message) -> str:
    """The body in a line, cut."""
    record = to_record(message)
    if "unreadable" in record:
        return f"(unreadable: {visible(record['unreadable'], CUT)})"
    body = record["body"]
    text = " ".join(body[: 4 * _SHOWN].split()) if isinstance(body, str) else as_json(body)
    return visible(text, _SHOWN)
