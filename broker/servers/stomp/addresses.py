"""Destinations as one STOMP client writes and reads them: ActiveMQ Classic's ProtocolConverter.convertDestination.

A temporary destination is ``/temp-queue/name`` for the client that made it, by mentioning it, and
``/remote-temp-queue/<its name at the broker>`` for all others.

Where the broker obeys another one's file, that one's own names are understood too, and mean what they mean there.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Final

from redelivery.broker.core import Core
from redelivery.broker.servers.stomp.spelling import Spelling, spelling_of
from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.errors import InvalidDestinationError

_QUEUE, _TOPIC = "/queue/", "/topic/"
_OWN: Final = (("/temp-queue/", TemporaryQueue), ("/temp-topic/", TemporaryTopic))
_REMOTE: Final = (("/remote-temp-queue/", TemporaryQueue), ("/remote-temp-topic/", TemporaryTopic))


class Addresses:
    """The addresses of one client, which is called ``name``; on the listener's thread, but for `write`."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self._name = name
        self._spelling = spelling_of(core.config.rules)
        self._numbers = count(1)
        self._own: dict[str, Destination] = {}  # by what the client calls them
        self._called: dict[Destination, str] = {}  # the same, the other way

    def read(self, text: str) -> Destination:
        """``/queue/a``, ``/topic/a`` or a temporary one; a str without a leading slash is a queue, as Classic has it.

        Raises:
            InvalidDestinationError: it begins with something else.
        """
        if "," in text:
            return self._read_composite(text)
        if text.startswith(_QUEUE):
            return Queue(text[len(_QUEUE) :])
        if text.startswith(_TOPIC):
            return Topic(text[len(_TOPIC) :])
        for prefix, kind in _OWN:
            if text.startswith(prefix):
                return self._own.get(text) or self._make(text, kind)
        for prefix, kind in _REMOTE:
            if text.startswith(prefix):
                return kind(f"{kind.scheme}://{text[len(prefix) :]}")
        if text.startswith("/"):
            raise InvalidDestinationError(
                f"Illegal destination name: [{text}] -- it must begin with {_QUEUE} or {_TOPIC}"
            )
        return Queue(text)

    def spelling_of(self, text: str) -> Spelling | None:
        """The spelling of another broker in which a destination is written; None: as `read` reads it."""
        return self._spelling if self._spelling is not None and self._spelling.is_used(text) else None

    def read_sent(self, headers: Mapping[str, str]) -> Destination:
        """The destination of a SEND. Raises as `read`, and ProtocolError for a type that is none."""
        text = headers["destination"]
        spelling = self.spelling_of(text)
        if spelling is None:
            return self.read(text)
        return self._made(spelling.sent(text, headers.get(spelling.type_of_sent))) or self._as_known(text)

    def read_reply_to(self, text: str) -> Destination:
        """The destination of a `reply-to`. Raises as `read`."""
        spelling = self.spelling_of(text)
        return self.read(text) if spelling is None else spelling.replied(text)

    def write(self, destination: Destination, spelling: Spelling | None = None) -> str:
        """The inverse of `read`, or in another broker's spelling."""
        if spelling is not None and not isinstance(destination, (TemporaryQueue, TemporaryTopic)):
            return spelling.write(destination)
        own = self._called.get(destination)
        if own is not None:
            return own
        for prefix, kind in _REMOTE:
            if isinstance(destination, kind):
                return prefix + destination.name.removeprefix(f"{kind.scheme}://")
        return f"{_TOPIC if isinstance(destination, Topic) else _QUEUE}{destination.name}"

    def read_consumed(self, headers: Mapping[str, str]) -> Destination:
        """The destination of a SUBSCRIBE.

        Raises:
            InvalidDestinationError: it is another client's temporary one. Classic lets it be consumed, JMS does not.
            ProtocolError: as `read_sent`.
        """
        text = headers["destination"]
        spelling = self.spelling_of(text)
        if spelling is not None:
            return self._made(spelling.consumed(text, headers.get(spelling.type_of_consumed))) or self._as_known(text)
        found = self.read(text)
        if isinstance(found, (TemporaryQueue, TemporaryTopic)) and found not in self._called:
            raise InvalidDestinationError(f"{text}: only the connection that made it can consume it")
        return found

    def removed(self, headers: Mapping[str, str]) -> str | None:
        """The durable subscription that an UNSUBSCRIBE removes in another broker's words, with its consumer."""
        return None if self._spelling is None else self._spelling.subscription_of(headers)

    def _made(self, found: Destination | None) -> Destination | None:
        if isinstance(found, Queue):
            self._core.call(lambda engine, _now: engine.rules.add_queue(found.name))
        return found

    def _as_known(self, text: str) -> Destination:
        """A queue where there is one of that name, else a topic, as Artemis makes what nobody has named before."""
        if self._core.call(
            lambda engine, _now: (
                engine.rules.makes(text) or engine.rules.queue_of(text, engine.queues.keys()) in engine.queues
            )
        ):
            return Queue(text)
        return Topic(".".join(">" if word == "#" else word for word in text.split(".")))

    def _read_composite(self, text: str) -> Destination:
        """``/queue/a,/topic/b``, or ``/queue/a,b``: as Classic reads it, a queue if the first is one."""
        first, *others = [each.strip() for each in text.split(",")]
        whole = self.read(first)
        parts = [str(self.read(each)) if each.startswith("/") else each for each in others]
        return type(whole)(",".join([whole.name, *parts]))

    def end(self) -> list[Destination]:
        """The client is gone: what was its own, to be dropped."""
        own, self._own = list(self._own.values()), {}
        return own

    def _make(self, text: str, kind: type[Destination]) -> Destination:
        made = kind(f"{kind.scheme}://{self._name}:{next(self._numbers)}")
        self._core.call(lambda engine, _now: engine.make_temporary(made))
        self._own[text] = made
        self._called[made] = text
        return made
