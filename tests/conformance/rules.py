"""Which test holds which rule of a broker; docs/brokers has the rules and their reasons.

`RULES` are those of ActiveMQ Classic over STOMP, where the suite began, and run on every pair that can do it.
`TRAPS` are what the other brokers mean by the same protocols, on the real broker or, where it cannot be made to
misbehave, on a peer that plays it.
"""

from __future__ import annotations

from collections.abc import Mapping

RULES: Mapping[str, tuple[str, ...]] = {
    "a batch larger than the prefetch window does not stall": (
        "test_batches.py::test_batch_commits_as_one",
        "test_batches.py::test_batch_larger_than_a_small_window",
        "test_batches.py::test_many_small_transactions_on_a_backlog",
        "test_batches.py::test_two_consumers_of_one_session_share_a_backlog",
        "test_batches.py::test_a_listener_takes_batches_larger_than_the_window",
    ),
    "what was enlisted in a transaction is ours again after its rollback": (
        "test_batches.py::test_batch_rolls_back_and_comes_again_in_order",
        "test_batches.py::test_batch_with_sends_is_one_transaction",
    ),
    "what was enlisted and never committed goes back to the broker": (
        "test_batches.py::test_batch_left_uncommitted_at_close_is_all_there",
    ),
    "CLIENT does the same in a transaction of its own": (
        "test_batches.py::test_batch_acknowledged_in_client_mode",
        "test_batches.py::test_batch_recovered_in_client_mode",
        "test_batches.py::test_batch_never_acknowledged_in_client_mode_is_all_there",
    ),
    "a refused SEND does not commit the rest": (
        "test_transactions.py::test_a_refused_send_rolls_the_whole_transaction_back",
        "test_transactions.py::test_a_refused_send_after_a_batch_larger_than_the_window",
    ),
    "an ERROR for one call leaves the connection alive": (
        "test_transactions.py::test_a_refused_send_outside_a_transaction_raises_and_the_connection_lives",
        "test_transactions.py::test_a_send_to_a_full_queue_raises_and_the_connection_lives",
        "test_transactions.py::test_a_refused_consumer_raises_and_the_connection_lives",
    ),
    "UNSUBSCRIBE is deferred until everything that the consumer delivered is settled": (
        "test_close.py::test_deferred_close_a_commit_after_it_takes_what_the_consumer_delivered",
        "test_close.py::test_deferred_close_an_acknowledge_after_it_takes_what_the_consumer_delivered",
        "test_close.py::test_deferred_close_a_rollback_after_it_gives_the_messages_back",
        "test_close.py::test_deferred_close_unseen_messages_go_to_others_at_the_end_of_the_transaction",
        "test_close.py::test_deferred_close_many_consumers_in_one_transaction",
    ),
    "a failed commit brings the deliveries again": (
        "test_transactions.py::test_a_refused_send_rolls_the_whole_transaction_back",
        "../faults/test_answers_lost.py::test_failed_commit_rolls_back_and_the_deliveries_come_again",
    ),
    "a commit whose answer is lost is in doubt": (
        "../faults/test_broker_kill.py::test_what_was_committed_before_stays_and_nothing_else",
        "../faults/test_answers_lost.py::test_r12_commit_executed_and_its_answer_lost_is_in_doubt",
    ),
    "poison is a NACK, after exactly maximum_redeliveries + 1 deliveries, once": (
        "test_exhaustion.py::test_each_message_is_delivered_maximum_plus_one_times",
        "test_exhaustion.py::test_the_delays_are_the_policys",
        "test_exhaustion.py::test_the_brokers_own_dead_letter_stands_once_and_keeps_the_message",
    ),
    "a cause on the dead letter needs a copy, in one transaction with the ACK": (
        "test_exhaustion.py::test_the_shared_strategy_reports_origin_cause_and_count",
        "test_exhaustion.py::test_the_individual_strategy_has_a_queue_for_each_destination",
    ),
    "each message is poisoned by its own count": (
        "test_exhaustion.py::test_each_message_is_poisoned_by_its_own_count_never_the_batch",
    ),
    "the count begins at 1, or 2 with the redelivered flag, and local redeliveries are added": (
        "test_first_delivery.py::test_r1_each_local_redelivery_has_the_flag_and_one_more",
        "test_first_delivery.py::test_r2_delivered_and_not_acknowledged_comes_to_the_next_client_with_the_flag",
    ),
    "non-blocking redelivery does not stop at the prefetch window": (
        "test_order.py::test_parking_delayed_messages_do_not_fill_the_window",
        "test_order.py::test_parking_each_comes_again_once_with_its_count",
        "test_order.py::test_parking_survives_the_commits_of_others",
    ),
    "AUTO is client-individual on the wire, acknowledged before receive returns": (
        "test_ack_modes.py::test_r3_auto_acknowledges_when_receive_returns",
        "test_ack_modes.py::test_r3_auto_acknowledges_a_list_before_it_is_handed_over",
    ),
    "a wildcard consumer uses the policy of the message's real queue": (
        "test_exhaustion.py::test_a_wildcard_consumer_uses_the_policy_of_the_real_queue",
    ),
    "a subscription to a pattern asks for no receipt, which would starve it": (
        "test_exhaustion.py::test_a_wildcard_consumer_uses_the_policy_of_the_real_queue",
        "test_destinations.py::test_wildcard_consumer_gets_from_every_queue_that_matches",
        "test_destinations.py::test_wildcard_consumer_gets_the_backlog_of_every_queue",
    ),
    "content-length is for bytes, a str goes without": (
        "test_kinds.py::test_body_arrives_as_sent",
        "../transports/test_stomp_messages.py::test_only_bytes_have_a_content_length",
    ),
}

