"""What the forms of a run have of which files: the lists behind `tests.run.forms`."""

from __future__ import annotations

from typing import Final

# Where a rule that cannot depend on the broker is tried in the short form: on every machine, without a wait.
CHEAP_PAIRS: Final = ("vm", "stomp-embedded", "amqp-embedded")
EMBEDDED: Final = "embedded"
# Of the suite on the embedded broker with a store, what the short form has: the store's own tests look closer.
STORED_FILES: Final = ("test_counts.py", "test_transactions.py")
# Of the suite on a pair that differs from another one by its dialect only, what the short form has.
BRIEF_FILES: Final = (
    *("test_counts.py", "test_declaring.py", "test_destinations.py", "test_exhaustion.py"),
    "test_temporary.py",
)
# Of tests of the command line that say the same on each pair, the short form has one real pair for each rule, in turns.
ONE_PAIR: Final = ("test_canary.py", "test_receipts.py", "test_receipts_of_odd_letters.py")
# Of the suite's files whose rules are kept by our side of the wire, the short form has one real pair of each protocol
# for a rule, in turns, and one of those that cannot, and one embedded pair for each mode. What a broker decides
# (counts, dead letters, transactions, selectors, subscriptions, declaring, temporaries) stays on each.
ONE_OF_A_PROTOCOL: Final = (
    *("test_ack_modes.py", "test_batches.py", "test_body_type.py", "test_browser.py", "test_close.py"),
    *("test_connecting.py", "test_container_outages.py", "test_epochs.py", "test_events.py", "test_first_delivery.py"),
    *("test_java_faults.py", "test_kinds.py", "test_limit_over_losses.py", "test_listeners.py", "test_order.py"),
    *("test_raw_bodies.py", "test_receive_body.py", "test_reconnect.py", "test_recover.py", "test_repeated_sends.py"),
    *("test_request.py", "test_rollback.py", "test_sessions_apart.py", "test_spread.py", "test_threads.py"),
    *("test_timing.py", "test_undone_sends.py", "test_volume.py"),
)
KILLS: Final = ("test_kills.py",)  # which name their pair otherwise
TRACES: Final = "traces/test_traces.py"
# Of the first form: the rooms whose tests say a rule once for each protocol, and files of them that mean each protocol;
# what names one; and the files that it leaves out, as they test tests, examples or benchmarks, or start programs.
ONCE: Final = ("cli", "client", "conformance", "otel", "traces")
EACH: Final = ("test_raw_bodies.py", "test_uncopyable.py")
SHELLS: Final = ("threads", "asyncio", "uvloop")
LOOPS, OF_LOOPS = "_loops", "test_loop*.py"  # the parameter that is the kind of event loop, and tests of it
ALIKE: Final = frozenset(("stomp", "amqp", "vm", "threads", "asyncio", "uvloop", *CHEAP_PAIRS))
NOT_FIRST: Final = (
    *("tests/benchmarks/*.py", "tests/faults/test_*kill*.py", "tests/run/*.py", "tests/run/*/*.py"),
    *("test_dist.py", "test_packaging.py", "test_docs_words.py", "test_install_from_anywhere.py", "test_systems.py"),
    *("test_planted*.py", "test_trace_*.py", "test_table.py", "test_structure.py"),
    *("test_store_kill.py", "test_store_memory.py", "test_store_points.py", "test_letters_without_broker.py"),
    *("test_real_brokers.py", "test_broker_ports.py", "test_*_live.py", "test_amqp_qpid_jms.py", "test_java_client.py"),
    *("test_demo_spark.py", "test_torn_transactions.py", "tests/examples/test_*.py", "test_pyright.py", "test_soak.py"),
)
# Of files that try the same again and again, or with every pair of many values, one in so many.
FEW: Final = {
    **{"test_amqp_hostile.py": 6, "test_store_paging.py": 4, "test_receipts_of_odd_letters.py": 3},
    **{"test_broker_options.py": 6, "test_receipts.py": 3, "test_corpora.py": 4, "test_mutated_files.py": 3},
    **{"test_conversions.py": 6, "test_amqp_large.py": 3, "test_cancellation.py": 2, "test_every_call.py": 2},
    **{"test_store_files.py": 3},
}
# Of files whose every test starts programs, the one that it has.
ONE_OF: Final = {
    "test_broker.py": "test_it_keeps_messages_and_stops_cleanly",
    "test_command_line.py": "test_version",
    "test_demo_outage.py": "test_it_takes_no_broker_of_yours",
    "test_plugin_fixture.py": "test_each_test_has_a_broker_of_its_own",
    "test_process_end.py": "test_a_process_that_ends_is_not_held_up_by_open_connections",
    "test_run.py": "test_another_broker_than_the_apps_own",
    "test_store_alone.py": "test_the_lock_is_gone_after_a_kill",
    "test_terminal.py": "test_what_cannot_be_seen_is_shown_by_its_number",
}
