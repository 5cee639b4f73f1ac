"""The JSON of Broker-J and RabbitMQ, and the tree that both are read through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.policies.readers.documents import read

import redelivery.policies
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.files import json_tree
from redelivery.policies.files.json_tree import parse_json
from redelivery.policies.files.places import ConfigFileError, Place

QUEUES = [
    {"name": "DLQ", "type": "standard"},
    {"name": "max3", "maximumDeliveryAttempts": 3, "alternateBinding": {"destination": "DLQ"}},
    {"name": "off", "maximumDeliveryAttempts": 0},
    {"name": "old", "x-qpid-maximum-delivery-count": "2", "x-qpid-dlq-enabled": True},
    {"name": "plain"},
]
HOST = {
    "type": "Memory",
    "context": {"queue.maximumDeliveryAttempts": "7", "queue.defaultAlternateBinding": '{"destination": "HOSTDLQ"}'},
    "nodeAutoCreationPolicies": [
        {"pattern": "auto\\..*", "nodeType": "queue", "attributes": {"maximumDeliveryAttempts": 4}}
    ],
    "queues": QUEUES,
}
BROKER = {
    "name": "x",
    "modelVersion": "9.0",
    "ports": [],
    "context": {"queue.maximumDeliveryAttempts": "9"},
    "virtualhostnodes": [
        {"name": "default", "defaultVirtualHostNode": "true", "virtualHostInitialConfiguration": json.dumps(HOST)}
    ],
}


def broker_j(document: object) -> BrokerPolicies:
    return read(json.dumps(document, indent=1), "config.json")


def rabbit(document: object, **options: object) -> BrokerPolicies:
    return read(json.dumps(document, indent=1), "definitions.json", **options)


@pytest.mark.promise("qpid-arguments", "seen-broker-j-maximum", "seen-broker-j-levels")
@pytest.mark.parametrize(
    "document", [BROKER, HOST, {"virtualhosts": [{"name": "h", **HOST}]}], ids=["config", "host", "store"]
)
@pytest.mark.parametrize(
    ("queue", "maximum", "dead_letters"),
    [
        ("max3", 3, "DLQ"),
        ("off", None, "HOSTDLQ"),
        ("old", 2, "old_DLQ"),
        ("plain", 7, "HOSTDLQ"),
        ("auto.x", 4, "HOSTDLQ"),
        ("unknown", 7, "HOSTDLQ"),
    ],
)
def test_broker_j_asks_the_queue_then_its_virtual_host_and_zero_turns_the_limit_off(
    document: dict[str, object], queue: str, maximum: int | None, dead_letters: str
) -> None:
    found = broker_j(document).explain(queue)
    assert (found.maximum, found.dead_letter) == (maximum, dead_letters)


@pytest.mark.promise("seen-broker-j-levels", "seen-broker-j-discarded")
def test_broker_j_asks_the_broker_last() -> None:
    host = {key: value for key, value in HOST.items() if key != "context"}
    nodes = [{"name": "default", "virtualHostInitialConfiguration": json.dumps(host)}]
    found = broker_j({**BROKER, "virtualhostnodes": nodes}).explain("plain")
    assert (found.maximum, found.fate) == (9, "removed (there is no alternate binding)")


def test_broker_j_names_the_lines() -> None:
    said = str(broker_j(HOST).explain("max3"))
    before = json.dumps(HOST, indent=1).partition(": 3")[0] + ": "
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    assert f"maximumDeliveryAttempts = 3, from queue 'max3' (config.json:{line}:{column})" in said
    assert "alternateBinding = DLQ" in said


@pytest.mark.promise("seen-broker-j-this-name")
def test_broker_j_does_not_route_by_a_binding_that_names_the_queue_itself() -> None:
    document = {"queues": [{"name": "q", "alternateBinding": {"destination": "${this:name}_x"}}]}
    assert "does not route" in broker_j(document).explain("q").fate


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        ({"maximumDeliveryAttempts": "many"}, "maximumDeliveryAttempts='many' must be an integer"),
        ({"maximumDeliveryAttempts": -1}, "maximumDeliveryAttempts=-1 must be an integer"),
        ({"maximumDeliveryAttempt": 1}, "did you mean 'maximumDeliveryAttempts'"),
        ({"alternateBinding": {}}, "an alternateBinding without a destination"),
        ({"alternateBinding": "DLQ"}, "alternateBinding: not JSON"),
        ({"expiryPolicy": "KEEP"}, "expiryPolicy='KEEP': use one of DELETE, ROUTE_TO_ALTERNATE"),
        ({"x-qpid-dlq-enabled": 1}, "x-qpid-dlq-enabled='1': use true or false"),
    ],
)
def test_broker_j_refuses_what_it_does_not_understand(queue: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"config\.json:\d+:\d+: .*{says}"):
        broker_j({"queues": [{"name": "q", **queue}]})


def test_broker_j_lists_what_it_skips() -> None:
    assert [each.name for each in broker_j(BROKER).unread] == ["ports"]


POLICY = {
    "vhost": "/",
    "name": "DLX",
    "pattern": "^q\\.",
    "apply-to": "queues",
    "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "DLQ", "delivery-limit": 5},
    "priority": 0,
}
UNLIMITED = {**POLICY, "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "DLQ"}}
QUORUM = {"name": "q.quorum", "vhost": "/", "durable": True, "arguments": {"x-queue-type": "quorum"}}


def test_rabbitmq_dead_letters_after_more_failures_than_the_limit() -> None:
    found = rabbit({"rabbitmq_version": "4.0.1", "policies": [POLICY], "queues": [QUORUM]}).explain("q.quorum")
    assert (found.maximum, found.dead_letter, found.counts) == (6, "DLQ", "failures")
    assert "delivery-limit = 5, from policy 'DLX' (definitions.json:12:23)" in str(found)


def test_rabbitmq_counts_nothing_of_a_classic_queue() -> None:
    found = rabbit({"policies": [UNLIMITED]}).explain("q.x")
    assert (found.maximum, found.dead_letter, found.counts) == (1, "DLQ", "give-ups")
    assert rabbit({"policies": [UNLIMITED]}).explain("other").fate == "removed (no dead-letter-exchange is set)"


def test_rabbitmq_takes_the_policy_of_the_highest_priority_and_arguments_before_it() -> None:
    high = {**POLICY, "name": "high", "priority": 3, "definition": {"delivery-limit": 2, "dead-letter-exchange": "dlx"}}
    argued = {**QUORUM, "arguments": {"x-queue-type": "quorum", "x-dead-letter-exchange": "own", "x-delivery-limit": 9}}
    bindings = [
        {"source": "own", "vhost": "/", "destination": "OWN", "destination_type": "queue", "routing_key": "any"}
    ]
    found = rabbit({"policies": [POLICY, high], "queues": [argued], "bindings": bindings}).explain("q.quorum")
    assert (found.maximum, found.dead_letter) == (3, "OWN")  # the lower limit, and the nearer exchange


def test_rabbitmq_s_policies_arguments_and_bindings_are_about_their_own_virtual_host() -> None:
    own = {"dead-letter-routing-key": "DLQ", "delivery-limit": 1, "dead-letter-exchange": "dlx"}
    other = {**POLICY, "vhost": "other", "priority": 9, "definition": own}
    queues = [{**QUORUM, "vhost": "other"}, QUORUM, {**QUORUM, "vhost": "other", "name": "q.elsewhere"}]
    bindings = [
        {"source": "dlx", "vhost": host, "destination": name, "destination_type": "queue", "routing_key": "DLQ"}
        for host, name in (("/", "WRONG"), ("other", "OTHER"))
    ]
    policies = [other, POLICY, {**UNLIMITED, "name": "classic", "priority": -1}]
    found = rabbit({"policies": policies, "queues": queues, "bindings": bindings})
    limits = {
        "q.quorum": (6, "DLQ"),  # of several hosts that have it "/" counts
        "//q.quorum": (6, "DLQ"),
        "other/q.quorum": (2, "OTHER"),
        "q.elsewhere": (2, "OTHER"),  # only the other one has it
    }
    assert {name: (found.explain(name).maximum, found.explain(name).dead_letter) for name in limits} == limits
    assert found.redelivery_policies.policy_for("q.quorum").maximum_redeliveries == 5
    assert found.explain("other/q.quorum").matched[0].title == "policy 'DLX' of virtual host 'other'"
    assert found.explain("q.new").dead_letter == "DLQ"
    assert found.explain("some/q.new").fate == "removed (no dead-letter-exchange is set)"  # a queue of that whole name


def test_rabbitmq_s_only_virtual_host_is_that_of_a_queue_that_the_file_does_not_name() -> None:
    assert rabbit({"policies": [{**UNLIMITED, "vhost": "prod"}]}).explain("q.x").dead_letter == "DLQ"


@pytest.mark.parametrize(
    ("version", "maximum"), [("3.13.7", None), ("4.0.1", 21), (None, 21)], ids=["3.13", "4.0", "not known"]
)
def test_rabbitmq_has_a_default_limit_since_4_0(version: str | None, maximum: int | None) -> None:
    found = rabbit({"rabbitmq_version": version, "queues": [QUORUM]}).explain("q.quorum")
    assert found.maximum == maximum


def test_rabbitmq_s_delayed_retries_grow_to_their_maximum() -> None:
    definition = {
        "delivery-limit": 4,
        "delayed-retry-type": "all",
        "delayed-retry-min": 1000,
        "delayed-retry-max": 2500,
    }
    found = rabbit({"policies": [{**POLICY, "definition": definition}], "queues": [QUORUM]}).explain("q.quorum")
    assert [each.seconds for each in found.delays] == [1.0, 2.0, 2.5, 2.5]


def test_a_list_of_rabbitmq_s_policies_reads_too_with_definitions_as_text() -> None:
    found = rabbit([{**UNLIMITED, "definition": json.dumps(UNLIMITED["definition"])}])
    assert isinstance(found.rules, RabbitRules)
    assert found.explain("q.x").dead_letter == "DLQ"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "foreign",
    [
        [{"name": "com.shop.Order", "allDeclaredFields": True, "methods": [{"name": "<init>", "parameterTypes": []}]}],
        [{"name": "q", "vhost": "/", "durable": True, "arguments": {"x-queue-type": "quorum"}}],
        [{"pattern": ".*"}, {"definition": {"name": "x"}}],
    ],
    ids=["GraalVM's reflect-config.json", "queues", "halves of policies"],
)
def test_another_list_is_not_taken_for_rabbitmq_s_policies(tmp_path: Path, foreign: object, strict: bool) -> None:
    path = tmp_path / "reflect-config.json"
    path.write_text(json.dumps(foreign))
    with pytest.raises(ConfigFileError, match=r"reflect-config\.json:1:1: .*pattern and a definition.*list_policies"):
        redelivery.policies.read(path, strict=strict)


def test_what_rabbitmq_prints_and_exports_is_its_own(tmp_path: Path) -> None:
    printed = {"vhost": "/", "name": "p", "pattern": "^q", "apply-to": "queues", "priority": 0}
    definition = {"dead-letter-exchange": "", "dead-letter-routing-key": "DLQ"}
    path = tmp_path / "rabbit.json"
    for document in (
        [{**printed, "definition": json.dumps(definition)}],
        [{**printed, "pattern": "x"} | {"definition": definition}, {**printed, "definition": definition}],
        {"rabbit_version": "3.10.8", "users": [], "vhosts": [], "policies": [{**printed, "definition": definition}]},
        {"policies": [{**printed, "definition": definition}]},
    ):
        path.write_text(json.dumps(document))
        found = redelivery.policies.read(path)
        assert (found.format, found.explain("q.x").dead_letter) == ("rabbitmq", "DLQ")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pattern": "("}, "is not a regular expression"),
        ({"definition": {"delivery-limits": 5}}, "did you mean 'delivery-limit'"),
        ({"definition": {"delivery-limit": "x"}}, "delivery-limit='x' must be an integer"),
        ({"definition": {"dead-letter-strategy": "never"}}, "use one of at-most-once, at-least-once"),
        ({"apply-to": "people"}, "apply-to='people'"),
        ({"pattern": None}, "a policy without a pattern"),
        ({"priority": "high"}, "priority='high'"),
    ],
)
def test_rabbitmq_refuses_what_it_does_not_understand(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"definitions\.json:\d+:\d+: .*{says}"):
        rabbit({"policies": [{**POLICY, **change}]})


def test_client_policies_of_both_mean_the_same() -> None:
    assert broker_j(BROKER).redelivery_policies.policy_for("max3").maximum_redeliveries == 2
    assert broker_j(BROKER).dead_letter_strategies.strategy_for("max3") == redelivery.SharedDeadLetterStrategy(
        redelivery.Queue("DLQ"), process_non_persistent=True, process_expired=False
    )
    found = rabbit({"policies": [POLICY], "queues": [QUORUM]})
    assert found.redelivery_policies.policy_for("q.quorum").maximum_redeliveries == 5


def test_broker_j_s_json_may_have_comments_as_its_own_files_do() -> None:
    text = """/* of "Apache" // */ {
  // the virtual host
  "queues": [{"name": "a//b", /* in
  two lines */ "maximumDeliveryAttempts": 3, "alternateBinding": {"destination": "/*DLQ*/"}}]
}"""
    found = read(text, "host.json").explain("a//b")
    assert (found.maximum, found.dead_letter) == (3, "/*DLQ*/")
    assert "(host.json:4:43)" in str(found.settings[0])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_json_has_any_encoding_of_unicode(encoding: str) -> None:
    assert read_content(json.dumps({"policies": [POLICY]}).encode(encoding), "x.json").format == "rabbitmq"


def unexpected(text: str, place: Place) -> None:
    pytest.fail(f"{place}: {text}")


def test_json_has_a_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_tree, "MOST", 5)
    with pytest.raises(ConfigFileError, match="more than 5 values"):
        parse_json(b"[1, 2, 3, 4, 5]", "x.json", unexpected)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", r"x\.json:1:2: not JSON"),
        (b'{"policies": [}', r"x\.json:1:15: not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"policies": ' + b"9" * 5000 + b"}", "a number of 5000 digits"),
        (b'{"a": 1}', "no names of a broker"),
        (b'{"policies": "\xff"}', "not readable as JSON"),
        (b"/* {}", r"x\.json:1:6: not JSON"),
        (b"[]", None),
    ],
    ids=["cut off", "crossed", "deep", "long number", "foreign", "not UTF-8", "open comment", "empty"],
)
def test_what_is_not_such_json_is_an_error(content: bytes, says: str | None) -> None:
    if says is None:
        assert read_content(content, "x.json").format == "rabbitmq"
        return
    with pytest.raises(ConfigFileError, match=says):
        read_content(content, "x.json")


def test_a_value_knows_its_line_and_column() -> None:
    tree = parse_json(b'{\n  "a": [1,\n    {"b": true}]\n}', "x.json", unexpected)
    inner = list(tree.get("a") or ())[1].get("b")
    assert inner is not None
    assert (inner.value, str(inner.place)) == (True, "x.json:3:11")


TWICE = """\
{"vhosts": [], "queues": [
  {"name": "q", "vhost": "/", "arguments": {"x-queue-type": "quorum",
    "x-delivery-limit": 5,
    "x-delivery-limit": 50}}],
 "queues": []}
"""


def test_a_name_that_stands_twice_is_an_error_with_both_lines() -> None:
    with pytest.raises(ConfigFileError) as caught:
        read(TWICE, "x.json")
    assert str(caught.value).splitlines() == [
        "x.json:4:25: 'x-delivery-limit' stands twice: here, and in line 3 (x.json:3:25); leave one out",
        "x.json:5:12: 'queues' stands twice: here, and in line 1 (x.json:1:26); leave one out",
    ]
    found = read(TWICE.replace(' "queues": []', ' "users": []'), "x.json", strict=False)
    assert (found.explain("q").maximum, len(found.problems)) == (51, 1)  # the last one counts, as for the broker


@pytest.mark.parametrize("document", [[1, [2, [], {}]], {"a": {"b": []}, "c": "[,"}, ["a,b"]])
def test_values_are_counted_before_they_are_read(document: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def number(value: object) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(number, inner))

    content = json.dumps(document).encode()
    monkeypatch.setattr(json_tree, "MOST", number(document))
    parse_json(content, "x.json", unexpected)
    monkeypatch.setattr(json_tree, "MOST", number(document) - 1)
    with pytest.raises(ConfigFileError, match="more than"):
        parse_json(content, "x.json", unexpected)
