"""All destinations of a file in one table, asked for by name or address, and long times as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.policies.readers.documents import address_settings, classic, policy_entries, read

from redelivery import InvalidDestinationError
from redelivery.operate import plot
from redelivery.operate.diff import diff
from redelivery.operate.simulate import simulate
from redelivery.operate.table import table

SITE: Mapping[str, Mapping[str, object]] = {
    "#": {"dead_letter_address": "DLQ", "expiry_address": "ExpiryQueue", "max_delivery_attempts": 3},
    "orders.#": {"redelivery_delay": 2000},
    "endless": {"max_delivery_attempts": -1},
    "/queue/x": {"max_delivery_attempts": 7},
    "jms.queue.stock": {"max_delivery_attempts": 5},
}


def test_a_table_has_a_row_for_each_destination_of_the_file() -> None:
    assert str(table(read(address_settings(**SITE)))).splitlines() == [
        "destination                        attempts      over  then  what expires",
        "> (such as queue://x)              3 deliveries  0 s   DLQ   ExpiryQueue",
        "orders.> (such as queue://orders)  3 deliveries  4 s   DLQ   ExpiryQueue",
        "endless                            no limit                  ExpiryQueue",
        "address:/queue/x                   7 deliveries  0 s   DLQ   ExpiryQueue",
        "jms.queue.stock                    5 deliveries  0 s   DLQ   ExpiryQueue",
        "(all others)                       3 deliveries  0 s   DLQ   ExpiryQueue",
    ]


def test_a_table_as_json_and_markdown() -> None:
    found = table(read(address_settings(a={"redelivery_delay": 2000, "dead_letter_address": "D|Q"})))
    assert found.as_markdown().splitlines()[:3] == [
        "| destination | attempts | over | then | what expires |",
        "| --- | --- | --- | --- | --- |",
        r"| a | 10 deliveries | 18 s | D\|Q | removed |",
    ]
    assert found.as_dict()["rows"][0] == {
        "destination": "a",
        "example": None,
        "counts": "deliveries",
        "attempts": 10,
        "over": 18.0,
        "dead_letter": "D|Q",
        "then": "D|Q",
        "expired": None,
        "summary": "10 deliveries over 18 s, then D|Q",
    }


def test_queues_and_topics_that_nothing_names_are_two_rows_where_they_differ() -> None:
    entry = (
        '<policyEntry topic=">"><deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy></policyEntry>'
    )
    cells = [each.cells for each in table(classic(policy_entries(entry))).rows]
    assert cells[0][:2] == ("topic://> (such as topic://x)", "as the client says")
    assert [each[0] for each in cells[1:]] == ["(all others)", "(all other topics)"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("address:jms.queue.stock", "address:jms.queue.stock (Artemis): 5 deliveries"),
        ("jms.queue.stock", "address:jms.queue.stock (Artemis): 5 deliveries"),
        ("stock", "queue://stock (Artemis): 3 deliveries"),
        ("address:stock", "address:stock (Artemis): 3 deliveries"),
        ("address:/queue/x", "address:/queue/x (Artemis): 7 deliveries"),
        ("address:orders.new", "address:orders.new (Artemis): 3 deliveries over 4 s"),
    ],
)
def test_an_address_of_artemis_is_asked_for_by_its_very_name(asked: str, says: str) -> None:
    assert str(read(address_settings(**SITE)).explain(asked)).startswith(says)
    assert str(simulate(read(address_settings(**SITE)), asked)).startswith(says.replace("deliveries", "attempts")[:35])


def test_an_address_of_hornetq_needs_no_queue_of_jms() -> None:
    text = address_settings(**{"a1": {"max_delivery_attempts": 2}, "jms.queue.a1": {"max_delivery_attempts": 4}})
    found = read(text.replace("urn:activemq", "urn:hornetq"))
    assert [found.explain(each).maximum for each in ("address:a1", "a1", "jms.queue.a1", "address:jms.queue.a1")] == [
        *(2, 4, 4, 4)
    ]
    assert str(found.explain("jms.queue.a1").destination) == "queue://a1"


def test_other_brokers_have_no_addresses() -> None:
    with pytest.raises(InvalidDestinationError, match="ActiveMQ Classic has no addresses"):
        classic("").explain("address:a")
    with pytest.raises(InvalidDestinationError, match="the name of an address is empty"):
        read(address_settings()).explain("address: ")


def test_a_client_s_policy_of_an_address_is_that_of_its_queue() -> None:
    client = read(address_settings(stock={"max_delivery_attempts": 9}))
    assert simulate(read(address_settings(**SITE)), "address:jms.queue.stock", client).total == 9


def notes(text: str, asked: str, name: str = "broker.xml") -> list[str]:
    return [each for each in read(text, name).explain(asked).notes if "taken as a name" in each]


def test_a_pattern_is_said_to_be_taken_as_a_name() -> None:
    (said,) = notes(address_settings(**SITE), "orders.#")
    assert said.startswith(
        "'orders.#' was taken as a name, not as a pattern; the entry of that pattern is address-setting"
    )
    assert "broker.xml:" in said
    (said,) = notes(address_settings(**SITE), "orders.*")
    assert said == "'orders.*' was taken as a name, not as a pattern: ask for a destination that it matches"
    rabbit = '{"policies": [{"name": "p", "vhost": "/", "pattern": "^orders", "definition": {"max-length": 5}}]}'
    assert len(notes(rabbit, "^orders", "x.json")) == 1
    assert notes(rabbit, "orders", "x.json") == notes(address_settings(**SITE), "orders") == []


@pytest.mark.parametrize("other", ["ExpiryQueue", "x", "DLQ.x", "q0z", "xx", "queue://x"])
def test_a_pattern_that_changes_in_one_way_is_one_difference(other: str) -> None:
    """Names of the file have the letters of an example's name in them."""
    before = read(
        address_settings(**{"#": {"expiry_address": other, "dead_letter_address": "DLQ", "redelivery_delay": 7}})
    )
    entry = "<policyEntry queue='>'><deadLetterStrategy><individualDeadLetterStrategy {}='{}'/></deadLetterStrategy>"
    for option, value in (("queuePrefix", "DLQ."), ("queuePrefix", "x"), ("queueSuffix", "x")):
        after = classic(policy_entries(f"{entry.format(option, value)}</policyEntry>"))
        titles = [each.title for each in diff(before, after)]
        assert sorted(titles) == sorted({*titles}), titles


