"""Of each fact in the tables of STOMP: a value that would be wrong, and the test that fails with it."""

from __future__ import annotations

from typing import Any, Final

from tests.transports.planting import Fact, Facts

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.dialect import STOMP_HEADERS

_NAMES: Final = "test_destinations_are_named_as_other_clients_of_the_broker_name_them"
_SUBSCRIPTIONS: Final = "test_subscriptions.py::test_"
_SHARED: Final = "test_shared_subscriptions.py::test_"
_KEPT: Final = "a_durable_subscription_keeps_what_is_sent_while_nobody_is_there"
_NOTHING: Final = Capabilities(transactions=False, body_kinds=frozenset())


def _conforms(wrong: Any, test: str, pair: str, more: str = "") -> Fact:
    return Fact(wrong, f"conformance/{test}", f"stomp-{pair} {more}".strip())


def _settled(wrong: Any, test: str, broker: str) -> Fact:
    """In `test_stomp_dialect_facts`."""
    return Fact(wrong, f"transports/test_stomp_dialect_facts.py::{test}", broker)


def _family(wrong: Any, test: str, broker: str) -> Fact:
    return Fact(wrong, f"transports/test_stomp_artemis_family.py::{test}", broker)


def _own(wrong: Any, test: str, broker: str) -> Fact:
    return Fact(wrong, f"transports/test_stomp_{broker}.py::{test}")


def _other_queues(wrong: Any) -> Fact:
    file = "transports/test_rabbitmq_queues_live.py"
    return Fact(wrong, f"{file}::test_a_queue_of_any_kind_is_sent_to_and_consumed_to_the_dead_letter", "rabbitmq")


def _names(wrong: Any, test: str) -> Fact:
    return Fact(wrong, f"transports/test_rabbitmq_names_live.py::test_{test}", "stomp")


def _limits(wrong: Any, test: str) -> Fact:
    return Fact(wrong, f"transports/test_rabbitmq_limits_live.py::test_{test}", "stomp")


def _frames(wrong: Any) -> Fact:
    file = "transports/test_rabbitmq_frames_live.py"
    return Fact(wrong, f"{file}::test_a_frame_that_the_broker_would_hang_up_on_is_refused_before_it_is_sent")


def _parks(broker: str) -> Fact:
    return Fact(False, "transports/test_stomp_large_batches.py::test_parked_messages_do_not_stop_the_others", broker)


def _temporaries(broker: str) -> Fact:
    return _conforms(None, "test_temporary.py::test_a_reply_comes_by_a_temporary_queue", broker)


def _no_temporaries(broker: str) -> Fact:
    return Fact("", "transports/test_stomp_temporaries.py::test_where_there_are_none_the_error_says_why", broker)


