"""Every value of a dialect that is not the default names the test that fails where it is another one.

Each row was tried: the value was replaced by a wrong one, and the test failed. Where a real broker ignores a value, or
takes the wrong one as well, a test with a scripted peer or of the names says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.detect import _DIALECTS

TESTS = Path(__file__).parents[1]
Rows = Mapping[tuple[str, str], str]  # broker and field: a test, below tests/

_FACTS = "transports/test_amqp_dialect_live.py::"
_TOPICS = "conformance/test_destinations.py::test_every_subscriber_of_a_topic_gets_each_message"
_DELAYED = "conformance/test_browser.py::test_a_delayed_message_is_not_shown_before_its_time"
_EXCLUSIVE = "conformance/test_exclusive.py::test_the_first_exclusive_consumer_gets_all_whoever_else_consumes"
_BROKERS_OWN = "conformance/test_exhaustion.py::test_the_brokers_own_dead_letter_stands_once_and_keeps_the_message"
_ANY_WORDS = f"{_FACTS}test_any_words_of_a_topic"
_TERMINUS = "transports/test_amqp_names.py::test_capabilities_are_the_dialects"
_ADDRESSES = "transports/test_amqp_names.py::test_addresses_both_ways"
_NOT_ASKED = f"{_FACTS}test_rabbitmq_is_not_asked_for_what_it_cannot_make"
_RELEASED = (
    "transports/test_amqp_detach.py::test_a_detach_releases_what_was_seen_as_failed_and_the_rest_as_if_nothing_had_been"
)
_LINKS = "transports/test_amqp_links.py::"
_QUEUES = "transports/test_rabbitmq_queues_live.py::test_"
_QUEUES_OF = "transports/test_rabbitmq_full_live.py::test_"
_NAMES = "transports/test_rabbitmq_names_live.py::test_"
_LIMITS = "transports/test_rabbitmq_limits_live.py::test_"
_QUEUES_AS_THEY_ARE = f"{_QUEUES}a_queue_of_any_kind_is_sent_to_and_consumed_to_the_dead_letter"
_DECLARED = "conformance/test_declaring.py::test_kind_and_arguments_are_the_brokers_own_words"
_ADDRESS = "promises/real/test_addresses_letters.py::test_"
_DEPTH = "spark/test_amqp_depth_live.py::test_on_"

AMQP: Rows = {
    ("activemq", "topic_prefix"): _TOPICS,
    ("activemq", "topic_waits_for_credit"): (f"{_FACTS}test_a_topic_s_consumer_on_classic_is_there_when_its_credit_is"),
    ("activemq", "most_credit"): "transports/test_amqp_credit.py::test_five_thousand_messages_are_held_in_one_batch",
    ("activemq", "rejected_is_poison"): _BROKERS_OWN,
    ("activemq", "session_end_counts"): "conformance/test_counts.py::test_counts_after_a_close",
    ("activemq", "delay_annotation"): _DELAYED,
    ("activemq", "exclusive_option"): _EXCLUSIVE,
    ("artemis", "any_words"): _ANY_WORDS,
    ("artemis", "rejected_is_poison"): "transports/test_own_dead_letters_live.py::test_artemis_after_it_was_rejected",
    ("artemis", "drain_overlaps"): "conformance/test_browser.py::test_a_queue_of_many_windows_is_shown_whole",
    ("artemis", "end_waits_for_senders"): (
        "transports/test_amqp_detach.py::test_sending_links_are_detached_before_the_end_where_it_would_wait_for_them"
    ),
    ("artemis", "expires_released"): f"{_ADDRESS}what_expires_goes_to_the_queue_of_the_expiry_address",
    ("artemis", "origin_prefix"): (f"{_ADDRESS}copies_go_to_the_queue_of_the_address_and_the_console_brings_them_home"),
    ("artemis", "delay_annotation"): _DELAYED,
    ("artemis", "depth"): f"{_DEPTH}artemis_it_falls_with_what_tasks_receive",
    ("artemis", "queues"): _DECLARED,
    ("artemis", "duplicate_refusal"): (
        "spark/test_sink_artemis.py::test_a_task_that_was_committed_before_succeeds_and_sends_nothing"
    ),
    ("qpid", "topic_prefix"): _TOPICS,
    ("qpid", "any_words"): _ANY_WORDS,
    ("qpid", "queues"): _DECLARED,
    ("qpid", "durable_no_local"): (
        "conformance/test_subscriptions.py::test_no_local_keeps_ones_own_messages_away_from_a_durable_subscription"
    ),
    ("qpid", "queue_capability"): _TERMINUS,
    ("qpid", "topic_capability"): _TERMINUS,
    ("qpid", "temporary_topic_capability"): (
        "conformance/test_temporary.py::test_a_temporary_topic_reaches_every_consumer"
    ),
    ("qpid", "depth"): f"{_DEPTH}broker_j_it_falls_with_what_tasks_receive",
    ("rabbitmq", "queue_prefix"): _ADDRESSES,
    ("rabbitmq", "topic_prefix"): _TOPICS,
    ("rabbitmq", "existing_queue_prefix"): (
        "transports/test_amqp_names.py::test_rabbitmqs_name_of_a_queue_that_is_there_is_that_queue"
    ),
    ("rabbitmq", "other_queue_refusal"): _QUEUES_AS_THEY_ARE,
    ("rabbitmq", "slash"): _ADDRESSES,
    ("rabbitmq 4", "queue_prefix"): _ADDRESSES,
    ("rabbitmq 4", "topic_prefix"): _ADDRESSES,
    ("rabbitmq 4", "percent_encoded"): _ADDRESSES,
    ("rabbitmq 4", "any_words"): _ANY_WORDS,
    ("rabbitmq 4", "queue_capability"): _TERMINUS,
    ("rabbitmq 4", "topic_capability"): _TERMINUS,
    ("rabbitmq 4", "temporary_queue_capability"): _TERMINUS,
    ("rabbitmq 4", "temporary_topic_capability"): _TERMINUS,
    ("rabbitmq 4", "management"): _QUEUES_AS_THEY_ARE,
    ("rabbitmq 4", "rejected_is_poison"): f"{_QUEUES}what_the_broker_dead_letters_itself_says_so",
    ("rabbitmq 4", "redelivered_by_first_acquirer"): "conformance/test_counts.py::test_counts_after_a_close",
    ("rabbitmq 4", "count_annotation"): f"{_QUEUES}a_quorum_queue_counts_deliveries",
    ("rabbitmq", "exchange_prefix"): f"{_NAMES}an_exchange_and_a_key_are_published_to_and_bound_to",
    ("rabbitmq", "spellings"): f"{_NAMES}a_queue_in_the_broker_s_spelling_is_that_queue",
    ("rabbitmq", "makes_queues"): f"{_NAMES}a_queue_that_is_not_there_is_not_made",
    ("rabbitmq", "released_is_unrouted"): f"{_QUEUES_OF}what_no_queue_takes_has_no_destination",
    ("rabbitmq 4", "exchange_prefix"): f"{_NAMES}an_exchange_and_a_key_are_published_to_and_bound_to",
    ("rabbitmq 4", "spellings"): f"{_NAMES}a_queue_in_the_broker_s_spelling_is_that_queue",
    ("rabbitmq 4", "makes_queues"): f"{_NAMES}a_queue_that_is_not_there_is_not_made",
    ("rabbitmq 4", "released_is_unrouted"): f"{_QUEUES_OF}what_no_queue_takes_has_no_destination",
    ("rabbitmq 4", "bare_rejection"): "transports/test_rabbitmq_full_live.py::test_a_full_queue_that_rejects_is_named",
    ("rabbitmq 4", "stream"): f"{_QUEUES_OF}a_stream_is_said_to_be_one",
    ("rabbitmq 4", "limits"): f"{_LIMITS}twenty_one_lost_connections_are_said_before_the_message_goes",
    ("rabbitmq 4", "counted_prefetch"): f"{_LIMITS}what_a_session_that_closes_costs",
    ("rabbitmq 4.3", "counted_prefetch"): f"{_LIMITS}where_little_is_charged_the_usual_window_is_prefetched",
    ("rabbitmq 4", "keeps_sessions"): f"{_QUEUES}sessions_that_follow_each_other_do_not_hang",
    ("rabbitmq 4", "session_per_link"): f"{_LINKS}test_where_a_refusal_ends_the_whole_session_the_others_live_on",
    ("rabbitmq 4", "end_waits_for_senders"): (
        "transports/test_amqp_detach.py::test_sending_links_are_detached_before_the_end_where_it_would_wait_for_them"
    ),
    ("rabbitmq", "any_words"): _ANY_WORDS,
    ("rabbitmq", "queue_capability"): _TERMINUS,
    ("rabbitmq", "topic_capability"): _TERMINUS,
    ("rabbitmq", "temporary_queue_capability"): _NOT_ASKED,
    ("rabbitmq", "temporary_topic_capability"): _NOT_ASKED,
    ("rabbitmq", "rejected_is_poison"): f"{_FACTS}test_rabbitmq_rejects_poison_where_it_is_set_up_for_it",
    ("rabbitmq", "modified"): f"{_FACTS}test_rabbitmq_is_never_sent_modified",
    ("rabbitmq", "drain"): "transports/test_amqp_credit.py::test_where_a_drain_is_not_understood_none_is_sent",
    ("rabbitmq", "redelivered_by_first_acquirer"): "conformance/test_counts.py::test_counts_after_a_close",
    ("rabbitmq", "session_per_link"): f"{_LINKS}test_where_a_refusal_ends_the_whole_session_the_others_live_on",
    ("rabbitmq", "durable_nodes"): f"{_FACTS}test_a_queue_that_a_link_makes_on_rabbitmq_outlives_it",
    ("rabbitmq", "end_drops_answers"): (
        "transports/test_amqp_rabbitmq.py::test_a_consumer_that_is_closed_while_messages_come_is_closed_at_once"
    ),
    ("embedded", "topic_prefix"): f"{_FACTS}test_a_topic_of_the_embedded_broker_is_named_as_on_classic",
    ("embedded", "rejected_is_poison"): _BROKERS_OWN,
    ("embedded", "finds_global"): (
        "broker/test_subscriptions.py::test_what_is_of_no_client_id_is_found_by_its_name_alone"
    ),
    ("embedded", "delay_annotation"): _DELAYED,
    ("embedded", "exclusive_option"): _EXCLUSIVE,
    ("hornetq", "unsupported"): (
        "conformance/test_refused.py::test_hornetq_over_amqp_is_refused_and_distinguished_from_all_others"
    ),
    ("unknown", "drain"): _RELEASED,
    ("unknown", "modified"): _RELEASED,
    ("unknown", "session_per_link"): _RELEASED,
}


# Of the broker, whatever it is spoken to with.
_REFUSED_TOPIC = "spark/test_options.py::test_a_bad_value_is_named_with_what_is_right"
BROKER: Rows = {
    ("activemq", "queue_of_topic"): _REFUSED_TOPIC,
    ("artemis", "queue_of_topic"): _REFUSED_TOPIC,
    ("rabbitmq", "counted_properties"): (
        "spark/test_duplicates.py::test_the_order_of_properties_and_what_brokers_count_do_not_matter"
    ),
}


def stated() -> set[tuple[str, str]]:
    """What differs from the default; `capabilities` is held by the conformance table of each pair."""
    found = set()
    for name, dialect in _DIALECTS.items():
        versions = [(name, dialect.amqp)] if dialect.amqp is not None else []
        versions += [(f"{name} {'.'.join(map(str, since))}", table) for since, table in reversed(dialect.amqp_since)]
        for number, (version, table) in enumerate(versions):
            older = versions[number - 1][1] if number > 1 else None  # RabbitMQ 4 has nothing of what was before it
            for field in fields(AmqpDialect):
                usual = field.default if older is None else getattr(older, field.name)
                if field.default is not MISSING and getattr(table, field.name) != usual:
                    found.add((version, field.name))
    return found


def test_every_value_of_a_broker_names_its_test() -> None:
    assert stated() == AMQP.keys()
    assert {
        (name, field)
        for name, dialect in _DIALECTS.items()
        for field in ("queue_of_topic", "counted_properties")
        if getattr(dialect, field)
    } == BROKER.keys()


def test_every_field_is_needed_by_some_broker() -> None:
    used = {field for _, field in stated()}
    usual = {field.name for field in fields(AmqpDialect)} - {"capabilities"}
    assert usual - used == UNUSED.keys()


# No broker has another value than the default, which tests of the default hold.
UNUSED: Mapping[str, str] = {
    "default_prefetch": f"{_FACTS}test_a_consumer_that_says_nothing_has_a_window_of_a_hundred",
    "delay_is_time": "transports/test_amqp_sends.py::test_delays_are_the_dialects_annotation",
}


@pytest.mark.parametrize("test", sorted({*AMQP.values(), *BROKER.values(), *UNUSED.values()}))
def test_the_test_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (TESTS / file).read_text(encoding="utf-8")
