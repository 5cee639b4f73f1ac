"""The messaging subsystems of WildFly, JBoss EAP and JBoss AS: Artemis by attributes, HornetQ by elements."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.policies.readers.documents import read, written

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import convert
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.wildfly.rules import WildFlyRules

ALL: Final = '<address-setting name="#" dead-letter-address="jms.queue.DLQ" expiry-address="jms.queue.ExpiryQueue"/>'
CARGO: Final = """\
<address-setting name="jms.queue.cargo" redelivery-delay="30000" redelivery-multiplier="2.0"
    max-redelivery-delay="100000" max-delivery-attempts="4" expiry-delay="5000" send-to-dla-on-no-route="true"
    max-size-bytes="10485760" page-size-bytes="2097152" message-counter-history-day-limit="10"/>"""
QUEUES: Final = """\
<queue name="core" address="core.address" filter="a = 1" routing-type="ANYCAST"/><queue name="plain"/>
<jms-queue name="ExpiryQueue" entries="java:/jms/queue/ExpiryQueue"/>
<jms-queue name="DLQ" entries="java:/jms/queue/DLQ" selector="b = 2"/>
<jms-topic name="news" entries="java:/jms/topic/news"/><divert name="d" divert-address="a" forwarding-address="b"/>
<connection-factory name="c" entries="java:/c" connectors="in-vm"/>"""


def subsystem(inside: str, version: str = "13.0", name: str = "default") -> str:
    server = f'<server name="{name}">{inside}</server>'
    return f'<subsystem xmlns="urn:jboss:domain:messaging-activemq:{version}">{server}</subsystem>'


def standalone(*subsystems: str) -> str:
    others = '<subsystem xmlns="urn:jboss:domain:logging:8.0"><console-handler name="CONSOLE"/></subsystem>'
    profile = f"<profile>{others}{''.join(subsystems)}</profile>"
    return f'<server xmlns="urn:jboss:domain:19.0"><extensions/>{profile}<socket-binding-group/></server>'


def hornetq(settings: str, destinations: str = "", version: str = "3.0", more: str = "") -> str:
    inside = f"{more}<address-settings>{settings}</address-settings><jms-destinations>{destinations}</jms-destinations>"
    server = inside if version == "1.0" else f"<hornetq-server>{inside}</hornetq-server>"
    return standalone(f'<subsystem xmlns="urn:jboss:domain:messaging:{version}">{server}</subsystem>')


def setting(match: str, **values: object) -> str:
    inside = "".join(f"<{key.replace('_', '-')}>{value}</{key.replace('_', '-')}>" for key, value in values.items())
    return f'<address-setting match="{match}">{inside}</address-setting>'


def rules(text: str, **options: object) -> WildFlyRules:
    found = read(text, "standalone.xml", **options).rules
    assert isinstance(found, WildFlyRules)
    return found


JBOSS: Final = hornetq(
    setting("#", dead_letter_address="jms.queue.DLQ", max_delivery_attempts=3, redelivery_delay=1000)
    + setting("jms.queue.orders.eu", expiry_address="jms.queue.E", redelivery_multiplier=2.0, expiry_delay=500),
    '<jms-queue name="DLQ"><entry name="a"/><selector string="c = 3"/></jms-queue><jms-topic name="t"/>',
    "1.4",
    '<core-queues><queue name="q"><address>a</address><filter string="d = 4"/></queue></core-queues>',
)
WHOLE: Final = standalone(subsystem(f"{ALL}\n{CARGO}\n{QUEUES}"))


@pytest.mark.parametrize("version", ["1.0", "1.1", "4.0", "8.0", "13.0", "13.1", "16.0", "18.0", "community:17.0"])
def test_attributes_are_read_whatever_the_version_of_the_schema(version: str) -> None:
    found = read(standalone(subsystem(f"{ALL}{CARGO}", version)), "standalone-full.xml")
    assert (found.format, found.broker) == ("wildfly", "Artemis in WildFly")
    cargo = found.explain("queue://cargo")
    assert (cargo.maximum, [each.seconds for each in cargo.delays]) == (4, [30.0, 60.0, 100.0])
    assert (cargo.dead_letter, cargo.expired) == ("jms.queue.DLQ", "jms.queue.ExpiryQueue")
    assert found.explain("cargo") == found.explain("jms.queue.cargo") == cargo
    assert found.explain("topic://cargo").maximum == found.explain("other").maximum == 10


def test_each_setting_has_its_line_and_column_and_a_place_in_the_json() -> None:
    found = read(WHOLE, "standalone.xml").explain("cargo")
    places = {each.name: str(each.place) for each in found.settings if each.place}
    assert places["redelivery-delay"] == "standalone.xml:2:41"
    assert places["redelivery-delay-multiplier"] == "standalone.xml:2:66"
    assert places["max-redelivery-delay"] == "standalone.xml:3:5"


def test_queues_are_those_of_jms_with_their_prefix_and_those_of_the_core_without() -> None:
    found = rules(WHOLE)
    assert set(found.queues) == {
        BoundQueue("core.address", "core", "anycast", "a = 1"),
        BoundQueue("plain", "plain", "multicast"),
        BoundQueue("jms.queue.ExpiryQueue", "jms.queue.ExpiryQueue", "anycast"),
        BoundQueue("jms.queue.DLQ", "jms.queue.DLQ", "anycast", "b = 2"),
    }
    assert found.topics == ("news",)
    assert [each.name for each in read(WHOLE).unread] == ["divert", "connection-factory", "divert d"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "2.0", "3.0"])
def test_elements_of_hornetq_are_read_whatever_the_version_of_the_schema(version: str) -> None:
    settings = setting("#", dead_letter_address="jms.queue.DLQ") + setting("jms.queue.x", redelivery_delay=5000)
    queue = '<jms-queue name="DLQ"><entry name="a"/><selector string="c = 3"/><durable>true</durable></jms-queue>'
    more = "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery>"
    core = '<core-queues><queue name="q"><address>a</address><filter string="d = 4"/></queue></core-queues>'
    text = hornetq(settings, f'{queue}<jms-topic name="t"/>', version, more + core)
    found = rules(text)
    assert (found.dialect, found.broker, found.topics) == ("hornetq", "HornetQ in WildFly", ("t",))
    assert found.persist_delivery_count_before_delivery
    assert set(found.queues) == {
        BoundQueue("a", "q", "anycast", "d = 4"),
        BoundQueue("jms.queue.DLQ", "jms.queue.DLQ", "anycast", "c = 3"),
    }
    explained = read(text).explain("x")
    assert (explained.delays[0].seconds, explained.dead_letter) == (5.0, "jms.queue.DLQ")


@pytest.mark.parametrize(("version", "attempts"), [("1.1", 10), ("1.4", 10), ("2.0", 10), ("1.5", 3), ("3.0", 3)])
def test_before_wildfly_9_a_setting_hides_the_numbers_of_less_specific_ones(version: str, attempts: int) -> None:
    """AddressSettingAdd of JBoss AS 7 and WildFly 8 gives each one the defaults of what it does not say (WFLY-3375)."""
    all_others = setting("#", dead_letter_address="jms.queue.DLQ", max_delivery_attempts=3, redelivery_delay=1000)
    text = hornetq(all_others + setting("jms.queue.x", dead_letter_address="jms.queue.X"), version=version)
    explained = read(text).explain("x")
    assert (explained.maximum, explained.dead_letter) == (attempts, "jms.queue.X")
    assert explained.delays[0].seconds == (0.0 if attempts == 10 else 1.0)
    assert any("as in JBoss AS 7" in each for each in explained.notes) == (attempts == 10)
    assert read(text).explain("y").maximum == 3
    assert read(redelivery.policies.write(read(text))).explain("x").maximum == attempts


def test_artemis_own_default_of_ten_delays_at_most_is_wildfly_s_too() -> None:
    found = read(standalone(subsystem('<address-setting name="#" redelivery-delay="5" redelivery-multiplier="9"/>')))
    assert [each.seconds for each in found.explain("x").delays[:3]] == [0.005, 0.045, 0.05]


def test_placeholders_are_resolved_with_their_defaults_also_within_each_other() -> None:
    text = standalone(
        subsystem(
            '<address-setting name="#" max-delivery-attempts="${env.TRIES:7}" '
            'redelivery-delay="${a.delay,b.delay:${c.delay:100}}" dead-letter-address="jms.queue.${dead}"/>'
        )
    )
    found = read(text, properties={"dead": "D"}).explain("x")
    assert (found.maximum, found.delays[0].seconds, found.dead_letter) == (7, 0.1, "jms.queue.D")
    given = {"dead": "${which}", "which": "E", "env.TRIES": "2", "b.delay": "300"}
    found = read(text, properties=given).explain("x")
    assert (found.maximum, found.delays[0].seconds, found.dead_letter) == (2, 0.3, "jms.queue.E")
    with pytest.raises(redelivery.ConfigError, match=r"file\.xml:1:\d+: the placeholder \$\{dead\} has no value"):
        read(text)
    for endless in ("${dead}", "${dead}${dead}${dead}" * 9):
        with pytest.raises(redelivery.ConfigError, match="placeholders, without an end"):
            read(text, properties={"dead": endless})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('name="#" redelivery-delay="x"', "redelivery-delay='x' must be an integer"),
        ('name="#" max-delivery-attempts="-2"', "must be an integer from -1"),
        ('name="#" redelivery-delay-multiplier="2"', "did you mean 'redelivery-multiplier'"),
        ('name="#" max-delivery-attempt="2"', "did you mean 'max-delivery-attempts'"),
        ('name="#" dead-letter-adress="2"', "did you mean 'dead-letter-address'"),
        ('name="#" send-to-dla-on-no-route="maybe"', "use true or false"),
        ('name="#" dead-letter-address=""', "use the name of one address"),
        ('name="#" min-expiry-delay="5"', "unknown option 'min-expiry-delay'"),
        ('redelivery-delay="5"', "without match"),
        ('name="a.#.b"', "can only be the last word"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(settings: str, says: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=rf"^standalone\.xml:1:\d+: .*{says}"):
        rules(standalone(subsystem(f"<address-setting {settings}/>")))


def test_every_problem_is_in_one_error_and_a_setting_that_stands_twice_is_one() -> None:
    inside = '<address-setting name="a" redelivery-delay="x"/>\n<address-setting name="a"/>\n<dead-letters/>'
    with pytest.raises(redelivery.ConfigError) as caught:
        rules(standalone(subsystem(inside)))
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["3", "1", "2"]
    assert "first at standalone.xml:1:" in lines[2]


SMALL: Final = '<address-setting name="#" max-delivery-attempts="{}"/>'
DOMAIN: Final = (
    '<domain xmlns="urn:jboss:domain:19.0"><profiles><profile name="default"/>'
    '<profile name="full">{}</profile><profile name="full-ha">{}</profile></profiles></domain>'
)


def test_of_several_servers_with_other_rules_one_has_to_be_named(tmp_path: Path) -> None:
    file = written(tmp_path, "domain.xml", DOMAIN.format(*(subsystem(SMALL.format(n)) for n in (3, 4))))
    with pytest.raises(redelivery.ConfigError) as caught:
        redelivery.policies.read(file)
    assert "2 messaging servers: full/default (1:" in str(caught.value)
    assert str(caught.value).endswith(f"name one: {file}#full/default")
    assert redelivery.policies.read(f"{file}#full-ha/default").explain("x").maximum == 4
    with EmbeddedBroker("one-of-two", config=f"{file}#full/default") as broker:
        assert broker.core.config.rules == rules(standalone(subsystem(SMALL.format(3))))
    with pytest.raises(redelivery.ConfigError, match="there is no 'none': full/default"):
        redelivery.policies.read(f"{file}#none")


def test_of_several_servers_that_say_the_same_none_has_to_be_named() -> None:
    same = DOMAIN.format(subsystem(SMALL.format(3)), subsystem(SMALL.format(3).replace("#", "#") + "<divert/>"))
    assert read(same).explain("x").maximum == 3


def test_two_servers_of_one_subsystem_are_named_by_their_own_names() -> None:
    two = f'{SMALL.format(3)}</server><server name="second">{SMALL.format(4)}'
    with pytest.raises(redelivery.ConfigError, match=r"2 messaging servers: default \(1:\d+\), second \(1:\d+\)"):
        read(standalone(subsystem(two)))
    assert read(standalone(subsystem(two)), part="second").explain("x").maximum == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (standalone(), "no messaging subsystem .*: standalone-full.xml has one"),
        ('<domain xmlns="urn:jboss:domain:5.0"/>', "no messaging subsystem"),
        (
            standalone('<subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><connection-factory/></subsystem>'),
            "has no server: here WildFly is only a client",
        ),
        ('<messaging-deployment xmlns="urn:jboss:messaging-activemq-deployment:1.0"/>', "pass the standalone"),
    ],
)
def test_a_file_without_a_messaging_server_is_an_error_that_says_which_has_one(text: str, says: str) -> None:
    for format in (None, "wildfly"):
        with pytest.raises(redelivery.ConfigError, match=says):
            read(text, format=format)


def test_names_that_no_destination_of_ours_can_have_are_left_out() -> None:
    found = read(standalone(subsystem('<queue name=" q "/><jms-queue name=" j" entries="j"/><queue name="r"/>')))
    assert found.rules.names() == ("topic://r",)
    for letters in ("jms.queue.", "jms.queue. x"):
        with pytest.raises(redelivery.ConfigError, match="use the name of one address"):
            read(standalone(subsystem(f'<address-setting name="#" dead-letter-address="{letters}"/>')))


def test_explain_says_that_no_queue_stands_behind_an_address_of_dead_letters() -> None:
    found = read(standalone(subsystem(f'{ALL}<jms-queue name="DLQ" entries="d"/>'))).explain("x")
    assert [each for each in found.notes if "no queue" in each] == [
        "no queue stands behind jms.queue.ExpiryQueue: what goes there is removed, unless an application brings it "
        "along (*-jms.xml, @JMSDestinationDefinition)"
    ]


def test_a_template_of_wildfly_s_own_build_is_refused_as_its_settings_are_elsewhere() -> None:
    template = '<subsystem xmlns="urn:jboss:domain:messaging-activemq:4.0"><server name="default"/></subsystem>'
    with pytest.raises(redelivery.ConfigError, match="the root element 'config' is of none"):
        read(f"<config>{template}<supplement/></config>")


def test_a_part_of_a_file_is_enough() -> None:
    assert read(subsystem(ALL)).explain("x").dead_letter == "jms.queue.DLQ"


def test_a_match_without_the_prefix_is_not_that_of_the_queue_and_explain_says_so() -> None:
    text = standalone(subsystem(f'{ALL}<address-setting name="orders.#" max-delivery-attempts="3"/>'))
    found = read(text).explain("orders.eu")
    assert found.maximum == 10
    assert "address-setting 'orders.#' is not for jms.queue.orders.eu: that would be jms.queue.orders.#" in found.notes
    assert "jms.topic.orders.#" in str(read(text).explain("topic://orders"))
    assert "is not for" not in str(read(text).explain("other"))
    assert read(text).redelivery_policies.policy_for("orders.eu").maximum_redeliveries == 9
    lost = convert(read(text), "activemq").lost
    assert "address-setting 'orders.#' is lost: no queue or topic has such a name" in lost