def _activemq(name: str) -> dict[str, Fact]:
    """What the embedded broker has in common with ActiveMQ Classic."""
    return {
        "capabilities": _conforms(
            _NOTHING, "test_transactions.py::test_everything_of_one_session_commits_as_one", name
        ),
        "owned_headers": _settled(STOMP_HEADERS, "test_what_jms_and_the_broker_write_is_no_property", name),
        "requests": _settled(frozenset(), "test_a_property_may_ask_for_a_delay_and_is_not_shown", name),
        "length_is_bytes": _settled(False, "test_what_a_plain_client_sends_is_text_or_bytes", name),
        "map_transformation": _conforms(None, "test_kinds.py::test_map_arrives_as_a_map", name),
        "delay_header": _conforms(
            "x-delay", "test_timing.py::test_message_is_not_delivered_before_its_delivery_time", name
        ),
        "prefetch_header": _settled("x-window", "test_the_window_is_what_was_asked_for", name),
        "no_local_header": _settled("x-no-local", "test_no_local_leaves_out_what_the_session_itself_publishes", name),
        "subscription_header": _conforms("x-name", f"{_SUBSCRIPTIONS}{_KEPT}", name),
        "ack_in_transaction": _settled(False, "test_a_batch_enters_its_transaction_before_the_commit", name),
        "enlist_at_most": _settled(400, "test_a_batch_beyond_a_page_does_not_stall_whatever_the_window", name),
        "nack_is_poison": _conforms(
            False, "test_exhaustion.py::test_the_brokers_own_dead_letter_stands_once_and_keeps_the_message", name
        ),
        "parks": _conforms(False, "test_order.py::test_parking_delayed_messages_do_not_fill_the_window", name),
        "receipt_in_transaction": _settled(False, "test_a_send_in_a_transaction_is_answered_before_the_commit", name),
        "max_header": _settled(0, "test_what_the_wire_format_allows_is_delivered_and_one_more_is_refused_here", name),
        "max_headers": _settled(0, "test_what_the_wire_format_allows_is_delivered_and_one_more_is_refused_here", name),
        "error_names_receipt": _settled(False, "test_an_error_that_answers_nobody_fails_no_call", name),
        "temporaries": _temporaries(name),
        "exclusive_header": _conforms(
            "x-exclusive", "test_exclusive.py::test_the_first_exclusive_consumer_gets_all_whoever_else_consumes", name
        ),
    }


def _artemis_family(name: str) -> dict[str, Fact]:
    """What Artemis and HornetQ have in common."""
    return {
        "capabilities": _conforms(
            _NOTHING, "test_transactions.py::test_everything_of_one_session_commits_as_one", name
        ),
        "queue_prefix": _settled(
            "/queue/", "test_destinations_are_named_as_other_clients_of_the_broker_name_them", name
        ),
        "topic_prefix": _settled(
            "/topic/", "test_destinations_are_named_as_other_clients_of_the_broker_name_them", name
        ),
        "any_words": _family(">", "test_a_pattern_of_topics_takes_from_all_and_one_of_queues_is_refused", name),
        "owned_headers": _family(STOMP_HEADERS, "test_a_body_comes_back_as_it_was_sent", name),
        "owned_prefixes": _family((), "test_a_duplicate_id_can_be_given_and_is_not_shown", name),
        "origin_prefix": _settled(None, "test_where_a_dead_letter_of_the_broker_came_from_is_shown", name),
        "group_header": _family("JMSXGroupID", "test_a_body_comes_back_as_it_was_sent", name),
        "delay_header": _family("x-delay", "test_a_delayed_message_comes_later", name),
        "prefetch_unit": _settled(1, "test_a_small_window_lets_messages_of_a_kilobyte_through", name),
        "needs_extra_subscription": Fact(
            False, "transports/test_stomp_large_batches.py::test_parked_messages_do_not_stop_the_others", name
        ),
        "no_local_header": _family("x-no-local", "test_no_local_leaves_out_what_the_connection_itself_sends", name),
        "ack_key": _family(b"\nack:", "test_a_producers_own_ack_and_flag_mean_nothing", name),
        "receipt_in_transaction": _settled(False, "test_a_send_in_a_transaction_is_answered_before_the_commit", name),
        "releases_as_new": Fact(
            False,
            "transports/test_stomp_released.py::test_what_a_session_has_shown_and_released_is_flagged_when_it_is_redelivered",
            name,
        ),
        # and for as long as its 65 s take: test_stomp_artemis_family.py::test_a_silent_client_is_not_thrown_out
        "silence_limit": _settled(
            0.0,
            "test_who_is_thrown_out_for_silence_beats_though_no_heart_beats_are_wanted",
            "Artemis" if name == "artemis" else "Hornet",
        ),
        "no_temporaries": _no_temporaries(name),
    }


