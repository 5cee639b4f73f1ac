"""ActiveMQ Classic's activemq.xml: strategies by destination, the plug-ins that redeliver and discard, and refusals."""

from __future__ import annotations

import pytest
from tests.policies.readers.documents import classic, policy_entries, read, redelivery_plugin

import redelivery
from redelivery.model.destinations import Queue, Topic
from redelivery.policies.brokers.classic.rules import ClassicRules, DiscardingPlugin
from redelivery.policies.dead_letters import CopyTo, Discard
from redelivery.policies.files.places import ConfigFileError

INDIVIDUAL = """
<policyEntry queue="orders.>" persistJMSRedelivered="true">
  <deadLetterStrategy>
    <individualDeadLetterStrategy queuePrefix="DLQ." queueSuffix=".x" useQueueForQueueMessages="true"
      processNonPersistent="true" processExpired="false" expiration="5000" enableAudit="false" maxAuditDepth="7"
      destinationPerDurableSubscriber="true"/>
  </deadLetterStrategy>
</policyEntry>"""

DEFAULT = """
<defaultEntry>
  <redeliveryPolicy maximumRedeliveries="3" initialRedeliveryDelay="5000" redeliveryDelay="10000"/>
</defaultEntry>"""


def strategy(inside: str) -> str:
    return f"<deadLetterStrategy>{inside}</deadLetterStrategy>"


def rules(inside: str) -> ClassicRules:
    found = classic(inside).rules
    assert isinstance(found, ClassicRules)
    return found


@pytest.mark.promise("classic-poison")
def test_without_a_policy_the_shared_dead_letter_queue_counts_and_the_client_s_own_policy() -> None:
    said = str(classic("").explain("orders"))
    assert "as the client's policy says (by default 7 deliveries over 6 s), then ActiveMQ.DLQ" in said
    assert "nothing matches" in said


@pytest.mark.promise("classic-individual", "seen-classic-loop")
def test_an_individual_strategy_is_read_with_all_its_options_and_their_lines() -> None:
    found = classic(policy_entries(INDIVIDUAL))
    assert found.explain("orders.eu").dead_letter == "DLQ.orders.eu.x"
    assert found.explain("others").dead_letter == "ActiveMQ.DLQ"
    everywhere = classic(policy_entries(INDIVIDUAL.replace("orders.>", ">")))
    assert everywhere.explain("DLQ.a.x").dead_letter == "DLQ.DLQ.a.x.x"  # as any other queue
    rule = rules(policy_entries(INDIVIDUAL)).dead_letters_for(redelivery.Queue("orders.eu"))
    assert rule.strategy == redelivery.IndividualDeadLetterStrategy(
        queue_prefix="DLQ.", queue_suffix=".x", process_non_persistent=True, process_expired=False, expiration=5
    )
    assert (rule.enable_audit, rule.max_audit_depth, rule.destination_per_durable_subscriber) == (False, 7, True)
    assert "queuePrefix = DLQ., from individualDeadLetterStrategy (activemq.xml:6:35)" in str(
        found.explain("orders.eu")
    )


@pytest.mark.parametrize(
    "inside",
    [
        "<sharedDeadLetterStrategy><deadLetterQueue>"
        '<queue physicalName="Dead"/></deadLetterQueue></sharedDeadLetterStrategy>',
        '<sharedDeadLetterStrategy deadLetterQueue="Dead"/>',
        '<sharedDeadLetterStrategy deadLetterQueue="queue://Dead"/>',
        '<bean class="org.apache.activemq.broker.region.policy.SharedDeadLetterStrategy">'
        '<property name="deadLetterQueue" value="Dead"/></bean>',
    ],
    ids=["element", "attribute", "scheme", "bean"],
)
def test_a_shared_strategy_may_name_its_queue(inside: str) -> None:
    text = policy_entries(f'<policyEntry queue=">">{strategy(inside)}</policyEntry>')
    assert classic(text).explain("orders").dead_letter == "Dead"


@pytest.mark.promise("classic-individual", "seen-classic-topic")
def test_a_dead_letter_destination_may_be_a_topic() -> None:
    inside = '<individualDeadLetterStrategy useQueueForTopicMessages="false"/>'
    text = policy_entries(f'<policyEntry topic=">">{strategy(inside)}</policyEntry>')
    assert classic(text).explain(Topic("news")).dead_letter == "topic://ActiveMQ.DLQ.Topic.news"


