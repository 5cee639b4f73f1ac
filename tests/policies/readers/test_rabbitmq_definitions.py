"""RabbitMQ's definitions: what counts for a queue, and to which queues its dead letters really go."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from tests.policies.readers.documents import read
from tests.policies.readers.rabbitmq_cases import Case, cases, definitions

import redelivery
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq.routes import overlap
from redelivery.policies.files.places import ConfigFileError

ALL = read(json.dumps(definitions("4.0.5")), "cases.json")


def rabbit(**document: Any) -> BrokerPolicies:
    return read(json.dumps({"rabbitmq_version": "4.0.5", **document}), "definitions.json")


def one(name: str, kind: str = "quorum", **arguments: Any) -> dict[str, Any]:
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return {"name": name, "vhost": "/", "durable": True, "arguments": {"x-queue-type": kind, **given}}


def topic(*bindings: tuple[str, str], kind: str = "topic") -> dict[str, Any]:
    """An exchange ``dlx`` with these keys and queues, as an export has it."""
    return {
        "exchanges": [{"name": "dlx", "vhost": "/", "type": kind, "arguments": {}}],
        "bindings": [
            {"source": "dlx", "vhost": "/", "destination": queue, "destination_type": "queue", "routing_key": key}
            for key, queue in bindings
        ],
    }


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.queue}-{case.how}")
def test_where_a_message_ends_is_said(case: Case) -> None:
    found = ALL.explain(case.queue)
    ends = case.ends - {case.queue} if case.how == "fail" else case.ends
    if case.deliveries is not None:
        assert (found.counts, found.maximum) == ("failures", None if case.deliveries == 26 else case.deliveries)
    if case.queue == "work":  # it goes to the queue ``retry``, and is dropped when it would come back
        assert any("would come back to work, but RabbitMQ drops" in each and "0.1 s" in each for each in found.notes)
    elif case.queue == "work.classic":
        assert any("comes back to work.classic, and so on without an end" in each for each in found.notes)
    elif case.how == "full":
        assert any("the oldest message is a dead letter" in each for each in found.notes) is bool(ends)
    elif ends:
        assert frozenset(found.dead_letter_queues) == ends
    elif case.deliveries != 26:
        assert (found.dead_letter, found.fate.startswith("removed (")) == (None, True)


def test_a_queue_that_the_file_does_not_name_is_supposed_to_be_of_a_kind_and_what_else_it_may_be_is_said() -> None:
    policy = {"name": "p", "vhost": "/", "pattern": "^q", "apply-to": "queues"}
    limited = [
        {**policy, "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "D", "delivery-limit": 4}}
    ]
    classic = rabbit(policies=limited).explain("q.x")
    assert classic.fate == "removed (no dead-letter-exchange is set)"
    assert any("does not name this queue: a classic queue is supposed" in each for each in classic.notes)
    assert "if it is a quorum queue: 5 failures over 0 s, then D" in classic.notes
    assert "policy 'p' has no effect on a classic queue, which has no delivery-limit" in classic.notes
    for host in ({"default_queue_type": "quorum"}, {"metadata": {"default_queue_type": "quorum"}}):
        quorum = rabbit(policies=limited, vhosts=[{"name": "/", **host}])
        assert (quorum.explain("q.x").maximum, quorum.explain("q.x").dead_letter) == (5, "D")
        assert any("a quorum queue is supposed, the default_queue_type" in each for each in quorum.explain("q.x").notes)
        assert quorum.redelivery_policies.policy_for("another").maximum_redeliveries == 20
    other = rabbit(policies=limited, vhosts=[{"name": "other", "default_queue_type": "quorum"}])
    assert other.explain("q.x").counts == "give-ups"


def test_a_queue_without_its_type_is_of_the_default_one_unless_it_does_not_last() -> None:
    plain: dict[str, Any] = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    queues = [{**plain, "name": "lasts"}, {**plain, "name": "ends", "auto_delete": True}]
    queues += [{**plain, "name": "transient", "durable": False}, {**plain, "name": "typed", "type": "stream"}]
    found = rabbit(queues=queues, vhosts=[{"name": "/", "default_queue_type": "quorum"}])
    assert [found.explain(each["name"]).counts for each in queues] == ["failures", "give-ups", "give-ups", "give-ups"]
    assert found.explain("typed").fate == "kept (a stream keeps each message, whatever becomes of it)"
    assert not any("supposed" in each for each in found.explain("lasts").notes)


def test_an_operator_s_policy_of_an_export_is_among_its_parameters() -> None:
    value = {"pattern": "^q", "definition": {"delivery-limit": 1}, "apply-to": "queues", "priority": 0}
    parameters = [
        {"component": "operator_policy", "vhost": "/", "name": "op", "value": value},
        {"component": "shovel", "vhost": "/", "name": "s", "value": {"src-queue": "a"}},
    ]
    found = rabbit(queues=[one("q", delivery_limit=9)], parameters=parameters)
    assert found.explain("q").maximum == 2
    assert found.explain("q").settings[0].source == "operator policy 'op'"
    assert [each.name for each in found.unread] == ["parameters: shovel"]


def test_an_export_of_one_virtual_host_names_it_once() -> None:
    policy = {"name": "p", "pattern": ".*", "apply-to": "queues", "definition": {"dead-letter-exchange": "dlx"}}
    parts = topic(("#", "dead"))
    for each in (*parts["exchanges"], *parts["bindings"]):
        del each["vhost"]
    queue = {key: value for key, value in one("q").items() if key != "vhost"}
    whole = rabbit(original_vhost_name="prod", policies=[policy], queues=[queue], **parts)
    assert whole.explain("q").dead_letter == "dead"
    assert whole.explain("q").matched[0].title == "policy 'p' of virtual host 'prod'"
    assert whole.unread == ()


def test_an_export_of_one_virtual_host_by_3_10_names_it_with_its_policies_alone() -> None:
    policy = {"name": "p", "vhost": "prod", "pattern": ".*", "definition": {"dead-letter-exchange": "amq.fanout"}}
    queues = [{"name": "q", "durable": True, "arguments": {}}]
    found = rabbit(policies=[policy], queues=queues, exchanges=[], bindings=[]).explain("q")
    assert found.matched[0].title == "policy 'p' of virtual host 'prod'"


def test_policies_and_exchanges_are_those_of_the_queue_s_own_virtual_host() -> None:
    parts = topic(("#", "dead"))
    elsewhere = {**one("q", dead_letter_exchange="dlx"), "vhost": "other"}
    found = rabbit(queues=[one("q", dead_letter_exchange="dlx"), elsewhere], **parts)
    assert found.explain("//q").dead_letter == "dead"
    assert found.explain("other/q").fate == "removed (exchange 'dlx' is not there: dead letters are lost)"


@pytest.mark.parametrize(
    ("bindings", "queue", "expected"),
    [
        ([("orders.#", "dead")], "orders.new", "dead"),
        ([("orders.#", "dead")], "orders", "dead"),
        ([("orders.*", "dead")], "orders", None),
        ([("*.new", "a"), ("orders.new", "b"), ("#", "c"), ("other", "d")], "orders.new", "a, b and c"),
        ([("#.new.#", "dead")], "a.b.new.c", "dead"),
        ([("orders.new", "dead")], "orders.old", None),
    ],
)
def test_a_topic_exchange_s_bindings_are_followed(
    bindings: list[tuple[str, str]], queue: str, expected: str | None
) -> None:
    found = rabbit(queues=[one(queue, dead_letter_exchange="dlx")], **topic(*bindings)).explain(queue)
    assert found.dead_letter == expected
    if expected is None:
        lost = f"no binding of exchange 'dlx' matches the routing key {queue!r}: dead letters are lost"
        assert found.removed_because == lost


def test_what_depends_on_the_message_is_not_promised() -> None:
    parts = topic(("", "always"), ("", "perhaps"), kind="headers")
    parts["bindings"][1]["arguments"] = {"x-match": "all", "kind": "order"}
    found = rabbit(queues=[one("q", dead_letter_exchange="dlx")], **parts).explain("q")
    assert (found.dead_letter, found.dead_letter_queues) == ("always, and perhaps perhaps", ("always",))
    hashed = topic(("1", "a"), ("1", "b"), kind="x-consistent-hash")
    found = rabbit(queues=[one("q", dead_letter_exchange="dlx")], **hashed).explain("q")
    assert (found.dead_letter, found.dead_letter_queues) == ("exchange 'dlx' (a or b)", ())
    delayed = topic(("q", "a"), ("z", "b"), kind="x-delayed-message")
    delayed["exchanges"][0]["arguments"] = {"x-delayed-type": "direct"}
    assert rabbit(queues=[one("q", dead_letter_exchange="dlx")], **delayed).explain("q").dead_letter == "a"


def test_what_comes_by_an_exchange_is_dead_lettered_by_the_key_that_it_has() -> None:
    parts = topic(("order.created", "dead"), ("q", "own"))
    parts["exchanges"].append({"name": "shop", "vhost": "/", "type": "direct", "arguments": {}})
    into = {"source": "shop", "vhost": "/", "destination": "q", "destination_type": "queue"}
    parts["bindings"] += [{**into, "routing_key": key} for key in ("order.created", "order.lost")]
    found = rabbit(queues=[one("q", dead_letter_exchange="dlx")], **parts).explain("q")
    assert found.dead_letter == "own"
    assert "a dead letter of what comes by exchange 'shop' with 'order.created' goes to dead" in found.notes
    assert any("by exchange 'shop' with 'order.lost' is removed: no binding of" in each for each in found.notes)
    parts["bindings"] = [each for each in parts["bindings"] if each["destination"] != "own"]
    alone = rabbit(queues=[one("q", dead_letter_exchange="dlx")], **parts).explain("q")
    assert alone.dead_letter == "dead"
    assert any("a dead letter of what is sent to the queue itself is removed" in each for each in alone.notes)


def test_a_circle_of_exchanges_ends() -> None:
    parts = topic()
    parts["exchanges"] += [{"name": name, "vhost": "/", "type": "fanout", "arguments": {}} for name in "ab"]
    parts["exchanges"][0]["arguments"] = {"alternate-exchange": "a"}
    pairs = (("a", "b"), ("b", "a"))
    parts["bindings"] = [
        {"source": source, "vhost": "/", "destination": target, "destination_type": "exchange", "routing_key": ""}
        for source, target in pairs
    ]
    found = rabbit(queues=[one("q", dead_letter_exchange="dlx")], **parts).explain("q")
    assert found.dead_letter is None


def test_what_the_file_does_not_say_is_not_taken_for_lost() -> None:
    found = rabbit(queues=[one("q", dead_letter_exchange="dlx")]).explain("q")
    assert (found.dead_letter, found.dead_letter_queues) == ("exchange 'dlx'", ())
    assert "the file does not say where exchange 'dlx' leads" in found.notes
    named = rabbit(queues=[one("q", dead_letter_exchange="", dead_letter_routing_key="D")]).explain("q")
    assert named.dead_letter == "D"
    assert "no queue stands behind D: what goes there is removed" in named.notes
    strategy = rabbit(queues=[one("q", dead_letter_exchange="dlx")]).dead_letter_strategies.strategy_for("q")
    assert strategy == redelivery.BrokerDeadLetterStrategy(configured=True)


@pytest.mark.parametrize(
    ("version", "limit", "maximum", "said"),
    [
        ("3.13.7", None, None, "20 from RabbitMQ 4.0 on, none before"),
        ("4.3.6", None, 21, "20 from RabbitMQ 4.0 on, none before"),
        ("3.13.7", -1, None, "RabbitMQ 3 refuses a delivery-limit below 0"),
        ("4.0.5", -1, None, "each return counts"),
        ("4.3.6", 0, 1, "only failures count"),
    ],
)
def test_the_limit_is_that_of_the_version(version: str, limit: int | None, maximum: int | None, said: str) -> None:
    given: dict[str, Any] = {} if limit is None else {"delivery_limit": limit}
    found = rabbit(rabbitmq_version=version, queues=[one("q", **given)]).explain("q")
    assert found.maximum == maximum
    assert any(said in each for each in found.notes)


def test_at_least_once_needs_reject_publish_and_then_loses_nothing() -> None:
    least: dict[str, Any] = {"dead_letter_exchange": "dlx", "dead_letter_strategy": "at-least-once"}
    parts: dict[str, Any] = {"exchanges": [], "bindings": []}
    without = rabbit(queues=[one("q", **least)], **parts).explain("q")
    assert "dead-letter-strategy at-least-once needs overflow reject-publish: at-most-once counts" in without.notes
    assert without.fate == "removed (exchange 'dlx' is not there: dead letters are lost)"
    found = rabbit(queues=[one("q", overflow="reject-publish", **least)], **parts).explain("q")
    assert found.fate == "kept (exchange 'dlx' is not there: dead letters stay in the queue)"


def test_what_becomes_of_dead_letters_where_they_wait_is_said() -> None:
    first = one("q", dead_letter_exchange="", dead_letter_routing_key="d")
    short = rabbit(queues=[first, one("d", "classic", message_ttl=60_000)]).explain("q")
    assert "after 60 s in d a dead letter is removed, as d has no dead-letter-exchange" in short.notes
    small = rabbit(queues=[first, one("d", "classic", max_length=9, expires=1000)]).explain("q")
    assert "d holds 9 messages: a dead letter more, and the oldest one is gone" in small.notes
    assert "d is deleted after 1 s without a consumer, with the dead letters in it" in small.notes
    on = one("d", "classic", message_ttl=5000, dead_letter_exchange="", dead_letter_routing_key="last")
    assert "after 5 s in d it goes on to last" in rabbit(queues=[first, on, one("last")]).explain("q").notes


def test_policies_of_one_priority_are_said_to_be_taken_at_random() -> None:
    policy = {"vhost": "/", "pattern": "^q", "apply-to": "queues", "priority": 1}
    given = [{**policy, "name": name, "definition": {"message-ttl": ttl}} for name, ttl in (("a", 1), ("b", 2))]
    found = rabbit(queues=[one("q")], policies=given).explain("q")
    assert "policies 'a' and 'b' have the same priority: RabbitMQ takes any one of them" in found.notes


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"exchanges": [{"type": "topic"}]}, "an exchange without a name"),
        ({"exchanges": {}}, "exchanges is not a list"),
        ({"bindings": "x"}, "bindings is not a list"),
        ({"queues": [one("q", overflow="never")]}, "x-overflow='never': use one of drop-head, reject-publish"),
        ({"queues": [one("q", message_tll=5)]}, "did you mean 'x-message-ttl'"),
        ({"queues": [one("q", max_lenght=5)]}, "did you mean 'x-max-length'"),
        ({"policies": [{"name": "p", "pattern": "", "definition": []}]}, "definition is not an object"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(document: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"definitions\.json:\d+:\d+: .*{says}"):
        rabbit(**document)


def fits(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """The same as `overlap`, written as it is said."""
    if not one and not other:
        return True
    if one[:1] == ("#",):
        return fits(one[1:], other) or (bool(other) and fits(one, other[1:]))
    if other[:1] == ("#",):
        return fits(other, one)
    return bool(one and other) and (one[0] == other[0] or "*" in (one[0], other[0])) and fits(one[1:], other[1:])


def test_whether_two_keys_of_a_topic_exchange_have_one_in_common() -> None:
    keys = [each for length in range(4) for each in itertools.product("ab*#", repeat=length)]
    for one, other in itertools.product(keys, keys):
        assert overlap(list(one), list(other)) is fits(one, other), (one, other)