STOMP: Final[Facts] = {
    "activemq": {
        **_activemq("activemq"),
        "amqp_bodies": Fact(
            None,
            "transports/test_amqp_and_stomp_on_classic.py::test_what_comes_over_amqp_cannot_be_acknowledged_over_stomp_and_is_not_lost",
        ),
        "acks_browsers_itself": Fact(
            False, "cli/test_letters_of_brokers.py::test_letters_that_were_sent_over_amqp_are_shown_over_stomp"
        ),
        "maps_lacking": Fact(
            "", "transports/test_stomp_without_xstream.py::test_a_map_that_is_sent_is_in_doubt_and_the_reason_is_named"
        ),
        "sessions_per_wire": _conforms(
            0,
            "test_sessions_apart.py::test_what_a_session_has_parked_is_acknowledged_though_another_one_commits",
            "activemq",
        ),
        "lone_ack_commits": Fact(
            False,
            "transports/test_stomp_classic.py::test_a_commit_of_one_delivery_is_its_ack_and_a_refused_one_is_rolled_back",
        ),
        "commit_ends_parking": _conforms(
            False, "test_order.py::test_parking_survives_the_commits_of_others", "activemq"
        ),
        "receipt_starves_patterns": _conforms(
            False, "test_destinations.py::test_wildcard_consumer_gets_the_backlog_of_every_queue", "activemq"
        ),
        "default_prefetch": _settled(10, "test_the_window_is_what_was_asked_for", "activemq"),
    },
    "artemis": {
        **_artemis_family("artemis"),
        "longest_text": Fact(
            0, "transports/test_stomp_long_texts.py::test_a_text_that_it_would_lose_is_sent_as_bytes_with_its_kind"
        ),
        "requests": _settled(frozenset(), "test_a_property_may_ask_for_a_delay_and_is_not_shown", "artemis"),
        "subscription_header": _conforms("x-name", f"{_SUBSCRIPTIONS}{_KEPT}", "artemis"),
        "subscription_changes": _conforms(
            True, f"{_SUBSCRIPTIONS}another_topic_in_the_same_connection_makes_it_a_new_subscription", "artemis"
        ),
        "shared_needs_client_id": _conforms(
            False, f"{_SHARED}a_shared_durable_subscription_without_a_client_id_is_every_connections", "artemis"
        ),
        "send_to_queue": _family((), "test_a_name_is_a_queue_and_a_topic_which_are_two", "artemis"),
        "send_to_topic": _family((), "test_a_name_is_a_queue_and_a_topic_which_are_two", "artemis"),
        "consume_queue": _family((), "test_a_name_is_a_queue_and_a_topic_which_are_two", "artemis"),
        "consume_topic": _family(
            (("subscription-type", "ANYCAST"),), "test_a_name_is_a_queue_and_a_topic_which_are_two", "artemis"
        ),
        "addresses": Fact(
            None, "promises/real/test_addresses.py::test_a_send_over_stomp_reaches_the_queues_of_the_address", ""
        ),
        "reply_to_is_uri": _family(False, "test_a_body_comes_back_as_it_was_sent", "artemis"),
        "kind_header": Fact(
            None, "transports/test_stomp_dialect_facts.py::test_the_kind_that_a_client_over_amqp_has_named", "artemis"
        ),
        "message_id_header": Fact(
            None, "transports/test_stomp_dialect_facts.py::test_the_id_that_a_client_over_amqp_has_given", "artemis"
        ),
        "message_id_separator": _conforms(
            "", "test_kinds.py::test_message_id_stays_the_same_over_redeliveries", "artemis"
        ),
        "group_sequence_header": _settled("JMSXGroupSeq", "test_the_group_of_a_client_over_amqp", "artemis"),
        "prefetch_header": _own("x-window", "test_a_small_window_is_kept_and_does_not_stall", "artemis"),
        "unlimited_window": _own("1", "test_a_batch_of_a_topic_does_not_stall_and_nothing_comes_twice", "artemis"),
        "default_window": _settled(2048, "test_a_default_window_holds_hundreds_of_messages", "artemis"),
        "selector_prefix": _own("", "test_a_selector_compares_numbers_and_knows_jms_names", "artemis"),
        "selector_names": _own((), "test_a_selector_compares_numbers_and_knows_jms_names", "artemis"),
        "error_closes": _own(False, "test_every_error_ends_the_connection_and_the_call_says_why", "artemis"),
    },
    "hornetq": {
        **_artemis_family("hornetq"),
        "splits_qualified": Fact(
            False,
            "promises/real/test_hornetq_addresses.py::test_a_queue_named_with_its_address_is_sent_to_and_consumed",
        ),
        "prefetch_unit": _own(1, "test_a_batch_of_ten_kilobytes_needs_a_further_subscription", "hornetq"),
        "acks_topics_itself": _conforms(
            False,
            "test_destinations.py::test_each_consumer_of_a_topic_acknowledges_its_own_in_one_session_too",
            "hornetq",
        ),
        "sessions_per_wire": _family(0, "test_no_local_holds_though_the_connection_subscribes_without_it", ""),
        "max_body": _own(0, "test_a_body_that_it_would_confirm_and_lose_is_refused", "hornetq"),
        "says_persistent": _own(True, "test_what_is_not_persistent_is_marked_by_a_property_of_ours", "hornetq"),
        "delay_is_time": _family(False, "test_a_delayed_message_comes_later", "hornetq"),
        "fixed_window": _own(0, "test_a_batch_of_ten_kilobytes_needs_a_further_subscription", "hornetq"),
        "default_prefetch": _settled(100, "test_batched_acknowledgements_leave_before_the_window_is_full", ""),
        "selector_names": _own((), "test_a_selector_compares_texts_and_knows_jms_names", "hornetq"),
        "error_names_receipt": _settled(False, "test_an_error_that_answers_nobody_fails_no_call", "hornetq"),
    },
    "rabbitmq 4": {
        "limits": _limits(None, "twenty_one_lost_connections_are_said_before_the_message_goes"),
        "counted_prefetch": _limits(0, "what_a_session_that_closes_costs"),
        "max_frame": _frames(0),
        "frame_setting": _frames("x"),
    },
    "rabbitmq 4.3": {"counted_prefetch": _limits(5, "where_little_is_charged_the_usual_window_is_prefetched")},
    "rabbitmq": {
        "capabilities": _conforms(
            _NOTHING, "test_transactions.py::test_everything_of_one_session_commits_as_one", "rabbitmq"
        ),
        "temporaries": _temporaries("rabbitmq"),
        "no_temporaries": _no_temporaries("rabbitmq"),
        "percent_encoded": _own(False, "test_a_name_may_hold_what_a_url_may_not", "rabbitmq"),
        "stream": Fact("", "transports/test_rabbitmq_full_live.py::test_a_stream_is_said_to_be_one", "stomp"),
        "closes_silently": Fact(
            "", "transports/test_rabbitmq_full_live.py::test_a_full_queue_that_rejects_is_named", "stomp"
        ),
        "exchange_prefix": _names("/queue/", "an_exchange_and_a_key_are_published_to_and_bound_to"),
        "spellings": _names(None, "a_queue_in_the_broker_s_spelling_is_that_queue"),
        "makes_queues": _names(True, "a_queue_that_is_not_there_is_not_made"),
        "impossible": _names((), "a_queue_that_is_not_there_is_not_made"),
        "absent_refusal": _names("nothing", "a_queue_that_is_not_there_is_not_made"),
        "existing_queue_prefix": _other_queues("/queue/"),
        "other_queue_refusal": _other_queues(""),
        "any_words": _own(">", "test_topics_have_patterns_and_queues_have_none", "rabbitmq"),
        "virtual_host": _own(None, "test_its_default_virtual_host_is_found_without_an_option", "rabbitmq"),
        "virtual_host_refused": _own(None, "test_its_default_virtual_host_is_found_without_an_option", "rabbitmq"),
        "owned_headers": _own(STOMP_HEADERS, "test_a_body_comes_back_as_it_was_sent", "rabbitmq"),
        "owned_prefixes": _own(
            (), "test_poison_is_a_nack_that_does_not_requeue_where_the_broker_is_set_up_for_it", "rabbitmq"
        ),
        "origin_prefix": _own(
            None, "test_poison_is_a_nack_that_does_not_requeue_where_the_broker_is_set_up_for_it", "rabbitmq"
        ),
        "binary_headers": Fact(
            b"", "transports/test_stomp_dialect_facts.py::test_the_id_that_a_client_over_amqp_has_given", "rabbitmq"
        ),
        "opaque_bodies": _settled(False, "test_the_content_type_says_what_a_body_is", "rabbitmq"),
        "sections_type": Fact(
            None,
            "transports/test_rabbitmq_both_protocols_live.py::test_what_was_sent_over_amqp_is_received_over_stomp",
            "rabbitmq",
        ),
        "count_header": _settled(None, "test_a_quorum_queue_counts", "rabbitmq"),
        "message_id_header": _conforms(
            None, "test_kinds.py::test_message_id_stays_the_same_over_redeliveries", "rabbitmq"
        ),
        "makes_message_ids": _conforms(
            False, "test_kinds.py::test_message_id_stays_the_same_over_redeliveries", "rabbitmq"
        ),
        "timestamp_unit": _own(0, "test_a_body_comes_back_as_it_was_sent", "rabbitmq"),
        "expiration_header": _own(None, "test_an_expired_message_does_not_come", "rabbitmq"),
        "prefetch_header": _own("x-window", "test_a_small_window_is_kept_and_does_not_stall", "rabbitmq"),
        "needs_extra_subscription": _parks("rabbitmq"),
        "unsubscribe_keeps": _own(
            None, "test_a_closed_consumer_releases_what_it_has_though_unsubscribe_keeps_it", "rabbitmq"
        ),
        "nack_is_poison": _own(
            False, "test_poison_is_a_nack_that_does_not_requeue_where_the_broker_is_set_up_for_it", "rabbitmq"
        ),
        "nack_headers": _own(
            (), "test_poison_is_a_nack_that_does_not_requeue_where_the_broker_is_set_up_for_it", "rabbitmq"
        ),
        "commit_confirms_sends": _own(
            True, "test_a_refused_send_leaves_the_commit_in_doubt_and_acknowledges_nothing", "rabbitmq"
        ),
    },
    # of our own broker a batch beyond the window shows it; it pages nothing
    "embedded": {
        **_activemq("embedded"),
        "enlist_at_most": _settled(0, "test_a_batch_beyond_a_page_does_not_stall_whatever_the_window", "embedded"),
        "shared_headers": _conforms(
            (), f"{_SHARED}consumers_of_a_shared_durable_subscription_share_what_was_kept", "embedded"
        ),
        "volatile_headers": _conforms(
            (), f"{_SHARED}consumers_of_a_shared_subscription_share_and_it_ends_with_the_last", "embedded"
        ),
    },
    # There is none: what is safe on all brokers is tried on a scripted one.
    "unknown": {
        "capabilities": Fact(
            _NOTHING, "transports/test_stomp_unknown_broker.py::test_unknown_its_facts_are_the_safest_ones"
        ),
        "owned_headers": Fact(
            STOMP_HEADERS, "transports/test_stomp_unknown_broker.py::test_unknown_its_facts_are_the_safest_ones"
        ),
        "owned_prefixes": Fact(
            (), "transports/test_stomp_unknown_broker.py::test_unknown_its_facts_are_the_safest_ones"
        ),
        "requests": Fact(
            frozenset(), "transports/test_stomp_unknown_broker.py::test_unknown_its_facts_are_the_safest_ones"
        ),
        "says_persistent": Fact(
            True, "transports/test_stomp_unknown_broker.py::test_unknown_its_facts_are_the_safest_ones"
        ),
    },
}