def test_a_discarding_strategy_removes_what_fails() -> None:
    text = policy_entries(
        '<policyEntry queue="logs"><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>'
    )
    found = classic(text).explain("logs")
    assert found.dead_letter is None
    assert "removed (messages of queue://logs are discarded)" in found.summary


def test_the_most_specific_entry_counts_as_a_whole_and_the_default_entry_last() -> None:
    entries = policy_entries('<policyEntry queue="a.b"/>' + INDIVIDUAL.replace("orders.>", "a.>"))
    default = (
        "<defaultEntry><policyEntry><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry></defaultEntry>"
    )
    text = entries.replace("</policyMap>", default + "</policyMap>")
    assert classic(text).explain("a.b").dead_letter == "ActiveMQ.DLQ"
    assert classic(text).explain("a.c").dead_letter == "DLQ.a.c.x"
    assert classic(text).explain("z").dead_letter is None


@pytest.mark.promise("classic-broker-redelivery", "seen-classic-plugin-count")
def test_the_redelivery_plug_in_sends_again_by_its_policies() -> None:
    found = classic(redelivery_plugin(default=DEFAULT))
    special, other = found.explain("SpecialQueue"), found.explain("x")
    assert (special.maximum, [each.seconds for each in special.delays]) == (5, [1.0, 10.0, 10.0, 10.0])
    assert (other.maximum, [each.seconds for each in other.delays]) == (4, [5.0, 10.0, 10.0])
    assert other.dead_letter == "ActiveMQ.DLQ"
    assert found.redelivery_policies.policy_for("SpecialQueue").maximum_redeliveries == 4
    assert found.redelivery_policies.policy_for("x").delay(1) == 5.0


@pytest.mark.promise("classic-fallback", "classic-exceeded", "seen-classic-gone")
@pytest.mark.parametrize(
    ("fallback", "dead", "queue", "fate"),
    [
        (True, True, "x", "ActiveMQ.DLQ"),
        (False, True, "x", "removed (no redelivery policy matches, and fallbackToDeadLetter is false)"),
        (False, True, "SpecialQueue", "ActiveMQ.DLQ"),
        (True, False, "SpecialQueue", "removed (sendToDlqIfMaxRetriesExceeded is false)"),
    ],
)
def test_the_flags_of_the_redelivery_plug_in_say_where_a_message_ends(
    fallback: bool, dead: bool, queue: str, fate: str
) -> None:
    found = classic(redelivery_plugin(fallback=fallback, dead=dead))
    assert found.explain(queue).fate == fate
    strategy = found.dead_letter_strategies.strategy_for(queue)  # of a client that does the same
    failed, expired = (
        strategy.decide(Queue(queue), persistent=True, expired=each, native_available=False) for each in (False, True)
    )
    kept = CopyTo(Queue("ActiveMQ.DLQ"))
    assert failed == kept if fate == "ActiveMQ.DLQ" else isinstance(failed, Discard)
    assert expired == kept  # the plug-in does not touch it


def test_what_the_redelivery_plug_in_removes_is_combined_with_the_policy_entries_and_the_other_plug_in() -> None:
    inside = redelivery_plugin(dead=False).replace("SpecialQueue", "orders.*")
    inside = inside.replace("</plugins>", '<discardingDLQBrokerPlugin dropAll="false" dropOnly="other"/></plugins>')
    own = '<policyEntry queue="{}">' + strategy('<individualDeadLetterStrategy queuePrefix="{}."/>') + "</policyEntry>"
    found = classic(policy_entries(own.format(">", "ALL") + own.format("orders.>", "ORDERS")) + inside)
    fates = {}
    for queue in ("orders.eu", "orders.eu.1", "x", "other"):
        decision = found.dead_letter_strategies.strategy_for(queue).decide(
            Queue(queue), persistent=True, expired=False, native_available=False
        )
        fates[queue] = decision.destination.name if isinstance(decision, CopyTo) else None
        assert fates[queue] == found.explain(queue).dead_letter
    assert fates == {"orders.eu": None, "orders.eu.1": "ORDERS.orders.eu.1", "x": "ALL.x", "other": None}


