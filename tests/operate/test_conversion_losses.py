"""What a conversion keeps of what both formats have, and what it says of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policies.readers.documents import address_settings, classic, policy_entries, read

import redelivery
from redelivery.model.destinations import Queue
from redelivery.operate.convert import TARGETS, convert
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.broker_j.rules import BrokerJRules
from redelivery.policies.brokers.formats import read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules

OTHERS = [each for each in TARGETS if each not in ("json", "spring_boot")]  # the latter refuses what it cannot hold
EXPIRY: dict[str, object] = {
    "dead_letter_address": "DLQ",
    "expiry_address": "EXP",
    "expiry_delay": 7000,
    "min_expiry_delay": 1000,
    "max_expiry_delay": 9000,
    "auto_create_expiry_resources": "true",
    "expiry_queue_prefix": "E.",
    "send_to_dla_on_no_route": "true",
}
PERSISTS = "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery>"
RECORDS = "<max-redelivery-records>3</max-redelivery-records>"
DELAYED: dict[str, object] = {"redelivery_delay": 500}
FULL = read(
    address_settings(**{"#": EXPIRY, "orders.#": DELAYED}).replace(
        "<address-settings>",
        PERSISTS + RECORDS + '<addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>'
        '<address name="news"><multicast><queue name="all"><filter string="a = 1"/></queue></multicast></address>'
        "</addresses><address-settings>",
    )
)


def again(policies: BrokerPolicies, to: str) -> BrokerPolicies:
    return read_content(convert(policies, to).text.encode(), "converted", format=to)


def artemis_rules(policies: BrokerPolicies, to: str) -> ArtemisRules:
    rules = again(policies, to).rules
    assert isinstance(rules, ArtemisRules)
    return rules


@pytest.mark.parametrize("to", ["python", "uri", "activemq", "qpid", "broker_j", "rabbitmq"])
def test_what_only_artemis_has_is_lost_aloud(to: str) -> None:
    lost = convert(FULL, to).lost
    assert "persist-delivery-count-before-delivery = true is lost" in lost
    assert "max-redelivery-records = 3 is lost" in lost
    for name, value in (("expiry-delay", "7000"), ("send-to-dla-on-no-route", "true")):
        assert f"address-setting '#': {name} = {value} is lost" in lost
    for name, value in (("auto-create-expiry-resources", "true"), ("expiry-queue-prefix", "E.")):
        assert (f"address-setting '#': {name} = {value} is lost" in lost) is (to != "python")
    assert "queue 'all': its filter is lost" in lost
    if to not in ("uri", "python"):
        assert any("EXP" in each or "expired messages are removed" in each for each in lost)
    if to != "broker_j":
        assert any("shortest time to live (1 s) is lost" in each for each in lost)
    if to not in ("broker_j", "rabbitmq"):
        assert ">: the longest time to live (9 s) is lost" in lost


def test_hornetq_keeps_what_it_has_of_artemis_file() -> None:
    found = artemis_rules(FULL, "hornetq")
    assert found.persist_delivery_count_before_delivery
    settings = found.settings_for("jms.queue.orders.new")
    assert (settings.dead_letter_address, settings.expiry_address) == ("jms.queue.DLQ", "jms.queue.EXP")
    assert (settings.expiry_delay, settings.redelivery_delay, settings.send_to_dla_on_no_route) == (7.0, 0.5, True)
    assert found.settings_for("jms.topic.orders").redelivery_delay == 0.5
    assert [(each.address, each.name, each.filter) for each in found.queues] == [
        ("jms.queue.DLQ", "jms.queue.DLQ", None),
        ("jms.queue.EXP", "jms.queue.EXP", None),
        ("jms.topic.news", "all", "a = 1"),
    ]
    assert set(convert(FULL, "hornetq").lost) == {
        "#: HornetQ has no auto-create-expiry-resources (here true)",
        "#: HornetQ has no expiry-queue-prefix (here E.)",
        "#: HornetQ has no max-expiry-delay (here 9000)",
        "#: HornetQ has no min-expiry-delay (here 1000)",
        "HornetQ has no max-redelivery-records (here 3)",
        "HornetQ makes no queue by itself: add those that have no entry of their own",
    }


HORNETQ = f"""
<configuration xmlns="urn:hornetq">{PERSISTS}<address-settings>
  <address-setting match="#"><expiry-address>jms.queue.EXP</expiry-address></address-setting>
  <address-setting match="jms.#"><dead-letter-address>jms.queue.DLQ</dead-letter-address></address-setting>
  <address-setting match="jms.queue.orders"><expiry-delay>7000</expiry-delay></address-setting>
  <address-setting match="jms.topic.orders"><expiry-delay>8000</expiry-delay></address-setting>
  <address-setting match="jms.topic.news"><expiry-delay>9000</expiry-delay></address-setting>
