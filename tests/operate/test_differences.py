"""Which destinations two configurations treat differently: by name, by pattern and by regular expression."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.policies.readers.documents import address_settings, classic, read

from redelivery.operate import as_json
from redelivery.operate.diff import diff
from redelivery.policies.brokers.policies import BrokerPolicies


def settings_of(**settings: Mapping[str, object]) -> BrokerPolicies:
    return read(address_settings(**settings), "broker.xml")


def test_differences_name_the_destinations_and_what_changes() -> None:
    before = settings_of(**{"#": {"max_delivery_attempts": 3}, "orders.#": {"redelivery_delay": 5}})
    after = settings_of(**{"#": {"max_delivery_attempts": 3}, "orders.#": {"redelivery_delay": 7}})
    (found,) = diff(before, after)
    assert found.title == "orders.>"
    assert [str(each) for each in found.changes] == [
        "outcome: 3 deliveries over 0.01 s, then removed (no dead-letter-address is set) -> "
        "3 deliveries over 0.014 s, then removed (no dead-letter-address is set)",
        "redelivery-delay: 5 -> 7",
        "max-redelivery-delay: 50 -> 70",
    ]
    assert diff(before, before) == ()
    assert as_json.differences((found,))[0]["destination"] == "orders.>"


def test_differences_of_all_others_are_found() -> None:
    found = diff(settings_of(orders={}), settings_of(**{"#": {"max_delivery_attempts": 2}}))
    assert [each.title for each in found] == ["orders", ">", "(all others)"]


def differences(before: BrokerPolicies, after: BrokerPolicies) -> dict[str, list[str]]:
    return {str(each).splitlines()[0]: [change.name for change in each.changes] for each in diff(before, after)}


DELAYED = {"redelivery_delay": 500, "max_delivery_attempts": 3}


def test_a_pattern_that_covers_other_depths_than_before_is_a_difference() -> None:
    before, after = settings_of(**{"orders.#": DELAYED}), settings_of(**{"orders.*": DELAYED})
    changed = ["outcome", "redelivery-delay", "max-redelivery-delay", "max-delivery-attempts"]
    assert differences(before, after) == {"orders.>, such as queue://orders": changed}
    assert differences(after, before) == {"orders.>, such as queue://orders": changed}
    longer = settings_of(**{"orders.#": DELAYED, "orders.*.*": {"max_delivery_attempts": 9}})
    assert differences(settings_of(**{"orders.#": DELAYED}), longer) == {
        "orders.*.*, such as queue://orders.x.x": ["outcome", "max-delivery-attempts"]
    }


def test_an_example_of_a_pattern_is_not_a_queue_that_has_settings_of_its_own() -> None:
    own = {"x": {"redelivery_delay": 1}, "orders.x": {"redelivery_delay": 1}}
    before, after = settings_of(**{"#": DELAYED}, **own), settings_of(**{"#": {"redelivery_delay": 2}}, **own)
    assert "redelivery-delay" in differences(before, after)[">, such as queue://xx"]


def test_destinations_that_two_patterns_match_are_compared_too() -> None:
    """What *.b says is its default, and counts where the delay is that of a.*."""
    settings = {"a.*": {"redelivery_delay": 1}, "*.b": {"redelivery_delay": 2}}
    fewer = {"a.*": {"redelivery_delay": 1}, "*.b": {"max_redelivery_delay": 20, "redelivery_delay": 2}}
    assert differences(settings_of(**settings), settings_of(**fewer)) == {"a.b": ["max-redelivery-delay"]}


def test_differences_of_topics_and_of_notes_are_found() -> None:
    entry = "<destinationPolicy><policyMap><defaultEntry><policyEntry><deadLetterStrategy>{}</deadLetterStrategy>"
    entry += "</policyEntry></defaultEntry></policyMap></destinationPolicy>"
    prefixed = [classic(entry.format(f'<individualDeadLetterStrategy topicPrefix="{each}"/>')) for each in ("A.", "B.")]
    queues, topics = diff(*prefixed)
    assert [each.name for each in queues.changes] == ["topicPrefix"]
    assert topics.changes[0].after.endswith("B.any.other.destination")
    counted = address_settings(orders={}).replace(
        "<address-settings>",
        "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery><address-settings>",
    )
    (found, _) = diff(read(counted), settings_of(orders={}))
    assert [each.name for each in found.changes] == ["note"]


POLICY = (
    '{{"policies": [{{"name": "dlx", "vhost": "/", "pattern": "{}", "priority": {}, '
    '"definition": {{"dead-letter-exchange": "x"}}}}], "queues": [{{"name": "orders"}}]}}'
)


def test_a_changed_pattern_of_a_rabbitmq_policy_is_a_difference() -> None:
    before = read(POLICY.format("^orders", 0))
    found = diff(before, read(POLICY.format("^order$", 0)))
    assert [each.title for each in found] == ["orders", "policy 'dlx'"]
    assert [str(each) for each in found[1].changes] == ["pattern: ^orders -> ^order$"]
    (priority,) = diff(before, read(POLICY.format("^orders", 7)))
    assert str(priority) == "policy 'dlx'\n  priority: 0 -> 7"
    assert as_json.differences((priority,))[0]["example"] is None
    assert diff(before, before) == ()


RULE = '{{"pattern": "{}", "nodeType": "queue", "attributes": {{"maximumDeliveryAttempts": {}}}}}'


def hosted(*rules: str) -> BrokerPolicies:
    return read(f'{{"name": "h", "modelVersion": "9.0", "nodeAutoCreationPolicies": [{", ".join(rules)}]}}')


def test_a_changed_node_auto_creation_policy_of_broker_j_is_a_difference() -> None:
    one, two = RULE.format("web.*", 3), RULE.format("shop.*", 4)
    title = "nodeAutoCreationPolicy 'web.*' of virtual host 'default'"
    assert [str(each.changes[0]) for each in diff(hosted(one), hosted(two))] == [
        "pattern: web.* -> (nothing)",
        "pattern: (nothing) -> shop.*",
    ]
    (found,) = diff(hosted(one), hosted(RULE.format("web.*", 5)))
    assert (found.title, str(found.changes[0])) == (title, "maximumDeliveryAttempts: 3 -> 5")
    assert [str(each.changes[0]) for each in diff(hosted(one, two), hosted(two, one))] == [
        "asked as number: 1 -> 2",
        "asked as number: 2 -> 1",
    ]


def test_a_queue_of_a_second_virtual_host_is_compared_too() -> None:
    host = "<virtualhost><name>{0}</name><{0}><queues><queue><name>q</name><q><maximumDeliveryCount>{1}"
    host += "</maximumDeliveryCount></q></queue></queues></{0}></virtualhost>"
    files = [
        read(f"<virtualhosts><default>a</default>{host.format('a', 3)}{host.format('b', each)}</virtualhosts>")
        for each in (4, 5)
    ]
    assert differences(*files) == {"b/q": ["outcome", "maximumDeliveryCount"]}


def test_a_queue_of_a_second_virtual_host_of_rabbitmq_is_compared_too() -> None:
    queue = '{{"name": "q", "vhost": "{}", "arguments": {{"x-queue-type": "quorum", "x-delivery-limit": {}}}}}'
    rule = '{{"name": "all", "pattern": ".*", "vhost": "web", "definition": {{"message-ttl": {}}}}}'
    one, two = (
        read(f'{{"queues": [{queue.format("/", 3)}, {queue.format("web", limit)}], "policies": [{rule.format(ttl)}]}}')
        for limit, ttl in ((4, 1000), (5, 2000))
    )
    assert differences(one, two) == {
        "web/q": ["outcome", "message-ttl", "x-delivery-limit"],
        "web/(all others)": ["message-ttl"],
        "policy 'all' of virtual host 'web'": ["message-ttl"],
    }
    texts = [f'{{"queues": [{queue.format("/", each)}, {queue.format("web", 3)}]}}' for each in (3, 4)]
    default = [read(text, format="rabbitmq") for text in texts]
    assert list(differences(*default)) == ["q", "//q"]


@pytest.mark.parametrize("match", ["/queue/x", "a,b", "temp-queue://x", "queue://a"])
def test_an_address_that_no_destination_of_ours_has_is_compared_as_it_stands(match: str) -> None:
    before, after = settings_of(**{match: {"redelivery_delay": 5}}), settings_of(**{match: {"redelivery_delay": 6}})
    assert [str(each) for each in diff(before, after)] == [f"address-setting {match!r}\n  redelivery-delay: 5 -> 6"]
    assert diff(before, before) == ()


def test_characters_that_are_no_wildcards_in_the_file_are_compared_too() -> None:
    wildcards = "<wildcard-addresses><any-words>~</any-words></wildcard-addresses><address-settings>"
    files = [
        read(address_settings(**{"a.#": {"redelivery_delay": each}}).replace("<address-settings>", wildcards))
        for each in (5, 6)
    ]
    assert list(differences(*files)) == ["address-setting 'a.#'"]