@pytest.mark.promise("classic-discarding", "seen-classic-whole-name")
@pytest.mark.parametrize(
    ("plugin", "dropped"),
    [
        ("<discardingDLQBrokerPlugin/>", ("orders", "test.123")),
        ('<discardingDLQBrokerPlugin dropAll="false" dropOnly="orders  .*[0-9]{3}"/>', ("orders", "test.123")),
        ('<discardingDLQBrokerPlugin dropAll="false" dropOnly="order"/>', ()),
        ('<discardingDLQBrokerPlugin dropAll="false"/>', ()),
        (
            '<bean xmlns="urn:spring" class="org.apache.activemq.plugin.DiscardingDLQBrokerPlugin">'
            '<property name="dropOnly" value="orders"/><property name="dropAll" value="false"/></bean>',
            ("orders",),
        ),
    ],
    ids=["all", "only these", "as a whole", "none", "bean"],
)
def test_the_discarding_plug_in_drops_all_or_what_its_expressions_match_as_a_whole(
    plugin: str, dropped: tuple[str, ...]
) -> None:
    found = classic(f"<plugins>{plugin}</plugins>")
    assert tuple(each for each in ("orders", "test.123") if found.explain(each).dead_letter is None) == dropped


def test_the_options_of_the_discarding_plug_in_are_read() -> None:
    options = 'dropAll="false" dropTemporaryTopics="false" dropTemporaryQueues="false" reportInterval="0"'
    expected = DiscardingPlugin(False, False, False, (), 0)
    assert rules(f"<plugins><discardingDLQBrokerPlugin {options}/></plugins>").discarding == expected


def test_a_plug_in_that_discards_everything_before_the_one_that_redelivers_leaves_it_nothing() -> None:
    both = redelivery_plugin(default=DEFAULT)
    assert classic(both.replace("</plugins>", "<discardingDLQBrokerPlugin/></plugins>")).explain("x").maximum == 1
    assert classic(both.replace("<plugins>", "<plugins><discardingDLQBrokerPlugin/>")).explain("x").maximum == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('<policyEntry queue="a"/><policyEntry queue="a"/>', "'queue://a' occurs twice"),
        ('<policyEntry queue="a.>.b"/>', "can only be the last word"),
        ("<policyEntry/>", "policyEntry without queue or topic"),
        ('<policyEntry queue="a" persistJmsRedelivered="true"/>', "did you mean 'persistJMSRedelivered'"),
        ('<policyEntry queue="a"><deadLetterStategy/></policyEntry>', "did you mean 'deadLetterStrategy'"),
        (INDIVIDUAL.replace("individualD", "indvidualD"), "did you mean 'individualDeadLetterStrategy'"),
        (INDIVIDUAL.replace("queuePrefix", "queuesPrefix"), "did you mean 'queuePrefix'"),
        (INDIVIDUAL.replace('"5000"', '"5 s"'), "expiration='5 s' must be an integer"),
        (INDIVIDUAL.replace('"false"', '"no"'), "processExpired='no': use true or false"),
    ],
)
def test_what_is_not_understood_of_a_policy_entry_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        classic(policy_entries(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<redelivryPlugin/>", "did you mean 'redeliveryPlugin'"),
        ('<discardingDLQBrokerPlugin dropOnly="("/>', "is not a regular expression"),
        ('<discardingDLQBrokerPlugin dropNothing="true"/>', "unknown option 'dropNothing'"),
    ],
)
def test_what_is_not_understood_of_a_plug_in_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        classic(f"<plugins>{text}</plugins>")


@pytest.mark.promise("classic-scheduler", "seen-classic-refused")
def test_what_the_broker_does_not_start_with_is_refused() -> None:
    plugin = redelivery_plugin(default=DEFAULT.replace("10000", "999"))
    with pytest.raises(ConfigFileError, match="redeliveryDelay=999: redeliveryPlugin needs at least 1000"):
        classic(plugin)
    with pytest.raises(ConfigFileError, match='unless it has schedulerSupport="true"'):
        read(f"<broker>{redelivery_plugin()}</broker>")


def test_other_sections_and_entries_of_temporary_destinations_are_skipped_and_listed() -> None:
    text = "<transportConnectors/><plugins><statisticsBrokerPlugin/></plugins>" + policy_entries(
        '<policyEntry tempQueue=">"/>'
    )
    assert [each.name for each in classic(text).unread] == [
        "transportConnectors",
        "policyEntry of temporary destinations",
        "statisticsBrokerPlugin",
    ]


