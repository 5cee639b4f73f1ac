"""Simulations, differences, conversions and pictures of what brokers' files say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.policies.readers.documents import address_settings, classic, policy_entries, read

import redelivery
from redelivery.operate import as_json, plot
from redelivery.operate.convert import convert
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.formats import read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies

PLUGIN = """
<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
  <redeliveryPolicy queue="orders.>" maximumRedeliveries="1" redeliveryDelay="5000" initialRedeliveryDelay="5000"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""
INDIVIDUAL_DEFAULT = """
<destinationPolicy><policyMap><defaultEntry><policyEntry><deadLetterStrategy><individualDeadLetterStrategy/>
</deadLetterStrategy></policyEntry></defaultEntry></policyMap></destinationPolicy>"""
CLIENT = redelivery.RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=1, redelivery_delay=1)


def artemis(**settings: Mapping[str, object]) -> BrokerPolicies:
    return read(address_settings(**settings), "broker.xml")


def times(simulated: Any) -> list[tuple[float, str]]:
    return [(round(each.at, 3), each.by) for each in simulated.attempts]


@pytest.mark.parametrize(("maximum", "total", "wins"), [(2, 3, "client"), (-1, None, "nobody")])
def test_a_client_s_url_is_redelivered_by_the_client(maximum: int, total: int | None, wins: str) -> None:
    found = simulate(read_url(f"tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries={maximum}"), "orders")
    assert times(found)[:3] == [(0, "first"), (1.0, "client"), (2.0, "client")]
    assert (found.total, found.most_attempts, found.wins) == (total, total, wins)
    assert found.ends == "the broker's dead-letter queue"
    assert len(found.warnings) == (total is None)


def test_a_broker_alone_redelivers_by_its_own_delays() -> None:
    found = simulate(artemis(orders={"redelivery_delay": 500, "max_delivery_attempts": 3}), "orders")
    assert times(found) == [(0, "first"), (0.5, "broker"), (1.0, "broker")]
    assert (found.total, found.wins) == (3, "broker")
    assert found.warnings == ("the message is lost: removed (no dead-letter-address is set)",)


def test_a_client_that_redelivers_by_itself_wins_and_the_product_of_both_is_a_warning() -> None:
    found = simulate(artemis(orders={"dead_letter_address": "DLQ"}), "orders", redelivery.RedeliveryPolicy())
    assert (found.total, found.wins, found.most_attempts) == (7, "client", 70)
    assert found.ends.startswith("ActiveMQ.DLQ")
    assert any("10 x 7 = 70 attempts" in each for each in found.warnings)


def test_a_client_and_the_redelivery_plug_in_multiply() -> None:
    found = simulate(classic(PLUGIN), "orders.x", CLIENT)
    assert times(found) == [(0, "first"), (1, "client"), (2, "client"), (7, "broker"), (8, "client"), (9, "client")]
    assert (found.total, found.wins, found.ends) == (6, "both", "ActiveMQ.DLQ")
    assert any("2 x 3 = 6 attempts" in each for each in found.warnings)


def test_classic_without_the_plug_in_leaves_it_to_the_client() -> None:
    found = simulate(classic(""), "orders")
    assert (found.total, found.wins, found.ends, found.warnings) == (7, "client", "ActiveMQ.DLQ", ())
    assert simulate(classic(""), "orders", CLIENT).total == 3


def test_the_client_may_be_a_url() -> None:
    url = read_url("failover:(tcp://a:1)?jms.redeliveryPolicy.maximumRedeliveries=1")
    assert simulate(classic(""), "orders", url).total == 2


@pytest.mark.parametrize(
    "client", [None, redelivery.RedeliveryPolicy(maximum_redeliveries=-1)], ids=["broker", "client"]
)
def test_no_limit_has_no_end(client: redelivery.RedeliveryPolicy | None) -> None:
    found = simulate(artemis(orders={"max_delivery_attempts": -1, "redelivery_delay": 10}), "orders", client)
    assert (found.total, found.wins, len(found.attempts)) == (None, "nobody", 200)
    assert any("without a limit" in each for each in found.warnings)
    assert "without an end" in str(found)


def test_collision_avoidance_gives_a_band() -> None:
    settings = {"redelivery_delay": 1000, "redelivery_collision_avoidance_factor": 0.5, "max_delivery_attempts": 2}
    attempt = simulate(artemis(orders=settings), "orders").attempts[1]
    assert (attempt.at, round(attempt.least, 2), round(attempt.most, 2)) == (1.0, 0.5, 1.5)


def test_a_long_sequence_is_listed_to_its_200th_attempt() -> None:
    found = simulate(artemis(orders={"max_delivery_attempts": 5000}), "orders")
    assert (found.total, len(found.attempts)) == (5000, 200)


ADDRESSES: dict[str, dict[str, object]] = {"#": {"dead_letter_address": "DLQ"}, "orders.#": {"redelivery_delay": 1000}}
SOURCES: dict[str, BrokerPolicies] = {
    "artemis": artemis(**ADDRESSES),
    "activemq": classic(
        policy_entries('<policyEntry queue="a"><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>')
        + PLUGIN
    ),
    "qpid": read("<broker><maximumDeliveryCount>3</maximumDeliveryCount></broker>"),
    "broker_j": read(
        '{"queues": [{"name": "q", "maximumDeliveryAttempts": 3, "alternateBinding": {"destination": "D"}}]}'
    ),
    "rabbitmq": read('{"queues": [{"name": "q", "arguments": {"x-queue-type": "quorum"}}], "policies": []}'),
    "uri": read_url("tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=3"),
}