TRAPS: Mapping[str, tuple[str, ...]] = {
    "Artemis over STOMP: an ACK counts at once, so none leaves before the COMMIT is confirmed": (
        "../transports/test_stomp_acks_follow.py::test_sends_are_committed_and_then_the_deliveries_acknowledged",
        "../transports/test_stomp_artemis_family.py::test_a_rollback_leaves_what_no_transaction_could_release",
        "../transports/test_stomp_acks_follow.py::test_a_crash_between_the_commit_and_the_acks_is_a_duplicate_never_a_loss",
    ),
    "Artemis over STOMP: NACK is ACK, so poison is a deduplicated copy, its receipt, then the ACK": (
        "../transports/test_stomp_artemis_family.py::test_poison_is_never_left_to_a_nack",
        "../transports/test_stomp_acks_follow.py::test_poison_is_a_copy_and_then_the_ack",
        "../transports/test_stomp_artemis_family.py::test_a_crash_between_the_copy_and_the_ack_leaves_one_copy",
        "../transports/test_stomp_artemis_family.py::test_a_replayed_dead_letter_can_be_dead_lettered_again",
    ),
    "Artemis over STOMP: a producer's own headers mean nothing": (
        "../transports/test_stomp_artemis_family.py::test_a_producers_own_ack_and_flag_mean_nothing",
        "../transports/test_stomp_acks_follow.py::test_what_a_frame_said_is_not_said_again",
    ),
    "Artemis over STOMP: every ERROR ends the connection": (
        "../transports/test_stomp_artemis.py::test_every_error_ends_the_connection_and_the_call_says_why",
    ),
    "Artemis over STOMP: a silent client is thrown out after a minute, whatever was agreed": (
        "../transports/test_stomp_artemis_family.py::test_a_silent_client_is_not_thrown_out",
    ),
    "RabbitMQ over STOMP: an ack id of an old connection names another message, so it is never sent": (
        "../transports/test_stomp_rabbitmq.py::test_an_id_of_a_lost_connection_is_never_sent",
    ),
    "RabbitMQ over STOMP: UNSUBSCRIBE keeps what was delivered": (
        "../transports/test_stomp_rabbitmq.py::test_a_closed_consumer_releases_what_it_has_though_unsubscribe_keeps_it",
        "../transports/test_stomp_rabbitmq.py::test_a_closed_session_releases_a_batch_larger_than_the_window",
    ),
    "RabbitMQ over STOMP: COMMIT's receipt says nothing of the SENDs": (
        "../transports/test_stomp_rabbitmq.py::test_a_refused_send_leaves_the_commit_in_doubt_and_acknowledges_nothing",
        "../transports/test_stomp_rabbitmq.py::test_confirmations_are_matched_by_their_number",
    ),
    "RabbitMQ ignores selectors and delays, so they are refused": (
        "../transports/test_stomp_rabbitmq.py::test_what_it_ignores_is_refused",
        "../transports/test_amqp_links.py::test_a_selector_that_the_broker_would_ignore_is_refused_without_asking_it",
    ),
    "RabbitMQ over AMQP: a drain ends the session, so none is sent": (
        "../transports/test_amqp_credit.py::test_where_a_drain_is_not_understood_none_is_sent",
    ),
    "RabbitMQ over AMQP: a refused link ends its session, so each has one of its own": (
        "../transports/test_amqp_links.py::test_where_a_refusal_ends_the_whole_session_the_others_live_on",
    ),
    "AMQP: accepts are enlisted at the commit only, since Artemis counts each rollback": (
        "../transports/test_amqp_transactions.py::test_a_commit_enlists_discharges_and_declares_the_next_at_once",
        "../transports/test_amqp_transactions.py::test_a_rollback_undoes_the_sends_and_touches_no_delivery",
    ),
    "AMQP: a transaction that the broker has given up is never used again": (
        "../transports/test_amqp_transactions.py::test_an_idle_transaction_is_replaced_before_anything_enters_it",
        "../transports/test_amqp_transactions_lost.py::test_a_transaction_that_went_with_its_coordinator_is_not_committed_by_another",
    ),
    "AMQP: where `rejected` only counts (Broker-J), poison is a copy and an accept in one transaction": (
        "../transports/test_amqp_poison.py::test_a_copy_and_the_acknowledgement_are_one",
        "../transports/test_amqp_credit.py::test_poison_needs_a_copy_where_rejecting_does_not_dead_letter",
    ),
    "AMQP: what nobody saw is released before a link is closed, or it would count as an attempt": (
        "../transports/test_amqp_detach.py::test_a_detach_releases_what_was_seen_as_failed_and_the_rest_as_if_nothing_had_been",
    ),
}
