"""What the real brokers did under files like these: what is read of them says the same."""

from __future__ import annotations

import pytest
from tests.policies.readers.documents import ARTEMIS, address_settings, classic, policy_entries, read
from tests.policies.readers.test_activemq_file import strategy
from tests.promises.test_documents import PLUGIN, artemis, hornetq, promise, waits

from redelivery.model.destinations import Queue
from redelivery.policies.files.places import ConfigFileError

GROWING = {"redelivery_delay": 500, "redelivery_delay_multiplier": 2, "max_redelivery_delay": 1500}


@promise("seen-artemis-delays")
def test_delays_grow_to_their_maximum() -> None:
    for policies in (read(address_settings(x=GROWING)), hornetq("jms.queue.x", **GROWING)):
        assert waits(policies, "x", 4) == [500, 1000, 1500, 1500]


@promise("seen-artemis-total")
@pytest.mark.parametrize(("attempts", "maximum"), [(1, 1), (3, 3), (0, None), (-1, None)])
def test_attempts_are_deliveries_in_all(attempts: int, maximum: int | None) -> None:
    assert artemis("x", max_delivery_attempts=attempts).rules_for(Queue("x")).maximum == maximum


@promise("seen-artemis-maximum")
def test_the_maximum_is_ten_times_the_delay() -> None:
    found = artemis("x", redelivery_delay=100, redelivery_delay_multiplier=4, max_delivery_attempts=5)
    assert waits(found, "x", 9) == [100, 400, 1000, 1000]


@promise("seen-artemis-merge")
def test_settings_merge_field_by_field() -> None:
    values: dict[str, dict[str, object]] = {
        "#": {"dead_letter_address": "DLQ", "redelivery_delay": 7},
        "x": {"redelivery_delay": 9},
    }
    text = address_settings(**values)
    settings = artemis(text=text).settings_for("x")
    assert (settings.redelivery_delay, settings.dead_letter_address) == (0.009, "DLQ")


@promise("seen-artemis-order")
def test_which_pattern_comes_first() -> None:
    values: dict[str, dict[str, object]] = {
        "stock.#": {"redelivery_delay": 1},
        "stock.*": {"redelivery_delay": 2},
        "orders.#": {"redelivery_delay": 3},
    }
    rules = artemis(text=address_settings(**values))
    delays = [rules.settings_for(name).redelivery_delay for name in ("stock.nyse", "stock.nyse.ibm", "orders")]
    assert delays == [0.002, 0.001, 0.003]


@promise("seen-artemis-unbound")
def test_removed_without_an_address_or_a_queue_on_it() -> None:
    assert artemis("x").rules_for(Queue("x")).dead_letter is None
    addresses = '<addresses><address name="y"><anycast><queue name="y"/></anycast></address></addresses>'
    entry = '<address-setting match="x"><dead-letter-address>DLQ</dead-letter-address></address-setting>'
    found = read(ARTEMIS.format(f"<address-settings>{entry}</address-settings>{addresses}")).explain("x")
    assert any(each.startswith("no queue stands behind DLQ: what goes there is removed") for each in found.notes)


@promise("seen-artemis-again")
def test_what_fails_in_a_queue_that_was_made_for_dead_letters_obeys_the_settings_of_its_address() -> None:
    values: dict[str, dict[str, object]] = {
        "#": {"dead_letter_address": "DLA", "auto_create_dead_letter_resources": "true", "max_delivery_attempts": 2},
        "DLA": {"max_delivery_attempts": 5},
    }
    found = artemis(text=address_settings(**values))
    for name in ("DLA", "DLA::DLQ.orders"):
        rules = found.rules_for(Queue(name))
        assert (rules.maximum, rules.dead_letter) == (5, "DLA::DLQ.DLA")


@promise("seen-artemis-early")
@pytest.mark.parametrize("created", [True, False])
def test_who_reads_a_queue_that_is_made_for_dead_letters_is_warned_of_its_bare_name(created: bool) -> None:
    found = artemis("x", dead_letter_address="DLA", auto_create_dead_letter_resources=str(created).lower())
    notes = found.rules_for(Queue("x")).notes
    assert any(each.startswith("read these dead letters from DLA::…") for each in notes) is created


@promise("seen-artemis-cap")
def test_the_maximum_comes_after_collision_avoidance() -> None:
    values = {"redelivery_delay": 1000, "redelivery_collision_avoidance_factor": 0.5, "max_redelivery_delay": 1000}
    (first, *_) = artemis(text=address_settings(x=values)).rules_for(Queue("x")).delays
    assert (first.seconds, round(first.least, 3), first.most) == (1.0, 0.5, 1.0)