</address-settings><queues><queue name="jms.queue.DLQ"><address>jms.queue.DLQ</address></queue></queues>
</configuration>"""


def test_artemis_keeps_all_of_hornetq_s_file_but_the_kinds_of_addresses() -> None:
    found = artemis_rules(read(HORNETQ), "artemis")
    assert found.persist_delivery_count_before_delivery
    settings = found.settings_for("orders")
    assert (settings.dead_letter_address, settings.expiry_address, settings.expiry_delay) == ("DLQ", "EXP", 7.0)
    assert [(each.address, each.name) for each in found.queues] == [("DLQ", "DLQ"), ("EXP", "EXP")]
    assert convert(read(HORNETQ), "artemis").lost == (
        "jms.topic.orders: orders has the settings of the queues of that name",
        "an address-setting is for queues and topics alike: jms.topic.news becomes news",
    )
    assert "persist-delivery-count-before-delivery = true is lost" in convert(read(HORNETQ), "activemq").lost


def test_a_pattern_of_other_wildcards_and_a_name_that_has_one_of_ours() -> None:
    wildcards = "<wildcard-addresses><any-words>~</any-words></wildcard-addresses>"
    settings = address_settings(**{"a.~": {"redelivery_delay": 5}, "b.#": {"redelivery_delay": 6}})
    source = read(settings.replace("<address-settings>", wildcards + "<address-settings>"))
    assert artemis_rules(source, "hornetq").settings_for("jms.queue.a.b").redelivery_delay == 0.005
    assert "address-setting 'b.#': characters of its name are wildcards there" in convert(source, "hornetq").lost
    assert "address-setting 'b.#' is lost: no queue or topic has such a name" in convert(source, "python").lost


def test_another_address_of_the_expired_is_kept_by_a_client_and_lost_aloud_by_classic() -> None:
    elsewhere = read(address_settings(**{"#": {"dead_letter_address": "DLQ", "expiry_address": "EXP"}}))
    namespace: dict[str, Any] = {}
    exec(convert(elsewhere, "python").text, namespace)  # noqa: S102  # our own text
    assert namespace["dead_letter_strategies"] == elsewhere.dead_letter_strategies
    assert namespace["dead_letter_strategies"].default.for_expired.otherwise.dead_letter_queue == redelivery.Queue(
        "EXP"
    )
    assert convert(elsewhere, "python").lost == ()
    assert again(elsewhere, "activemq").dead_letter_strategies.strategy_for("orders").process_expired is False
    only = read(address_settings(**{"#": {"expiry_address": "EXP"}}))
    strategy = again(only, "activemq").dead_letter_strategies.strategy_for("orders")
    assert strategy == redelivery.DiscardingDeadLetterStrategy()
    for each in (elsewhere, only):
        assert ">: expired messages are removed, and do not go to EXP" in convert(each, "activemq").lost


EXPIRED = {"dead_letter_address": "DLQ", "expiry_address": "DLQ"}
KEPT = [address_settings(**{"#": EXPIRED}), address_settings(**{"#": {"dead_letter_address": "DLQ"}})]


@pytest.mark.parametrize(("file", "expired"), list(zip(KEPT, (True, False), strict=True)))
def test_expired_messages_become_dead_letters_where_they_did(file: str, expired: bool) -> None:
    source = read(file)
    strategy = again(source, "activemq").dead_letter_strategies.strategy_for("orders")
    assert strategy.process_expired is expired
    namespace: dict[str, Any] = {}
    exec(convert(source, "python").text, namespace)  # noqa: S102  # our own text
    assert namespace["dead_letter_strategies"].strategy_for("orders").process_expired is expired
    rules = again(source, "broker_j").rules
    assert isinstance(rules, BrokerJRules)
    assert rules.hosts[0].context.expiry_policy == ("ROUTE_TO_ALTERNATE" if expired else None)
    assert (">: expired messages become dead letters too" in convert(source, "rabbitmq").lost) is not expired
    assert (">: expired messages are removed" in convert(source, "qpid").lost) is expired


TTL = """
{"modelVersion": "9.0", "name": "h", "queues": [{"name": "q", "maximumMessageTtl": 9000, "minimumMessageTtl": 2000,
 "expiryPolicy": "ROUTE_TO_ALTERNATE", "alternateBinding": {"destination": "D"}}, {"name": "r"}]}"""


def test_the_bounds_of_times_to_live_are_kept_where_there_are_any() -> None:
    broker_j = read(TTL)
    settings = artemis_rules(broker_j, "artemis").settings_for("q")
    assert (settings.min_expiry_delay, settings.max_expiry_delay, settings.expiry_address) == (2.0, 9.0, "D")
    assert artemis_rules(broker_j, "artemis").settings_for("r").max_expiry_delay == -1
    rabbit = again(broker_j, "rabbitmq").rules
    assert isinstance(rabbit, RabbitRules)
    assert [level.message_ttl for _, level in rabbit.levels_for("q")] == [9.0]
    back = again(again(broker_j, "artemis"), "broker_j").rules
    assert isinstance(back, BrokerJRules)
    level = back.hosts[0].queues[0].level
    assert (level.minimum_message_ttl, level.maximum_message_ttl) == (2.0, 9.0)
    for to in ("python", "uri", "activemq", "hornetq", "qpid"):
        lost = convert(broker_j, to).lost
        assert {"q: the shortest time to live (2 s) is lost", "q: the longest time to live (9 s) is lost"} <= {*lost}
    assert "q: the shortest time to live (2 s) is lost" in convert(broker_j, "rabbitmq").lost


STRATEGY = '<policyEntry queue="{0}"><deadLetterStrategy><{1}/></deadLetterStrategy></policyEntry>'
CLASSIC = classic(
    policy_entries(
        STRATEGY.format("a", 'sharedDeadLetterStrategy expiration="5000" enableAudit="false"')
        + STRATEGY.format("b", 'individualDeadLetterStrategy useQueueForQueueMessages="false" maxAuditDepth="7"')
        + '<policyEntry queue="c" persistJMSRedelivered="true"/>'
    )
    + '<plugins><discardingDLQBrokerPlugin dropAll="false" dropOnly="x.*" reportInterval="5"/></plugins>'
)


@pytest.mark.parametrize("to", [each for each in OTHERS if each != "activemq"])
def test_what_only_classic_has_is_lost_aloud(to: str) -> None:
    lost = convert(CLASSIC, to).lost
    assert "policyEntry queue://a: enableAudit = false is lost" in lost
    assert "policyEntry queue://b: maxAuditDepth = 7 is lost" in lost
    assert "policyEntry queue://c: persistJMSRedelivered = true is lost" in lost
    if to == "uri":
        assert "a URL says nothing about dead letters" in lost
        return
    if to == "python":  # a client's strategies have it
        assert not any("expiration" in each for each in lost)
        return
    assert "policyEntry queue://a: expiration = 5000 is lost" in lost
    assert any("queue://b: useQueueForQueueMessages = false is lost" in each for each in lost)
    assert "discardingDLQBrokerPlugin: dropOnly = x.* is lost" in lost
    assert any(each.startswith("processNonPersistent = false is lost") for each in lost)


def test_what_classic_s_plug_in_removes_is_removed() -> None:
    """It sends nothing to a dead-letter queue after its last redelivery."""
    plugin = '<plugins><redeliveryPlugin sendToDlqIfMaxRetriesExceeded="false"><redeliveryPolicyMap>'
    plugin += "<redeliveryPolicyMap><defaultEntry><redeliveryPolicy/></defaultEntry></redeliveryPolicyMap>"
    source = classic(plugin + "</redeliveryPolicyMap></redeliveryPlugin></plugins>")
    assert source.explain("orders").dead_letter is None
    assert again(source, "artemis").explain("orders").dead_letter is None


HOST = "<virtualhost><name>{0}</name><{0}>{1}<queues><queue><name>q</name><q><maximumDeliveryCount>{2}"
HOST += "</maximumDeliveryCount></q></queue></queues></{0}></virtualhost>"
QPID = read(f"<virtualhosts><default>a</default>{HOST.format('a', '', 3)}{HOST.format('b', '', 5)}</virtualhosts>")
QUEUE = '"queues": [{{"name": "q", "maximumDeliveryAttempts": {}}}]'
NODE = '{{"name": "{}", "virtualhosts": [{{"name": "{}", {}}}]}}'
BROKER_J = read(
    f'{{"modelVersion": "9.0", "virtualhostnodes": [{NODE.format("a", "a", QUEUE.format(3))}, '
    f"{NODE.format('b', 'b', QUEUE.format(5))}]}}"
)


@pytest.mark.parametrize("source", [QPID, BROKER_J], ids=["qpid", "broker_j"])
def test_a_second_virtual_host_is_lost_aloud(source: BrokerPolicies) -> None:
    for to in OTHERS:
        if to != source.format:
            lost = convert(source, to).lost
            assert "virtual host 'b': q has the values of that of 'a'" in lost
            assert any(each.startswith("virtual host 'b': its queues are among the others") for each in lost)


def test_dead_letter_queues_of_all_queues_of_qpid_stay_queues_of_their_own() -> None:
    source = read(
        "<broker><deadLetterQueues>true</deadLetterQueues><maximumDeliveryCount>3</maximumDeliveryCount></broker>"
    )
    assert again(source, "activemq").explain("orders").dead_letter == "orders_DLQ"
    assert again(source, "qpid").explain("orders").dead_letter == "orders_DLQ"


CREATED = read(
    '{"modelVersion": "9.0", "name": "h", "nodeAutoCreationPolicies": [{"pattern": "web.*", "nodeType": "queue", '
    '"attributes": {"maximumDeliveryAttempts": 5, "alternateBinding": {"destination": "D"}}}], '
    '"queues": [{"name": "q"}]}'
)


def test_queues_that_broker_j_makes_by_itself_are_a_policy_of_rabbitmq_and_lost_aloud_elsewhere() -> None:
    rules = again(CREATED, "rabbitmq").rules
    assert isinstance(rules, RabbitRules)
    (level,) = (level for _, level in rules.levels_for("website"))
    assert (level.delivery_limit, level.dead_letter_routing_key) == (4, "D")
    assert [rules.rules_for(Queue(name)).maximum for name in ("q", "a.web")] == [None, None]
    for to in OTHERS:
        lost = "virtual host 'default': nodeAutoCreationPolicy 'web.*' is lost" in convert(CREATED, to).lost
        assert lost is (to not in ("rabbitmq", "broker_j"))


RABBIT = '{{"policies": [{}]}}'
POLICY = '{{"name": "{}", "pattern": "{}", "vhost": "/", "priority": {}, "definition": {{{}}}}}'
DEAD = '"dead-letter-exchange": "", "dead-letter-routing-key": "{}"'


@pytest.mark.parametrize("pattern", [".*", "", "^", "^.*$", ".+"])
def test_a_policy_of_rabbitmq_for_all_queues_is_kept(pattern: str) -> None:
    source = read(RABBIT.format(POLICY.format("all", pattern, 0, DEAD.format("DLQ") + ', "message-ttl": 4000')))
    found = again(source, "artemis").explain("orders")
    assert found.dead_letter == "DLQ"
    assert artemis_rules(source, "artemis").settings_for("orders").max_expiry_delay == 4.0
    assert not [each for each in convert(source, "artemis").lost if each.startswith("policy")]


def test_a_policy_of_rabbitmq_for_some_queues_is_lost_aloud() -> None:
    policies = [POLICY.format("web", "^web", 1, DEAD.format("D")), POLICY.format("all", ".*", 0, DEAD.format("DLQ"))]
    source = read(RABBIT.format(", ".join(policies)))
    for to in OTHERS:
        lost = "policy 'web' (^web): only the queues that the file lists keep it" in convert(source, to).lost
        assert lost is (to != "rabbitmq")


def test_a_dead_letter_exchange_whose_queue_is_not_known_is_said() -> None:
    queue = '{"queues": [{"name": "q", "arguments": {"x-dead-letter-exchange": "dlx"}}], "policies": []}'
    assert any("does not say where exchange 'dlx' leads" in each for each in convert(read(queue), "artemis").lost)


URL = read_url("tcp://a:1?jms.prefetchPolicy.queuePrefetch=7&jms.nonBlockingRedelivery=true")


def test_what_a_url_says_of_consumers_is_kept_by_a_client_and_lost_aloud_by_brokers() -> None:
    namespace: dict[str, Any] = {}
    python = convert(URL, "python")
    exec(python.text, namespace)  # noqa: S102  # our own text
    assert namespace["prefetch"] == redelivery.PrefetchPolicy(queue=7)
    assert namespace["non_blocking_redelivery"] is True
    assert python.lost == ()
    for to in OTHERS:
        if to not in ("python", "uri", "spring"):
            assert {"the prefetch of consumers is lost", "jms.nonBlockingRedelivery = true is lost"} <= {
                *convert(URL, to).lost
            }


def test_nothing_is_lost_in_json_or_the_same_format() -> None:
    for source in (FULL, CLASSIC, QPID, BROKER_J, CREATED, URL, read(HORNETQ)):
        assert convert(source, "json").lost == convert(source, source.format).lost == ()
