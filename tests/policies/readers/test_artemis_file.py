"""Artemis' broker.xml and HornetQ's hornetq-configuration.xml: what is read, from which line, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.policies.readers.documents import ARTEMIS, address_settings, read, written

import redelivery
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.places import ConfigFileError

SETTINGS = """\
<address-settings>
  <address-setting match="orders.#">
    <redelivery-delay>5000</redelivery-delay>
    <dead-letter-address>DLA</dead-letter-address>
  </address-setting>
  <address-setting match="#">
    <max-delivery-attempts>3</max-delivery-attempts>
    <redelivery-delay>10</redelivery-delay>
  </address-setting>
</address-settings>"""


def rules(text: str, **options: object) -> ArtemisRules:
    found = read(text, "broker.xml", **options).rules
    assert isinstance(found, ArtemisRules)
    return found


@pytest.mark.promise("artemis-two-remedies", "artemis-example-dead-letter", "seen-artemis-merge")
def test_each_field_comes_from_the_most_specific_match_that_sets_it_and_is_named_with_its_line() -> None:
    found = read(ARTEMIS.format(SETTINGS), "broker.xml").explain("orders.eu")
    assert found.maximum == 3
    assert [each.seconds for each in found.delays] == [5.0, 5.0]
    assert found.dead_letter == "DLA"
    assert [str(each) for each in found.matched] == [
        "address-setting 'orders.#' (broker.xml:4:3)",
        "address-setting '#' (broker.xml:8:3)",
    ]
    said = str(found)
    assert "3 deliveries over 10 s, then DLA" in said
    assert "redelivery-delay = 5000, from address-setting 'orders.#' (broker.xml:5:5)" in said
    assert "max-delivery-attempts = 3, from address-setting '#' (broker.xml:9:5)" in said


@pytest.mark.parametrize(
    "text",
    [
        f"<core>{SETTINGS}</core>",
        f"<configuration>{SETTINGS}</configuration>",
        SETTINGS,
        f'<a:configuration xmlns:a="urn:activemq"><b:core xmlns:b="urn:x">{SETTINGS}</b:core></a:configuration>',
    ],
    ids=["core", "no core", "a part", "prefixes"],
)
def test_a_file_reads_with_and_without_core_namespaces_and_prefixes(text: str) -> None:
    expected = rules(ARTEMIS.format(SETTINGS)).settings_for("orders")
    assert rules(text).settings_for("orders") == expected


@pytest.mark.promise("artemis-wildcards", "seen-artemis-order")
def test_a_match_of_words_and_any_further_words_covers_the_address_without_them() -> None:
    assert rules(ARTEMIS.format(SETTINGS)).settings_for("orders").redelivery_delay == 5.0


def test_a_hash_at_the_end_of_a_word_is_one_after_a_dot_as_in_the_file_that_artemis_is_delivered_with() -> None:
    found = rules(address_settings(**{"activemq.management#": {"max_delivery_attempts": 3}}))
    attempts = {
        name: found.settings_for(f"activemq.{name}").max_delivery_attempts
        for name in ("management", "management.x.y", "managementx", "x")
    }
    assert attempts == {"management": 3, "management.x.y": 3, "managementx": 10, "x": 10}
    assert found.names() == ("activemq.management.>",)


def test_hornetq_s_hash_at_the_end_of_a_word_is_refused() -> None:
    text = address_settings(**{"jms.queue.a#": {}}).replace("urn:activemq", "urn:hornetq")
    with pytest.raises(ConfigFileError, match="'#' as a part of a word is not supported"):
        read(text)


def test_a_pattern_that_hornetq_matches_otherwise_than_its_document_says_is_noted() -> None:
    text = address_settings(**{"jms.queue.orders.#": {}, "#": {}})
    said = "HornetQ 2.4 itself does not take jms.queue.orders.# for jms.queue.orders, though its document says so"
    hornetq = read(text.replace("urn:activemq", "urn:hornetq"))
    assert said in hornetq.explain("orders").notes
    assert not any("itself" in each for each in hornetq.explain("orders.eu").notes)
    assert not any("itself" in each for each in read(text).explain("jms.queue.orders").notes)


def test_another_broker_s_wildcard_is_a_word_like_any_other() -> None:
    found = rules(address_settings(**{"orders.>": {"max_delivery_attempts": 3}}))
    assert found.settings_for("orders.eu").max_delivery_attempts == 10
    assert found.settings_for("orders.>").max_delivery_attempts == 3
    assert found.names() == ()
    assert found.redelivery_policies().policy_for("orders.eu").maximum_redeliveries == 9


@pytest.mark.promise("artemis-wildcards", "seen-artemis-order")
def test_patterns_are_asked_in_the_broker_s_order() -> None:
    text = address_settings(**{each: {} for each in ("#", "a.#", "a.b.#", "a.*", "*.b", "a.b")})
    assert [each.match for each in rules(text).candidates("a.b")] == ["a.b", "a.*", "*.b", "a.b.#", "a.#", "#"]


def test_a_setting_is_not_inherited_only_where_it_is_set() -> None:
    text = address_settings(**{"#": {"max_delivery_attempts": 3}, "exempt": {"max_delivery_attempts": 10}})
    assert rules(text).settings_for("exempt").max_delivery_attempts == 10
    assert rules(text).entries[1].fields_set == {"max_delivery_attempts"}


@pytest.mark.promise("seen-hornetq-expiry")
def test_everything_that_concerns_redelivery_dead_letters_and_expiry_is_read() -> None:
    values: dict[str, object] = {
        "redelivery_delay": 1500,
        "redelivery_delay_multiplier": 1.5,
        "redelivery_collision_avoidance_factor": 0.15,
        "max_redelivery_delay": 50000,
        "max_delivery_attempts": -1,
        "dead_letter_address": "DLA",
        "send_to_dla_on_no_route": "true",
        "auto_create_dead_letter_resources": "true",
        "dead_letter_queue_prefix": "",
        "dead_letter_queue_suffix": ".DLQ",
        "expiry_address": "EXP",
        "expiry_delay": 1000,
        "min_expiry_delay": 500,
        "max_expiry_delay": -1,
        "no_expiry": "false",
        "auto_create_expiry_resources": "true",
        "expiry_queue_prefix": "E.",
        "expiry_queue_suffix": ".E",
    }
    assert rules(address_settings(x=values)).settings_for("x") == AddressSettings(
        redelivery_delay=1.5,
        redelivery_delay_multiplier=1.5,
        redelivery_collision_avoidance_factor=0.15,
        max_redelivery_delay=50,
        max_delivery_attempts=-1,
        dead_letter_address="DLA",
        send_to_dla_on_no_route=True,
        auto_create_dead_letter_resources=True,
        dead_letter_queue_prefix="",
        dead_letter_queue_suffix=".DLQ",
        expiry_address="EXP",
        expiry_delay=1,
        min_expiry_delay=0.5,
        max_expiry_delay=-1,
        no_expiry=False,
        auto_create_expiry_resources=True,
        expiry_queue_prefix="E.",
        expiry_queue_suffix=".E",
    )


@pytest.mark.promise("artemis-factor-range", "seen-artemis-refused")
def test_all_that_is_wrong_is_said_at_once_with_file_line_and_column() -> None:
    text = ARTEMIS.format(
        '<address-settings>\n<address-setting match="x">\n'
        "  <redelivery-delay>soon</redelivery-delay>\n"
        "  <redelivery-collision-avoidance-factor>1.5</redelivery-collision-avoidance-factor>\n"
        "  <max-redelivery-attempts>3</max-redelivery-attempts>\n"
        "</address-setting>\n</address-settings>"
    )
    with pytest.raises(redelivery.ConfigError) as raised:
        read(text, "broker.xml")
    assert str(raised.value).splitlines() == [
        "broker.xml:5:3: redelivery-delay='soon' must be an integer from 0 to 9223372036854775807",
        "broker.xml:6:3: redelivery-collision-avoidance-factor='1.5' must be a finite number from 0 to 1",
        "broker.xml:7:3: unknown option 'max-redelivery-attempts' of an address-setting; "
        "did you mean 'max-delivery-attempts'?",
    ]


def test_without_strict_the_rest_is_read_and_the_problems_are_kept() -> None:
    text = address_settings(x={"redelivery_delay": "soon", "max_delivery_attempts": 4})
    found = read(text, strict=False)
    assert found.explain("x").maximum == 4
    assert len(found.problems) == 1


def test_a_negative_multiplier_is_refused_with_which_artemis_starts() -> None:
    with pytest.raises(ConfigFileError, match=r"redelivery-delay-multiplier='-2\.0' must be a finite number"):
        read(address_settings(x={"redelivery_delay_multiplier": -2.0}))


@pytest.mark.parametrize(
    ("match", "says"),
    [
        ("", "without match"),
        ("a.#.b", "'#' can only be the last word"),
        ("a#b", "'#' can only be the last word"),
        ("ord*", r"'\*' as a part of a word is not supported"),
    ],
    ids=["none", "middle", "within a word", "part of a word"],
)
def test_a_match_that_the_broker_refuses_is_refused(match: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        read(address_settings(**{match: {}}))


def test_other_sections_are_skipped_and_listed() -> None:
    found = read(
        ARTEMIS.format("<security-settings/>\n<acceptors/>\n<message-expiry-scan-period>5</message-expiry-scan-period>")
    )
    assert [str(each) for each in found.unread] == [
        "security-settings (file.xml:3:1)",
        "acceptors (file.xml:4:1)",
        "message-expiry-scan-period (file.xml:5:1)",
    ]


def test_settings_about_other_things_are_skipped() -> None:
    assert rules(address_settings(x={"page_size_bytes": "10M", "max_size_bytes": -1})).entries[0].fields_set == set()


@pytest.mark.promise("seen-artemis-unbound")
def test_queues_that_the_file_makes_are_read_so_that_a_dead_letter_address_without_one_is_noted() -> None:
    queue = '<anycast><queue name="q"><filter string="a=1"/></queue></anycast>'
    addresses = '<addresses><address name="{}">' + queue + "</address></addresses>"
    lost = read(ARTEMIS.format(SETTINGS + addresses.format("other"))).explain("orders")
    kept = read(ARTEMIS.format(SETTINGS + addresses.format("DLA"))).explain("orders")
    assert any("no queue stands behind DLA: what goes there is removed" in note for note in lost.notes)
    assert not any("no queue stands" in note for note in kept.notes)
    assert rules(ARTEMIS.format(addresses.format("DLA"))).queues[0].filter == "a=1"


def test_other_wildcards_are_read() -> None:
    wildcards = (
        "<wildcard-addresses><delimiter>/</delimiter><any-words>&gt;</any-words>"
        "<single-word>+</single-word></wildcard-addresses>"
    )
    entry = '<address-setting match="a/+/&gt;"><redelivery-delay>1</redelivery-delay></address-setting>'
    entry = f"<address-settings>{entry}</address-settings>"
    assert rules(ARTEMIS.format(wildcards + entry)).settings_for("a/b/c/d").redelivery_delay == 0.001


def test_hornetq_is_recognised_by_its_namespace_or_its_name() -> None:
    assert read('<configuration xmlns="urn:hornetq"/>', "broker.xml").format == "hornetq"
    assert read("<configuration/>", "etc/hornetq-configuration.xml").format == "hornetq"
    assert read('<configuration xmlns="urn:activemq"/>', "hornetq.xml").format == "artemis"
    assert read("<configuration/>", "x.xml", format="hornetq").broker == "HornetQ"


def test_hornetq_has_no_collision_avoidance() -> None:
    with pytest.raises(ConfigFileError, match="unknown option 'redelivery-collision-avoidance-factor'"):
        read(address_settings(x={"redelivery_collision_avoidance_factor": 0.1}).replace("urn:activemq", "urn:hornetq"))


def test_an_include_of_the_same_folder_is_read_and_its_lines_are_named(tmp_path: Path) -> None:
    written(tmp_path, "parts/settings.xml", SETTINGS)
    path = written(tmp_path, "broker.xml", ARTEMIS.format('<xi:include href="parts/settings.xml"/>'))
    found = redelivery.policies.read(path).explain("orders.eu")
    assert found.maximum == 3
    assert found.matched[0].place is not None
    assert str(found.matched[0].place) == f"{tmp_path}/parts/settings.xml:2:3"


@pytest.mark.promise("artemis-removal")
def test_a_client_gets_the_policies_and_strategies_that_mean_the_same() -> None:
    found = read(ARTEMIS.format(SETTINGS))
    policy = found.redelivery_policies.policy_for("orders.eu")
    assert (policy.maximum_redeliveries, policy.delay(1), policy.delay(2)) == (2, 5.0, 5.0)
    assert found.redelivery_policies.policy_for("elsewhere").delay(1) == 0.01
    copied = redelivery.SharedDeadLetterStrategy(redelivery.Queue("DLA"), process_non_persistent=True)
    assert found.dead_letter_strategies.strategy_for("orders.eu") == redelivery.BrokerDeadLetterStrategy(
        broker="artemis", configured=True, otherwise=copied, process_expired=False
    )
    assert found.dead_letter_strategies.strategy_for("elsewhere") == redelivery.DiscardingDeadLetterStrategy()


def test_placeholders_have_the_values_that_the_caller_gives_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("retries", "9")
    text = address_settings(x={"max_delivery_attempts": "${retries}", "redelivery_delay": "${delay:250}"})
    with pytest.raises(ConfigFileError, match=r"the placeholder \$\{retries\} has no value"):
        read(text)
    settings = rules(text, properties={"retries": "4"}).settings_for("x")
    assert (settings.max_delivery_attempts, settings.redelivery_delay) == (4, 0.25)


@pytest.mark.parametrize(("match", "maximum", "ignored"), [("orders", 3, 4), ("jms.queue.orders", 7, 3)])
def test_of_two_settings_with_one_match_artemis_takes_the_first_and_hornetq_the_last(
    match: str, maximum: int, ignored: int
) -> None:
    """tests/policies/readers/test_duplicates_on_brokers.py has the brokers."""
    space = "urn:hornetq" if "jms" in match else "urn:activemq"
    settings = [f"<max-delivery-attempts>{each}</max-delivery-attempts>" for each in (3, 7)]
    entries = "\n".join(f'<address-setting match="{match}">{each}</address-setting>' for each in settings)
    text = f'<configuration xmlns="{space}">\n<address-settings>\n{entries}\n</address-settings></configuration>'
    policies = read(text, "x.xml")
    found = policies.explain("orders")
    assert found.maximum == maximum
    assert f"another address-setting {match!r} (x.xml:{ignored}:1) does not count" in found.notes
    assert policies.redelivery_policies.policy_for("orders").maximum_redeliveries == maximum - 1


OTHER_NAMES = """
<address-settings><address-setting match="{0}orders"><dead-letter-address>{0}dead</dead-letter-address>
<max-delivery-attempts>3</max-delivery-attempts></address-setting></address-settings>"""


@pytest.mark.promise("hornetq-dead-letter")
@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        (
            ARTEMIS.format(
                OTHER_NAMES.format("")
                + '<addresses><address name="orders"><anycast><queue name="ordersQueue"/></anycast>'
                '<multicast><queue name="all*"/></multicast></address><address name="dead"><anycast>'
                '<queue name="dead"/></anycast></address></addresses>'
            ),
            "",
        ),
        (
            f'<configuration xmlns="urn:hornetq">{OTHER_NAMES.format("jms.queue.")}<queues>'
            '<queue name="jms.queue.ordersQueue"><address>jms.queue.orders</address></queue>'
            '<queue name="raw"><address>jms.queue.orders</address></queue></queues></configuration>',
            "jms.queue.",
        ),
    ],
    ids=["artemis", "hornetq"],
)
def test_a_queue_has_the_rules_of_its_address_whatever_its_own_name(text: str, prefix: str) -> None:
    """Or who consumes it by that name would discard what the broker keeps, and redeliver as often as nobody said."""
    found = read(text)
    for name in ("orders", "ordersQueue", "orders::ordersQueue"):
        explained = found.explain(name)
        assert (explained.maximum, explained.dead_letter) == (3, f"{prefix}dead")
        assert found.redelivery_policies.policy_for(name).maximum_redeliveries == 2
        strategy = found.dead_letter_strategies.strategy_for(name)
        assert strategy == found.dead_letter_strategies.strategy_for("orders")
        assert not isinstance(strategy, redelivery.DiscardingDeadLetterStrategy)
    other = found.dead_letter_strategies.strategy_for("other")
    assert isinstance(other, redelivery.DiscardingDeadLetterStrategy)
    assert found.explain("address:ordersQueue").maximum == 10  # that is no queue