def test_that_an_entry_orders_by_priority_is_listed_since_the_embedded_broker_does_not() -> None:
    found = classic(
        policy_entries(
            '<policyEntry queue="a" prioritizedMessages="true"/><policyEntry queue="b" prioritizedMessages="false"/>'
        )
    )
    assert [str(each).partition(" (")[0] for each in found.unread] == ["prioritizedMessages of policyEntry queue://a"]


@pytest.mark.parametrize(
    "text",
    [
        '<a:broker xmlns:a="http://activemq.apache.org/schema/core"><a:destinationPolicy><a:policyMap><a:policyEntries>'
        '<a:policyEntry queue="x"><a:deadLetterStrategy><a:discarding/></a:deadLetterStrategy></a:policyEntry>'
        "</a:policyEntries></a:policyMap></a:destinationPolicy></a:broker>",
        "<broker>"
        + policy_entries('<policyEntry queue="x"><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>')
        + "</broker>",
    ],
    ids=["prefix", "no namespace"],
)
def test_a_broker_may_stand_alone_and_have_any_prefix(text: str) -> None:
    assert read(text).explain("x").dead_letter is None


def test_placeholders_of_destinations_and_values_are_resolved() -> None:
    inside = strategy('<individualDeadLetterStrategy queuePrefix="${dlq}."/>')
    text = policy_entries(f'<policyEntry queue="${{shop}}.>">{inside}</policyEntry>')
    assert classic(text, properties={"shop": "s", "dlq": "d"}).explain("s.x").dead_letter == "d.s.x"


def test_what_is_asked_is_in_the_broker_s_order_the_last_plug_in_first() -> None:
    default = '<defaultEntry><redeliveryPolicy maximumRedeliveries="2"/></defaultEntry>'
    entry = policy_entries('<policyEntry queue=">"/>')
    plugin = redelivery_plugin(default=default)
    drops = '<discardingDLQBrokerPlugin dropAll="false" dropOnly="a"/></plugins>'
    found = classic(entry + plugin.replace("</plugins>", drops)).explain("a")
    assert [each.title for each in found.matched] == [
        "discardingDLQBrokerPlugin",
        "redeliveryPolicy (default) of redeliveryPlugin",
        "policyEntry 'queue://>'",
    ]
    assert found.maximum == 1  # it is dropped before it could be sent again


@pytest.mark.parametrize("name", ["destinationPolicy", "plugins"])
def test_a_reference_to_a_bean_is_not_passed_over(name: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"file\.xml:1:56: {name}='#x' names a bean, which is not read"):
        read(f'<broker xmlns="http://activemq.apache.org/schema/core" {name}="#x"/>')


def test_a_blueprint_around_the_broker_is_read_as_spring_s_beans_are() -> None:
    """``activemq-blueprint.xml``, for OSGi containers such as Karaf."""
    found = read(
        f"""
        <blueprint xmlns="http://www.osgi.org/xmlns/blueprint/v1.0.0"
            xmlns:cm="http://aries.apache.org/blueprint/xmlns/blueprint-cm/v1.0.0"
            xmlns:amq="http://activemq.apache.org/schema/core">
          <cm:property-placeholder persistent-id="org.apache.activemq"/>
          <amq:broker xmlns="http://activemq.apache.org/schema/core">{policy_entries(INDIVIDUAL)}</amq:broker>
        </blueprint>"""
    )
    assert found.format == "activemq"
    assert found.explain("orders.eu").dead_letter == "DLQ.orders.eu.x"
    assert [each.name for each in found.unread] == ["property-placeholder"]


def test_a_topic_s_explanation_says_what_the_broker_drops() -> None:
    found = classic(policy_entries('<policyEntry topic=">"/>'))
    said = "a subscription that is not durable"
    assert [any(said in note for note in found.explain(each).notes) for each in ("topic://news", "news")] == [
        True,
        False,
    ]
    strategy = (
        '<individualDeadLetterStrategy topicPrefix="D." topicSuffix=".x" destinationPerDurableSubscriber="true"/>'
    )
    entry = f'<policyEntry topic=">"><deadLetterStrategy>{strategy}</deadLetterStrategy></policyEntry>'
    assert any("D.n.<clientId>:<name>.x," in note for note in classic(policy_entries(entry)).explain("topic://n").notes)
