"""Definitions of RabbitMQ, and where a message of each of their queues ends: seen on RabbitMQ 3.10, 4.0 and 4.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

How = Literal["reject", "fail", "expire", "full"]
DEFINITIONS: dict[str, list[dict[str, Any]]] = {
    name: [] for name in ("exchanges", "queues", "bindings", "policies", "parameters")
}


@dataclass(frozen=True)
class Case:
    """What is done to a message of a queue, and where it is found then.

    ``how``: a client rejects it; it fails until nothing comes any more; nobody takes it; a second one does not fit.
    ``ends``: queues. ``deliveries``: of ``fail``. ``via``: the exchange and key of the send; None: to the queue.
    ``of_4``: RabbitMQ 3 cannot do it, or does otherwise.
    """

    queue: str
    how: How
    ends: frozenset[str]
    deliveries: int | None = None
    via: tuple[str, str] | None = None
    of_4: bool = False


CASES: list[Case] = []


def spelled(values: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in values.items()}


def queue(name: str, kind: str | None, **arguments: Any) -> None:
    given = {f"x-{key}": value for key, value in spelled(arguments).items()} | ({"x-queue-type": kind} if kind else {})
    DEFINITIONS["queues"].append({"name": name, "durable": True, "auto_delete": False, "arguments": given})


def exchange(name: str, kind: str, **arguments: Any) -> None:
    more = {"durable": True, "auto_delete": False, "internal": False}
    DEFINITIONS["exchanges"].append({"name": name, "type": kind, "arguments": spelled(arguments), **more})


def bind(source: str, target: str, key: str = "", kind: str = "queue", arguments: dict[str, Any] | None = None) -> None:
    binding = {"source": source, "destination": target, "destination_type": kind, "routing_key": key}
    DEFINITIONS["bindings"].append({**binding, "arguments": arguments or {}})


def policy(name: str, pattern: str, priority: int = 0, to: str = "queues", **definition: Any) -> None:
    rule = {"pattern": pattern, "apply-to": to, "priority": priority, "definition": spelled(definition)}
    DEFINITIONS["policies"].append({"name": name, **rule})


def operator(name: str, pattern: str, **definition: Any) -> None:
    rule = {"pattern": pattern, "apply-to": "queues", "priority": 0, "definition": spelled(definition)}
    DEFINITIONS["parameters"].append({"component": "operator_policy", "name": name, "value": rule})


def case(name: str, how: How, *ends: str, deliveries: int | None = None, of_4: bool = False) -> None:
    CASES.append(Case(name, how, frozenset(ends), deliveries, of_4=of_4))


def rejected(name: str, *ends: str, kind: str = "classic", **arguments: Any) -> None:
    queue(name, kind, **arguments)
    case(name, "reject", *ends)


def failing(name: str, deliveries: int, *ends: str, of_4: bool = False, **arguments: Any) -> None:
    queue(name, "quorum", **arguments)
    case(name, "fail", *ends, deliveries=deliveries, of_4=of_4)


DEAD: dict[str, Any] = {"dead_letter_exchange": "", "dead_letter_routing_key": "t.a"}
for target in ("t.a", "t.b", "t.c", "t.d"):
    queue(target, "classic")
exchange("direct", "direct")
bind("direct", "t.a", "k.a")
bind("direct", "t.b", "k.b")
exchange("topic", "topic")
bind("topic", "t.a", "*.one")
bind("topic", "t.b", "#.two")
bind("topic", "t.c", "w.#")
bind("topic", "t.d", "exact.key.here")
exchange("fan", "fanout")
bind("fan", "t.a", "x")
bind("fan", "t.b")
exchange("head", "headers")
bind("head", "t.a", arguments={"x-match": "all"})
bind("head", "t.b", arguments={"x-match": "any"})
exchange("e2e", "direct")
bind("e2e", "topic", "w.e2e", "exchange")
exchange("alt", "direct", alternate_exchange="fan")
exchange("alt.policy", "direct")
policy("alternates", r"^alt\.policy$", to="exchanges", alternate_exchange="fan")
exchange("empty", "topic")

# Exchanges and their bindings
rejected("w.one", "t.a", "t.c", dead_letter_exchange="topic")
rejected("w.x.two", "t.b", "t.c", dead_letter_exchange="topic")
rejected("two", "t.b", dead_letter_exchange="topic")
rejected("w", "t.c", dead_letter_exchange="topic")
rejected("x.y.one", dead_letter_exchange="topic")
rejected("by-key", "t.d", dead_letter_exchange="topic", dead_letter_routing_key="exact.key.here")
rejected("k.a", "t.a", dead_letter_exchange="direct")
rejected("k.z", dead_letter_exchange="direct")
rejected("to-fanout", "t.a", "t.b", dead_letter_exchange="fan")
rejected("to-headers", "t.a", dead_letter_exchange="head")
rejected("w.e2e", "t.c", dead_letter_exchange="e2e")
rejected("to-alternate", "t.a", "t.b", dead_letter_exchange="alt")
rejected("to-alternate-2", "t.a", "t.b", dead_letter_exchange="alt.policy")
rejected("to-empty", dead_letter_exchange="empty")
rejected("to-absent", dead_letter_exchange="absent")
rejected("to-predeclared", dead_letter_exchange="amq.fanout")
rejected("to-itself", "to-itself", dead_letter_exchange="")
rejected("to-queue", "t.c", dead_letter_exchange="", dead_letter_routing_key="t.c")
rejected("to-no-queue", dead_letter_exchange="", dead_letter_routing_key="nowhere")
rejected("to-nothing")
exchange("in", "direct")
queue("bound", "classic", dead_letter_exchange="topic")
bind("in", "bound", "exact.key.here")
CASES.append(Case("bound", "reject", frozenset({"t.d"}), via=("in", "exact.key.here")))

# Policies: one that has what the queue's type has not is none; of the others the highest priority
policy("limited", r"^p\.", delivery_limit=2, **DEAD)
rejected("p.classic")
failing("p.quorum", 3, "t.a")
policy("unlimited", r"^pp\.", **DEAD)
policy("higher", r"^pp\.x", 1, dead_letter_exchange="", dead_letter_routing_key="t.b")
rejected("pp.classic", "t.a")
rejected("pp.quorum", "t.a", kind="quorum")
rejected("pp.x", "t.b")
policy("first", r"^two\.", 5, delivery_limit=2, **DEAD)
policy("second", r"^two\.", 1, dead_letter_exchange="", dead_letter_routing_key="t.b")
rejected("two.classic", "t.b")
failing("two.quorum", 3, "t.a")
policy("lazy", "^lazy", 5, queue_mode="lazy", **DEAD)
rejected("lazy.quorum", kind="quorum")
rejected("lazy.classic", "t.a")
rejected("pp.argument", "t.a", "t.b", dead_letter_exchange="fan", dead_letter_routing_key="k")
rejected("pp.key", "t.d", dead_letter_exchange="", dead_letter_routing_key="t.d")
policy("key", "^key$", dead_letter_routing_key="t.d")
rejected("key", "t.d", dead_letter_exchange="")

# Limits: the lowest counts, and one below 0 is none
failing("limit-0", 1, "t.a", delivery_limit=0, **DEAD)
failing("limit-1", 2, "t.a", delivery_limit=1, **DEAD)
failing("limit-none", 26, "limit-none", delivery_limit=-1, of_4=True, **DEAD)
failing("limit-default", 21, "t.a", of_4=True, **DEAD)
failing("limit-default-lost", 21, of_4=True)
policy("three", r"^min\.", delivery_limit=3, **DEAD)
failing("min.lower", 2, "t.a", delivery_limit=1)
failing("min.higher", 4, "t.a", delivery_limit=6)
failing("min.none", 4, "t.a", delivery_limit=-1, of_4=True)
operator("one", r"^operator\.", delivery_limit=1)
policy("four", r"^operator\.", delivery_limit=4, **DEAD)
failing("operator.both", 2, "t.a")
failing("operator.none", 2, "t.a", delivery_limit=-1, of_4=True)
operator("alone", "^alone$", delivery_limit=1)
failing("alone", 2, "t.a", **DEAD)

# Times to live, lengths
for kind in ("classic", "quorum"):
    queue(f"ttl.{kind}", kind, message_ttl=100, **DEAD)
    case(f"ttl.{kind}", "expire", "t.a")
    queue(f"full.{kind}", kind, max_length=1, **DEAD)
    case(f"full.{kind}", "full", "t.a")
policy("lower-ttl", "^lower-ttl$", message_ttl=100, **DEAD)
queue("lower-ttl", "classic", message_ttl=3_600_000)
case("lower-ttl", "expire", "t.a")
queue("refusing", "classic", max_length=1, overflow="reject-publish", **DEAD)
case("refusing", "full")
policy("refuse", r"^refuse\.", overflow="reject-publish", max_length=1)
queue("refuse.classic", "classic", overflow="drop-head", **DEAD)
case("refuse.classic", "full", "t.a")
queue("refuse.quorum", "quorum", overflow="drop-head", **DEAD)
case("refuse.quorum", "full")

# Circles: what nobody rejected on its way is dropped
failing("work", 2, delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key="retry")
queue("retry", "classic", message_ttl=100, dead_letter_exchange="", dead_letter_routing_key="work")
rejected("work.classic", "work.classic", dead_letter_exchange="", dead_letter_routing_key="retry.classic")
queue("retry.classic", "classic", message_ttl=100, dead_letter_exchange="", dead_letter_routing_key="work.classic")
failing("round", 2, delivery_limit=1, dead_letter_exchange="")

# at-least-once
least: dict[str, Any] = {"dead_letter_strategy": "at-least-once"}
rejected("least", "t.a", kind="quorum", overflow="reject-publish", **least, **DEAD)
policy("least", r"^least\.", overflow="reject-publish", **least, **DEAD)
rejected("least.classic")
rejected("least.quorum", "t.a", kind="quorum")

# The virtual host's default type is quorum
queue("untyped", None, delivery_limit=1, **DEAD)
case("untyped", "fail", "t.a", deliveries=2, of_4=True)


def definitions(version: str, *, of_4: bool = True) -> dict[str, Any]:
    """An export of one virtual host, ``cases``; without what RabbitMQ 3 does not import."""
    left_out = {each.queue for each in CASES if each.of_4 and not of_4}
    parts: dict[str, list[dict[str, Any]]] = dict(DEFINITIONS)
    parts["queues"] = [each for each in parts["queues"] if each["name"] not in left_out]
    about = {"rabbitmq_version": version, "original_vhost_name": "cases", "default_queue_type": "quorum"}
    return {**about, **parts}


def cases(*, of_4: bool = True) -> list[Case]:
    return [each for each in CASES if of_4 or not each.of_4]