ENTRY = "<policyEntry {}><deadLetterStrategy><{}/></deadLetterStrategy></policyEntry>"
TOPICS = classic(
    policy_entries(
        ENTRY.format('topic="news.>"', 'individualDeadLetterStrategy topicPrefix="TDLQ."')
        + ENTRY.format('queue="orders.>"', 'individualDeadLetterStrategy queuePrefix="QDLQ." queueSuffix=".x"')
        + ENTRY.format('queue="both"', "sharedDeadLetterStrategy")
        + ENTRY.format('topic="both"', "discarding")
    )
)


def test_what_counts_for_topics_is_not_said_of_queues() -> None:
    artemis = convert(TOPICS, "artemis")
    again = read_content(artemis.text.encode(), "x")
    assert again.explain("topic://news.a").dead_letter == "ActiveMQ.DLA::TDLQ.news.a"
    assert again.explain("orders.a").dead_letter == "ActiveMQ.DLA::QDLQ.orders.a.x"
    assert again.explain("both").dead_letter == "ActiveMQ.DLQ"
    assert "topic://both: both has the settings of the queues of that name" in artemis.lost
    for to in ("qpid", "broker_j", "rabbitmq"):
        found = convert(TOPICS, to)
        assert "topic://news.>: there are rules for queues only" in found.lost
        assert "news" not in found.text


def test_a_name_that_no_element_can_have_is_lost_in_qpid_s_file() -> None:
    found = convert(artemis(**{"a/b": {"max_delivery_attempts": 3}, "queue": {"max_delivery_attempts": 3}}), "qpid")
    assert any(each.startswith("a/b: config.xml needs a name") for each in found.lost)
    assert read_content(found.text.encode(), "x").explain("queue").maximum == 3


def test_a_queue_whose_name_has_a_space_is_in_the_json_too() -> None:
    found = as_json.everything(read('{"queues": [{"name": "my queue"}, {"name": "b.*"}], "policies": []}'))
    assert list(found["destinations"]) == ["my queue", "any.other.destination", "topic://any.other.destination"]
    assert list(found["patterns"]) == ["b.*"]


def test_the_json_has_the_settings_of_every_pattern() -> None:
    source = artemis(**ADDRESSES, **{"*.new": {"max_delivery_attempts": 3}, "orders": {"redelivery_delay": 9}})
    found = json.loads(convert(source, "json").text)
    pattern = found["patterns"]["orders.>"]
    assert pattern["destination"] == "queue://orders.x", "not orders, which has settings of its own"
    assert ([each["seconds"] for each in pattern["delays"]], pattern["maximum"]) == ([1.0] * 9, 10)
    assert pattern["dead_letter"] == "DLQ"
    (delay,) = (each for each in pattern["settings"] if each["name"] == "redelivery-delay")
    assert (delay["value"], delay["source"]) == ("1000", "address-setting 'orders.#'")
    both = found["destinations"]["orders.new"]  # what two patterns share
    assert ([each["seconds"] for each in both["delays"]], both["maximum"]) == ([1.0, 1.0], 3)
    assert found["destinations"]["any.other.destination"]["maximum"] == 10


def test_the_json_has_what_no_destination_of_ours_shows() -> None:
    rabbit = read('{"policies": [{"name": "p", "pattern": "^web", "vhost": "/", "definition": {"message-ttl": 5}}]}')
    (policy,) = json.loads(convert(rabbit, "json").text)["rules"]["policies"]
    assert (policy["pattern"], policy["level"]["message_ttl"]) == ("^web", 0.005)
    hosts = json.loads(convert(SOURCES["activemq"], "json").text)["rules"]
    assert hosts["plugins"][0]["entries"][0]["policy"]["redelivery_delay"] == 5
    assert hosts["entries"][0]["dead_letters"]["strategy"]["type"] == "DiscardingDeadLetterStrategy"
    slashed = artemis(**{"/queue/x": {"redelivery_delay": 5}})
    assert json.loads(convert(slashed, "json").text)["rules"]["entries"] == [
        {"type": "AddressEntry", "match": "/queue/x", "settings": {"redelivery_delay": 0.005}}
    ]
    topic = json.loads(convert(classic(INDIVIDUAL_DEFAULT), "json").text)["destinations"]
    assert topic["topic://any.other.destination"]["dead_letter"] == "ActiveMQ.DLQ.Topic.any.other.destination"


def test_a_level_that_the_file_does_not_have_has_no_place_in_the_json() -> None:
    said = as_json.explanation(read("<virtualhosts><default>h</default></virtualhosts>", "x.xml").explain("q"))
    assert said["matched"] == [{"title": "broker", "place": None}]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(redelivery.ConfigError, match="to='yaml': use one of python, json"):
        convert(SOURCES["uri"], "yaml")


def test_a_drawing_has_a_line_for_each_attempt() -> None:
    lines = plot.as_text(simulate(classic(PLUGIN), "orders.x", CLIENT)).splitlines()
    assert lines[0] == "queue://orders.x (ActiveMQ Classic), 0 to 9 s"
    assert [line.split("|")[1].strip(" -") for line in lines[1:7]] == ["o", "c", "c", "B", "c", "c"]
    assert lines[7] == "     then ActiveMQ.DLQ"


@pytest.mark.together("matplotlib")
@pytest.mark.parametrize(("name", "begins"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml")])
def test_a_picture_is_written(tmp_path: Path, name: str, begins: bytes) -> None:
    pytest.importorskip("matplotlib")
    plot.save(simulate(classic(""), "orders"), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.together("matplotlib")
def test_a_picture_of_another_kind_or_place_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path, says in ((tmp_path / "x.gif", "ends in .png or .svg"), (tmp_path / "no" / "x.png", "cannot be written")):
        with pytest.raises(redelivery.ConfigError, match=says):
            plot.save(simulate(classic(""), "orders"), path)