@promise("seen-artemis-refused")
def test_a_factor_above_1_is_refused() -> None:
    with pytest.raises(ConfigFileError, match=r"redelivery-collision-avoidance-factor='1\.5'"):
        artemis("x", redelivery_collision_avoidance_factor=1.5)


@promise("seen-artemis-suffix")
def test_created_queues_are_read_as_a_part_of_their_address() -> None:
    options: dict[str, object] = {"dead_letter_queue_prefix": "", "dead_letter_queue_suffix": ".DLQ"}
    rules = artemis("#", dead_letter_address="DLA", auto_create_dead_letter_resources="true", **options)  # type: ignore[arg-type]  # keywords of settings
    assert rules.rules_for(Queue("stocks")).dead_letter == "DLA::stocks.DLQ"


@promise("seen-hornetq-expiry")
def test_hornetq_has_an_expiry_delay() -> None:
    rules = hornetq("jms.queue.x", expiry_delay=200).rules
    assert rules.settings_for("jms.queue.x").expiry_delay == 0.2  # type: ignore[attr-defined]  # ArtemisRules


@promise("seen-classic-plugin-count")
def test_the_redelivery_plug_in_delivers_once_more_than_it_redelivers() -> None:
    plugin = PLUGIN.format("true", "true").replace('"4"', '"3"')
    assert classic(plugin).explain("SpecialQueue").maximum == 4


@promise("seen-classic-refused")
def test_classic_does_not_start_with_short_delays_or_without_its_scheduler() -> None:
    with pytest.raises(ConfigFileError, match="needs at least 1000"):
        classic(PLUGIN.format("true", "true").replace("10000", "500"))
    with pytest.raises(ConfigFileError, match="schedulerSupport"):
        read(f'<broker schedulerSupport="false">{PLUGIN.format("true", "true")}</broker>')


@promise("seen-classic-gone")
def test_without_a_policy_and_without_the_fallback_a_message_is_gone() -> None:
    assert classic(PLUGIN.format("false", "true")).explain("other").dead_letter is None


@promise("seen-classic-whole-name")
@pytest.mark.parametrize(("name", "dropped"), [("test.29", True), ("testx29", True), ("my.test.29", False)])
def test_drop_only_matches_the_whole_name(name: str, dropped: bool) -> None:
    plugin = '<plugins><discardingDLQBrokerPlugin dropAll="false" dropOnly="test.29"/></plugins>'
    assert (classic(plugin).explain(name).dead_letter is None) is dropped


@promise("seen-classic-topic")
@promise("seen-classic-loop")
def test_individual_dead_letters_may_be_topics_and_have_dead_letters_of_their_own() -> None:
    inside = '<individualDeadLetterStrategy queuePrefix="DLQ." useQueueForQueueMessages="{}"/>'
    entry = f'<policyEntry queue=">">{strategy(inside)}</policyEntry>'
    assert classic(policy_entries(entry.format("false"))).explain("x").dead_letter == "topic://DLQ.x"
    assert classic(policy_entries(entry.format("true"))).explain("DLQ.x").dead_letter == "DLQ.DLQ.x"


@promise("seen-broker-j-maximum")
@promise("seen-broker-j-levels")
@promise("seen-broker-j-discarded")
def test_the_levels_of_broker_j() -> None:
    context = '"context": {"queue.maximumDeliveryAttempts": "%s"}'
    named = ('"three", "maximumDeliveryAttempts": 3', '"off", "maximumDeliveryAttempts": 0', '"x"')
    queues = "[" + ", ".join(f'{{"name": {each}}}' for each in named) + "]"
    host = f'{{"name": "h", {context % 5}, "queues": {queues}}}'
    found = read(f'{{"modelVersion": "9.0", {context % 9}, "virtualhosts": [{host}]}}')
    assert [found.explain(name).maximum for name in ("three", "off", "x")] == [3, None, 5]
    assert found.explain("three").fate == "removed (there is no alternate binding)"
    outside = read(f'{{"modelVersion": "9.0", {context % 9}, "virtualhosts": [{{"name": "h", "queues": {queues}}}]}}')
    assert outside.explain("x").maximum == 9


@promise("seen-broker-j-this-name")
def test_a_binding_that_names_the_queue_itself_does_not_route() -> None:
    binding = r'"{\"destination\": \"${this:name}_DLQ\"}"'
    found = read(f'{{"context": {{"queue.defaultAlternateBinding": {binding}}}, "queues": [{{"name": "x"}}]}}')
    assert found.explain("x").dead_letter is None


@promise("seen-broker-j-closing")
def test_a_closed_connection_counts_on_broker_j() -> None:
    notes = read('{"queues": [{"name": "x"}]}').explain("x").notes
    assert any("closed or lost connection" in note and "prefetched" in note for note in notes)
