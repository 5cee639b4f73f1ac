"""What the brokers' documents promise of a file's values, and the tests of the readers (tests/policies) do not say."""

from __future__ import annotations

import pytest
from tests.policies.readers.documents import ARTEMIS, address_settings, read
from tests.policies.readers.test_qpid_files import CONFIG

from redelivery.model.destinations import Queue
from redelivery.policies.brokers.artemis.rules import ArtemisRules

promise = pytest.mark.promise

HORNETQ = ARTEMIS.replace("urn:activemq:core", "urn:hornetq").replace("urn:activemq", "urn:hornetq")


def artemis(match: str = "exampleQueue", text: str = "", **values: object) -> ArtemisRules:
    found = read(text or address_settings(**{match: values})).rules
    assert isinstance(found, ArtemisRules)
    return found


@promise("artemis-example-setting")
@promise("seen-artemis-cap")
def test_the_example_setting_of_artemis() -> None:
    rules = artemis(
        redelivery_delay_multiplier=1.5,
        redelivery_delay=5000,
        redelivery_collision_avoidance_factor=0.15,
        max_redelivery_delay=50000,
    )
    delays = rules.rules_for(Queue("exampleQueue")).delays
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


@promise("artemis-count-persistence")
@promise("hornetq-count-persistence")
@pytest.mark.parametrize("document", [ARTEMIS, HORNETQ], ids=["Artemis", "HornetQ"])
def test_the_count_is_not_persisted_before_delivery_unless_asked_for(document: str) -> None:
    element = "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery>"
    for inside, expected in (("", False), (element, True)):
        rules = read(document.format(inside)).rules
        assert isinstance(rules, ArtemisRules)
        assert rules.persist_delivery_count_before_delivery is expected


@promise("qpid-rollback-only")
@promise("seen-broker-j-closing")
def test_the_old_broker_does_not_charge_a_closed_connection_and_broker_j_does() -> None:
    old = read(CONFIG.replace("<virtualhosts>${conf}/virtualhosts.xml</virtualhosts>", "")).explain("q")
    new = read('{"queues": []}').explain("q")
    assert any("only closes its connection is not charged" in note for note in old.notes)
    assert any("closed or lost connection" in note and "prefetched" in note for note in new.notes)


@promise("qpid-reject-behaviour")
def test_what_is_known_of_qpid_shows_a_client_how_it_must_reject() -> None:
    found = read("<broker><maximumDeliveryCount>2</maximumDeliveryCount></broker>").explain("q")
    assert any("an AMQP 0-x client needs the reject behaviour 'server'" in note for note in found.notes)


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


@promise("artemis-auto-create")
@promise("artemis-example-auto-create")
@promise("seen-artemis-suffix")
def test_created_queues_are_read_as_a_part_of_their_address() -> None:
    options: dict[str, object] = {"dead_letter_queue_prefix": "", "dead_letter_queue_suffix": ".DLQ"}
    rules = artemis("#", dead_letter_address="DLA", auto_create_dead_letter_resources="true", **options)  # type: ignore[arg-type]  # keywords of settings
    assert rules.rules_for(Queue("stocks")).dead_letter == "DLA::stocks.DLQ"
