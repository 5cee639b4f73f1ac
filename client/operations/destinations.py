"""Destinations that a session asks for: temporary ones, queues that are declared or deleted; a subscription's end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.operations.attach import check_kind
from redelivery.client.operations.orders import catch_up
from redelivery.client.operations.reattach import await_loss, connected
from redelivery.client.session.state import SessionState
from redelivery.model.destinations import Destination, Queue, TemporaryQueue
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, ConnectionLostError, InvalidDestinationError
from redelivery.transports.management import declaring
from redelivery.transports.management.declaring import NO_LIMIT, Declaration
from redelivery.transports.management.over_http import queues_over_http
from redelivery.transports.seam import NO_ANSWER, Flow, Queues

log = logging.getLogger(CONNECTIONS)
_INT: Final = range(-(1 << 63), 1 << 63)  # what the brokers have for a number


def declaration(
    destination: Destination | str,
    type: str | None,
    arguments: Mapping[str, Any] | None,
    dead_letters: Destination | str | None,
    maximum_redeliveries: int | None,
) -> Declaration:
    """The declaration that the application wishes.

    Raises:
        InvalidDestinationError: it is no queue, or not one alone.
        ConfigError: a keyword or an argument is of a kind that no broker has, or the keywords do not fit together.
    """
    queue = one_queue("declare", destination)
    if type is not None and (not isinstance(type, str) or not type):
        raise ConfigError(f"declare: type must be the broker's word for a kind of queue, not {type!r}")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ConfigError(f"declare: arguments must be a dict of the broker's names and values, not {arguments!r}")
    for name, value in (arguments or {}).items():
        if not isinstance(name, str) or not name:
            raise ConfigError(f"declare: {name!r} in arguments is not a name: the broker's names are str")
        _check_value(name, value)
    letters = None if dead_letters is None else one_queue("declare: dead_letters", dead_letters)
    if letters == queue:
        raise ConfigError(f"declare: {queue} cannot be the queue of its own dead letters")
    most = maximum_redeliveries
    if most is not None:
        if isinstance(most, bool) or not isinstance(most, int) or not NO_LIMIT <= most < 1 << 31:
            raise ConfigError(f"declare: maximum_redeliveries={most!r} must be an integer >= 0, or -1 for no limit")
        if letters is None:
            raise ConfigError(
                "declare: maximum_redeliveries needs dead_letters: beyond it the broker would delete the message; if "
                "that is meant, say it in arguments"
            )
    return Declaration(queue, type, dict(arguments or {}), letters, most)


def one_queue(action: str, destination: Destination | str) -> Queue:
    """A queue that can be declared and deleted: one by its name. Raises InvalidDestinationError."""
    target = parse_destination(destination)
    why = ""
    if not isinstance(target, Queue):
        why = "is a topic, which no one declares: its subscribers make what they need"
    elif isinstance(target, TemporaryQueue):
        why = "is temporary: session.temporary_queue() makes one, and the broker removes it with its connection"
    elif target.is_pattern:
        why = "is a pattern: name each queue"
    elif "," in target.name:
        why = "is a composite destination: name each queue"
    elif "?" in target.name:
        why = "has options, which are a consumer's: name the queue alone"
    if why or not isinstance(target, Queue):
        raise InvalidDestinationError(f"{action}: {target} {why}")
    return target


def _check_value(name: str, value: object) -> None:
    match value:
        case bool() | float() | str():
            return
        case int() if value in _INT:
            return
        case Mapping():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ConfigError(f"declare: {key!r} in {name} is not a name: the broker's names are str")
                _check_value(f"{name}.{key}", item)
            return
    raise ConfigError(
        f"declare: {name}={value!r} is of type {type(value).__name__}; the broker has str, int of 64 bits, float, "
        "bool and dict of these (leave out what is None)"
    )


def declare(s: SessionState, wanted: Declaration) -> Flow[None]:
    """See `declaring.declare`.

    Raises:
        UnsupportedError: the broker does not over this protocol; the text says what to do instead.
    """
    queues = yield from _queues(s, "declare")
    try:
        made = yield from declaring.declare(queues, wanted)
    except NO_ANSWER:
        s.epoch.channel.forget(wanted.queue)
        raise
    finally:
        queues.close()
    if made:
        s.epoch.channel.forget(wanted.queue)


def delete(s: SessionState, queue: Queue) -> Flow[int | None]:
    """See `Queues.remove`. Raises UnsupportedError, as `declare`."""
    queues = yield from _queues(s, "delete")
    try:
        queues.check(Declaration(queue))
        held = yield from queues.remove(queue)
    except NO_ANSWER:
        s.epoch.channel.forget(queue)
        raise
    finally:
        queues.close()
    s.epoch.channel.forget(queue)
    if log.isEnabledFor(logging.INFO):
        log.info("%s: %s was deleted%s", s.options.url, queue, "" if held is None else f", with {held} messages")
    return held


def describe(s: SessionState, queue: Queue) -> Flow[Mapping[str, Any] | None]:
    """The broker's facts about a queue over the protocol of the connection. Raises as `Queues.describe`."""
    queues = s.epoch.transport.queues(s.waiter)
    try:
        return (yield from queues.describe(queue))
    finally:
        queues.close()


def _queues(s: SessionState, action: str) -> Flow[Queues]:
    yield from connected(s, action)
    transport, peer = s.epoch.transport, s.epoch.transport.peer
    over_http = None
    if not peer.capabilities.declares:
        over_http = queues_over_http(peer.dialect, peer.provider_version, s.options.management, s.waiter)
    return over_http or transport.queues(s.waiter)


def temporary(s: SessionState, kind: type[Destination]) -> Flow[Destination]:
    """See `Transport.temporary`; after a loss it is made on the next connection."""
    deadline = s.now() + s.options.request_timeout
    while True:
        yield from connected(s, "temporary destination", deadline)
        transport = s.epoch.transport
        try:
            made = yield from transport.temporary(kind, s.waiter)
            if s.temporaries.made(made, transport):
                return made
        except ConnectionLostError:
            if not s.comes_back:
                raise
        yield from await_loss(s)


def unsubscribe(s: SessionState, name: str) -> Flow[None]:
    """Remove a durable subscription, shared or not.

    Raises:
        ConfigError: the name is not a str, or empty.
        IllegalStateError: it has a consumer, or messages that are not acknowledged.
        InvalidDestinationError: there is none of that name.
        UnsupportedError: the broker has none.
    """
    yield from catch_up(s)  # what was closed meanwhile
    if not isinstance(name, str) or not name:
        raise ConfigError(f"unsubscribe: {repr(name)[:40]} is not a name of a subscription: pass a str")
    yield from connected(s, "unsubscribe")
    if s.epoch.transport.peer.capabilities.subscriptions.isdisjoint(("durable", "shared durable")):
        check_kind(s.epoch.transport.peer, "durable")
    known = s.subscriptions.check_unused(name)
    yield from s.epoch.transport.unsubscribe(name, known, s.waiter)
    s.subscriptions.forget(name)
