"""To which queues an exchange leads: RabbitMQ's types of exchange, bindings between them, and alternate exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from redelivery.policies.brokers.rabbitmq.values import RabbitBinding, RabbitExchange

_EVERYWHERE: Final[Mapping[str, str]] = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.rabbitmq.trace": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}
"""Exchanges that each virtual host has, and that no file lists, with their types."""
_ONE, _REST = "*", "#"


@dataclass(frozen=True, slots=True)
class Key:
    """A routing key; ``pattern``: one with wildcards, that stands for all which a binding lets through."""

    text: str
    pattern: bool = False

    def words(self) -> list[str]:
        """As `overlap` compares them."""
        words = _words(self.text)
        return words if self.pattern else [f"\0{each}" if each in (_ONE, _REST) else each for each in words]


@dataclass(frozen=True, slots=True)
class Route:
    """The place where a message ends. ``queues``: that get it; ``maybe``: that get it if its headers or its key say so.

    ``lost``: why nothing gets it. ``unmade``: the queue or exchange that is missing, or leads nowhere.
    ``unknown``: the file does not say where its exchange leads.
    """

    queues: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    lost: str = ""
    unknown: bool = False
    unmade: str = ""

    def text(self, exchange: str) -> str | None:
        """``a and b``; ``exchange 'x' (a or b)`` where it depends on the message; None where it is lost."""
        if self.lost:
            return None
        if self.queues and not self.maybe:
            return _listed(self.queues, "and")
        if self.queues:
            return f"{_listed(self.queues, 'and')}, and perhaps {_listed(self.maybe, 'and')}"
        return f"exchange {exchange!r}" + (f" ({_listed(self.maybe, 'or')})" if self.maybe else "")


class Exchanges:
    """The exchanges and bindings of one virtual host, and the alternate exchange that a policy gives, by the exchange.

    ``exchanges``: None where the file does not list them, so that one may be there all the same.
    """

    def __init__(
        self,
        exchanges: Iterable[RabbitExchange] | None,
        bindings: Iterable[RabbitBinding],
        alternates: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._listed = exchanges is not None
        self._kinds = {**_EVERYWHERE, **{each.name: each.kind for each in exchanges or ()}}
        own = {each.name: each.alternate for each in exchanges or () if each.alternate is not None}
        self._alternates = {**alternates, **own}
        self._bindings: dict[str, list[RabbitBinding]] = {}
        self._to: dict[str, list[RabbitBinding]] = {}  # a queue
        for each in bindings:
            self._bindings.setdefault(each.exchange, []).append(each)
            if not each.to_exchange and each.exchange != "":
                self._to.setdefault(each.queue, []).append(each)

    def route(self, exchange: str, key: Key) -> Route:
        """Say where a message with this routing key goes from an exchange."""
        if exchange == "":
            return Route(maybe=(key.text,)) if key.pattern else Route((key.text,))
        if exchange not in self._kinds and exchange not in self._bindings:
            if self._listed:
                return Route(lost=f"exchange {exchange!r} is not there", unmade=f"exchange {exchange!r}")
            return Route(unknown=True)
        sure, maybe = self._reached(exchange, key)
        if not sure and not maybe:
            if not self._listed and exchange not in self._bindings:
                return Route(unknown=True)
            what = f"matches the routing key {key.text!r}" if exchange in self._bindings else "is there"
            return Route(lost=f"no binding of exchange {exchange!r} {what}", unmade=f"exchange {exchange!r}")
        return Route(tuple(sure), tuple(each for each in maybe if each not in sure))

    def keys_to(self, queue: str) -> Iterator[tuple[str, Key]]:
        """The exchanges that lead to a queue directly, each with the keys of what comes from there."""
        for each in self._to.get(queue, ()):
            kind = self._kinds.get(each.exchange)
            if kind == "direct":
                yield each.exchange, Key(each.routing_key)
            else:
                yield each.exchange, Key(each.routing_key if kind == "topic" else _REST, pattern=True)

    def _reached(self, exchange: str, key: Key) -> tuple[dict[str, None], dict[str, None]]:
        sure: dict[str, None] = {}
        maybe: dict[str, None] = {}
        seen: set[tuple[str, bool]] = set()
        todo = [(exchange, True)]
        while todo:
            name, certain = todo.pop(0)
            if (name, certain) in seen:
                continue
            seen.add((name, certain))
            matched = [(each, found) for each in self._bindings.get(name, ()) if (found := self._matches(each, key))]
            for each, found in matched:
                if each.to_exchange:
                    todo.append((each.queue, certain and found == "yes"))
                else:
                    (sure if certain and found == "yes" else maybe)[each.queue] = None
            if name in self._alternates and not any(found == "yes" for _, found in matched):
                todo.append((self._alternates[name], certain and not matched))
        return sure, maybe

    def _matches(self, binding: RabbitBinding, key: Key) -> str:
        """``yes``, ``maybe``, or "" where it does not."""
        kind = self._kinds.get(binding.exchange)
        match kind:
            case "fanout" | "x-recent-history":
                return "yes"
            case "direct":
                return _matching(Key(binding.routing_key).words(), key)
            case "topic":
                return _matching(_words(binding.routing_key), key)
            case "headers":
                return _by_headers(binding)
            case None:  # a file that has its bindings, and not what it is
                bound = self._bindings[binding.exchange]
                exact = [each for each in bound if each.routing_key == key.text]
                if exact:
                    return "yes" if binding in exact else ""
                return "yes" if len({(each.queue, each.to_exchange) for each in bound}) == 1 else "maybe"
        return "maybe"  # a plug-in's type


def _matching(words: list[str], key: Key) -> str:
    if words == [_REST]:
        return "yes"
    if not overlap(words, key.words()):
        return ""
    return "maybe" if key.pattern and key.words() != words else "yes"


def _by_headers(binding: RabbitBinding) -> str:
    given = dict(binding.arguments)
    kind = str(given.pop("x-match", "all"))
    asked = [name for name in given if kind.endswith("-with-x") or not name.startswith("x-")]
    if not asked:
        return "yes" if kind.startswith("all") else ""
    return "maybe"


def overlap(one: list[str], other: list[str]) -> bool:
    """Say whether any routing key fits both; ``*`` is one word, and ``#`` any number of them."""
    for number, (ours, theirs) in enumerate(zip(one, other, strict=False)):
        if _REST in (ours, theirs):
            one, other = one[number:], other[number:]
            break
        if ours != theirs and _ONE not in (ours, theirs):
            return False
    if _REST not in one and _REST not in other:
        return len(one) == len(other)
    return _overlap_of_any_length(one, other)


def _overlap_of_any_length(one: list[str], other: list[str]) -> bool:
    rest = [[False] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one), -1, -1):
        for j in range(len(other), -1, -1):
            if i == len(one) and j == len(other):
                rest[i][j] = True
            elif i < len(one) and one[i] == _REST:
                rest[i][j] = rest[i + 1][j] or (j < len(other) and rest[i][j + 1])
            elif j < len(other) and other[j] == _REST:
                rest[i][j] = rest[i][j + 1] or (i < len(one) and rest[i + 1][j])
            elif i < len(one) and j < len(other):
                rest[i][j] = (one[i] == other[j] or _ONE in (one[i], other[j])) and rest[i + 1][j + 1]
    return rest[0][0]


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _listed(names: tuple[str, ...], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