LONG = {"redelivery_delay": 1000, "redelivery_delay_multiplier": 2, "max_redelivery_delay": 524288000}


def test_a_long_time_is_said_in_days() -> None:
    found = read(address_settings(x={**LONG, "max_delivery_attempts": 22}, y={"redelivery_delay": 4_000_000}))
    assert found.explain("x").summary.startswith("22 deliveries over 1572863 s (18.2 days), then")
    assert found.explain("y").summary.startswith("10 deliveries over 36000 s (10 hours), then")
    lines = str(simulate(found, "x")).splitlines()
    assert lines[-3] == "  22   1572863.000 s  = 18.2 days  redelivered by the broker"


def test_a_drawing_says_what_it_leaves_out() -> None:
    found = read(address_settings(x={**LONG, "max_delivery_attempts": 42}, y={**LONG, "max_delivery_attempts": -1}))
    text = plot.as_text(simulate(found, "x")).splitlines()
    assert text[0] == "queue://x (Artemis), 0 to 11010047 s (127 days)"
    assert text[41] == (
        "     and 2 more attempts that are not drawn, the last after 12058623 s (140 days); then "
        "removed (no dead-letter-address is set)"
    )
    assert plot.as_text(simulate(found, "y")).splitlines()[41] == "     and so on, without an end"
    assert str(simulate(found, "y")).splitlines()[201] == "   … and so on"
    many = read(address_settings(z={"max_delivery_attempts": 300}))
    assert str(simulate(many, "z")).splitlines()[201] == "   … and 100 more"
    assert (
        plot.as_text(simulate(many, "z"))
        .splitlines()[41]
        .startswith("     and 260 more attempts that are not drawn; then")
    )


@pytest.mark.together("matplotlib")
def test_a_picture_begins_with_attempt_1_and_has_days(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = read(address_settings(x={**LONG, "max_delivery_attempts": 42}))
    plot.save(simulate(found, "x"), str(tmp_path / "x.svg"))
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<!-- days after the first delivery -->" in drawn
    assert "and 2 more attempts that are not drawn" in drawn
    assert "<!-- 1 -->" in drawn
    assert "<!-- 0 -->" in drawn.partition("matplotlib.axis_2")[0]  # of the time, and not of the attempts
    assert "<!-- 0 -->" not in drawn.partition("matplotlib.axis_2")[2]


def test_with_a_client_s_file_a_row_is_what_both_make_of_it() -> None:
    broker = read(address_settings(**{"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 4}}), "broker.xml")
    client = read(
        '<beans><bean class="org.apache.activemq.broker.region.policy.RedeliveryPolicyMap"><property '
        'name="redeliveryPolicyEntries"><bean class="org.apache.activemq.RedeliveryPolicy"><property name="queue" '
        'value="orders"/><property name="maximumRedeliveries" value="2"/></bean></property></bean></beans>',
        "client.xml",
    )
    found = table(broker, client)
    rows = {row.title: row.cells[1:4] for row in found.rows}
    assert rows["queue://orders"] == ("3 attempts", "2 s", "DLQ")
    assert rows["(all others)"] == ("7 attempts", "6 s", "DLQ")
    assert found.as_dict()["rows"][-1]["together"] == {"attempts": 7, "then": "DLQ", "decides": "client"}
