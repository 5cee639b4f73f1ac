"""The examples of the brokers' documents, read from files as those documents write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.policies.readers.documents import ARTEMIS, address_settings, classic, policy_entries, read
from tests.policies.readers.test_qpid_files import CONFIG, HOSTS

import redelivery
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.places import ConfigFileError

promise = pytest.mark.promise

HORNETQ = ARTEMIS.replace("urn:activemq:core", "urn:hornetq").replace("urn:activemq", "urn:hornetq")


class Draws:
    """Plays (sign, u) pairs to a delay."""

    def __init__(self, *pairs: tuple[str, float]) -> None:
        self._numbers: Iterator[float] = iter([each for sign, u in pairs for each in (0.9 if sign == "+" else 0.1, u)])

    def random(self) -> float:
        return next(self._numbers)


def artemis(match: str = "exampleQueue", text: str = "", **values: object) -> ArtemisRules:
    found = read(text or address_settings(**{match: values})).rules
    assert isinstance(found, ArtemisRules)
    return found


def hornetq(match: str, **values: object) -> BrokerPolicies:
    text = address_settings(**{match: values})
    return read(text.replace("urn:activemq:core", "urn:hornetq").replace("urn:activemq", "urn:hornetq"))


def waits(policies: BrokerPolicies | ArtemisRules, queue: str, number: int) -> list[float]:
    rules = policies.rules if isinstance(policies, BrokerPolicies) else policies
    return [round(each.seconds * 1000) for each in rules.rules_for(redelivery.Queue(queue)).delays[:number]]


@promise("artemis-two-remedies")
@promise("artemis-example-dead-letter")
def test_delay_and_dead_letter_address_together() -> None:
    rules = artemis(redelivery_delay=100, dead_letter_address="deadLetterAddress", max_delivery_attempts=3)
    found = rules.rules_for(redelivery.Queue("exampleQueue"))
    assert (found.maximum, found.dead_letter) == (3, "deadLetterAddress")
    assert waits(rules, "exampleQueue", 9) == [100, 100]


@promise("artemis-redelivery-defaults")
def test_defaults_of_redelivery() -> None:
    settings = artemis("other").settings_for("exampleQueue")
    assert settings.redelivery_delay == 0
    assert settings.redelivery_delay_multiplier == 1.0
    assert settings.redelivery_collision_avoidance_factor == 0.0
    assert artemis(redelivery_delay=300).settings_for("exampleQueue").longest_delay == 3.0


@promise("artemis-factor-range")
@pytest.mark.parametrize("factor", ["-0.1", "1.1", "1.5"])
def test_a_factor_outside_of_its_range_is_refused(factor: str) -> None:
    with pytest.raises(ConfigFileError, match="must be a finite number from 0 to 1"):
        artemis(redelivery_collision_avoidance_factor=factor)


@promise("artemis-wildcards")
@pytest.mark.parametrize(("match", "found"), [("news.#", True), ("news.*.x", True), ("news.*", False), ("#", True)])
def test_a_match_may_have_wildcards(match: str, found: bool) -> None:
    settings = artemis(match, redelivery_delay=5000).settings_for("news.eu.x")
    assert (settings.redelivery_delay == 5.0) is found


@promise("artemis-growth")
@promise("artemis-example-1")
def test_example_1_of_artemis() -> None:
    values: dict[str, Any] = {"redelivery_delay": 5000, "redelivery_delay_multiplier": 2, "max_redelivery_delay": 15000}
    rules = artemis(max_delivery_attempts=5, redelivery_collision_avoidance_factor=0.0, **values)
    assert waits(rules, "exampleQueue", 4) == [5000, 10000, 15000, 15000]


@promise("artemis-example-2")
def test_example_2_of_artemis_to_the_millisecond() -> None:
    settings = artemis(
        redelivery_delay=1000,
        redelivery_delay_multiplier=1,
        max_redelivery_delay=15000,
        redelivery_collision_avoidance_factor=0.5,
    ).settings_for("exampleQueue")
    draws = Draws(("-", 0.25), ("+", 0.75), ("-", 0.05))
    assert [round(settings.delay(n, draws) * 1000) for n in (1, 2, 3)] == [875, 1375, 975]


@promise("artemis-example-setting")
def test_the_example_setting_of_artemis() -> None:
    rules = artemis(
        redelivery_delay_multiplier=1.5,
        redelivery_delay=5000,
        redelivery_collision_avoidance_factor=0.15,
        max_redelivery_delay=50000,
    )
    delays = rules.rules_for(redelivery.Queue("exampleQueue")).delays
    assert [each.seconds for each in delays[:4]] == [5.0, 7.5, 11.25, 16.875]
    assert [round(each.most, 2) for each in delays[:2]] == [5.75, 8.62]
    assert [round(each.least, 2) for each in delays[:2]] == [4.25, 6.38]
    assert max(each.most for each in delays) == 50.0  # the cap comes after collision avoidance


@promise("artemis-journal-records")
def test_very_short_delays_are_advised_against() -> None:
    short = address_settings(exampleQueue={"redelivery_delay": 10})
    kept = short.replace("<address-settings>", "<max-redelivery-records>1</max-redelivery-records><address-settings>")
    assert any("max-redelivery-records=1" in note for note in read(short).explain("exampleQueue").notes)
    assert not any("max-redelivery-records" in note for note in read(kept).explain("exampleQueue").notes)
    assert artemis(text=kept).max_redelivery_records == 1


@promise("artemis-attempts-default")
@promise("artemis-removal")
def test_ten_attempts_then_removal() -> None:
    found = artemis("other").rules_for(redelivery.Queue("exampleQueue"))
    assert (found.maximum, found.fate) == (10, "removed (no dead-letter-address is set)")


@promise("artemis-attempts-default")
@promise("artemis-endless-address")
def test_an_address_without_an_end_against_the_global_setting() -> None:
    values = {"#": {"max_delivery_attempts": 3}, "exampleQueue": {"max_delivery_attempts": -1}}
    rules = artemis(text=address_settings(**values))
    assert rules.rules_for(redelivery.Queue("exampleQueue")).maximum is None
    assert rules.rules_for(redelivery.Queue("other")).maximum == 3


@promise("artemis-auto-create")
@promise("artemis-example-auto-create")
def test_dead_letter_queues_of_their_own() -> None:
    plain = artemis("#", dead_letter_address="DLA", auto_create_dead_letter_resources="true")
    assert plain.dead_letter_queue("orders") == "DLA::DLQ.orders"
    example = artemis(
        "#",
        dead_letter_address="DLA",
        max_delivery_attempts=3,
        auto_create_dead_letter_resources="true",
        dead_letter_queue_prefix="",
        dead_letter_queue_suffix=".DLQ",
    )
    assert example.dead_letter_queue("orders") == "DLA::orders.DLQ"
    assert artemis("#", dead_letter_address="DLA").dead_letter_queue("orders") == "DLA"


@promise("artemis-count-persistence")
@promise("hornetq-count-persistence")
@pytest.mark.parametrize("document", [ARTEMIS, HORNETQ], ids=["Artemis", "HornetQ"])
def test_the_count_is_not_persisted_before_delivery_unless_asked_for(document: str) -> None:
    element = "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery>"
    for inside, expected in (("", False), (element, True)):
        rules = read(document.format(inside)).rules
        assert isinstance(rules, ArtemisRules)
        assert rules.persist_delivery_count_before_delivery is expected


@promise("hornetq-example-setting")
@promise("hornetq-example-growth")
def test_the_examples_of_hornetq() -> None:
    example = hornetq(
        "jms.queue.exampleQueue", redelivery_delay_multiplier=1.5, redelivery_delay=5000, max_redelivery_delay=50000
    )
    assert waits(example, "exampleQueue", 4) == [5000, 7500, 11250, 16875]
    growth = hornetq("#", redelivery_delay=5000, redelivery_delay_multiplier=2, max_redelivery_delay=15000)
    assert waits(growth, "exampleQueue", 4) == [5000, 10000, 15000, 15000]


@promise("hornetq-dead-letter")
def test_dead_letters_of_hornetq() -> None:
    example = hornetq(
        "jms.queue.exampleQueue", dead_letter_address="jms.queue.deadLetterQueue", max_delivery_attempts=3
    )
    found, other = example.explain("exampleQueue"), example.explain("jms.queue.other")
    assert (found.maximum, found.dead_letter) == (3, "jms.queue.deadLetterQueue")
    assert (other.maximum, other.dead_letter) == (10, None)
    strategy = example.dead_letter_strategies.strategy_for("exampleQueue")
    assert strategy == redelivery.SharedDeadLetterStrategy(
        redelivery.Queue("deadLetterQueue"), process_non_persistent=True, process_expired=False
    )
    assert hornetq("jms.queue.x", max_delivery_attempts=-1).explain("x").maximum is None


@promise("qpid-maximum")
@promise("qpid-names")
@promise("qpid-levels")
def test_the_three_levels_of_qpid() -> None:
    example = read(CONFIG.replace("<virtualhosts>${conf}/virtualhosts.xml</virtualhosts>", HOSTS))
    found = {name: example.explain(name) for name in ("dev-only-main-queue", "dev-only-other-queue", "localhost-queue")}
    assert [each.maximum for each in found.values()] == [3, None, 5]
    assert [each.dead_letter for each in found.values()] == ["dev-only-main-queue_DLQ", None, "localhost-queue_DLQ"]
    assert example.rules.exchange_suffix == "_DLE"  # type: ignore[attr-defined]  # QpidRules


@promise("qpid-arguments")
def test_the_arguments_of_a_declared_queue() -> None:
    queue = '{"name": "q", "arguments": {"x-qpid-maximum-delivery-count": 4, "x-qpid-dlq-enabled": true}}'
    found = read(f'{{"queues": [{queue}]}}').explain("q")
    assert (found.maximum, found.dead_letter) == (4, "q_DLQ")


@promise("qpid-rollback-only")
def test_the_old_broker_does_not_charge_a_closed_connection_and_broker_j_does() -> None:
    old = read(CONFIG.replace("<virtualhosts>${conf}/virtualhosts.xml</virtualhosts>", "")).explain("q")
    new = read('{"queues": []}').explain("q")
    assert any("only closes its connection is not charged" in note for note in old.notes)
    assert any("lost connection" in note and "count" in note for note in new.notes)


@promise("qpid-reject-behaviour")
def test_what_is_known_of_qpid_shows_a_client_how_it_must_reject() -> None:
    found = read("<broker><maximumDeliveryCount>2</maximumDeliveryCount></broker>").explain("q")
    assert any("an AMQP 0-x client needs the reject behaviour 'server'" in note for note in found.notes)


@promise("classic-poison")
def test_what_a_client_gives_up_goes_to_the_shared_queue() -> None:
    found = classic("").explain("orders")
    assert (found.counts, found.maximum, found.dead_letter) == ("give-ups", 1, "ActiveMQ.DLQ")


@promise("classic-individual")
def test_individual_dead_letter_queues_by_wildcard() -> None:
    inside = '<individualDeadLetterStrategy queuePrefix="DLQ." topicPrefix="DLQ.Topic."/>'
    entries = "".join(
        f'<policyEntry {kind}=">"><deadLetterStrategy>{inside}</deadLetterStrategy></policyEntry>'
        for kind in ("queue", "topic")
    )
    found = classic(policy_entries(entries))
    assert found.explain("orders.eu").dead_letter == "DLQ.orders.eu"
    assert found.explain("topic://news").dead_letter == "DLQ.Topic.news"


@promise("classic-expired")
@promise("classic-non-persistent")
@pytest.mark.parametrize(
    ("options", "expired", "non_persistent"),
    [("", True, False), ('processExpired="false"', False, False), ('processNonPersistent="true"', True, True)],
)
def test_expired_and_non_persistent_messages(options: str, expired: bool, non_persistent: bool) -> None:
    inside = f"<deadLetterStrategy><sharedDeadLetterStrategy {options}/></deadLetterStrategy>"
    strategy = classic(
        policy_entries(f'<policyEntry queue=">">{inside}</policyEntry>')
    ).dead_letter_strategies.strategy_for("x")
    assert strategy is not None
    queue = redelivery.Queue("x")
    for persistent, is_expired, kept in ((True, True, expired), (False, False, non_persistent)):
        decision = strategy.decide(queue, persistent=persistent, expired=is_expired, native_available=False)
        assert (type(decision).__name__ == "CopyTo") is kept


@promise("classic-discarding")
def test_the_discarding_plug_in_drops_what_ends_with_three_digits() -> None:
    plugin = '<discardingDLQBrokerPlugin dropAll="false" dropOnly="MY.EXAMPLE.TOPIC.29 .*[0-9]{3}" reportInterval="0"/>'
    found = classic(f"<plugins>{plugin}</plugins>")
    for name, dropped in (("MY.EXAMPLE.TOPIC.29", True), ("test.123", True), ("test.12", False), ("test.123.x", False)):
        assert (found.explain(name).dead_letter is None) is dropped
    strategy = found.dead_letter_strategies.strategy_for("test.123")
    assert isinstance(strategy, redelivery.DiscardingDeadLetterStrategy)
    assert strategy.report_interval == 0


PLUGIN = """
<plugins><redeliveryPlugin fallbackToDeadLetter="{}" sendToDlqIfMaxRetriesExceeded="{}">
  <redeliveryPolicyMap><redeliveryPolicyMap>
    <redeliveryPolicyEntries>
      <redeliveryPolicy queue="SpecialQueue" maximumRedeliveries="4" redeliveryDelay="10000"/>
    </redeliveryPolicyEntries>
  </redeliveryPolicyMap></redeliveryPolicyMap>
</redeliveryPlugin></plugins>"""


@promise("classic-broker-redelivery")
@promise("classic-fallback")
@promise("classic-exceeded")
def test_redelivery_by_the_broker_and_what_comes_after_it() -> None:
    found = classic(PLUGIN.format("true", "true"))
    assert waits(found, "SpecialQueue", 9) == [1000, 10000, 10000, 10000]
    assert found.explain("SpecialQueue").dead_letter == found.explain("other").dead_letter == "ActiveMQ.DLQ"
    dropping = classic(PLUGIN.format("false", "false"))
    assert dropping.explain("SpecialQueue").dead_letter is None
    assert dropping.explain("other").dead_letter is None


@promise("classic-scheduler")
def test_redelivery_by_the_broker_needs_its_scheduler() -> None:
    with pytest.raises(ConfigFileError, match="schedulerSupport"):
        read(f"<broker>{PLUGIN.format('true', 'true')}</broker>")
