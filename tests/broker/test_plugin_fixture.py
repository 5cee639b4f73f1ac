"""The pytest plug-in, in a test run of its own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def test_each_test_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket, threading
        from urllib.parse import urlsplit

        names = []

        def probe(broker):
            parts = urlsplit(broker.stomp_url)
            socket.create_connection((parts.hostname, parts.port), 5).close()
            names.append(broker.vm_url)

        def test_one(redelivery_broker):
            probe(redelivery_broker)

        def test_two(redelivery_broker):
            probe(redelivery_broker)

        def test_they_are_gone():
            assert len(set(names)) == 2
            assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3)


def test_a_planned_fault_that_never_struck_is_warned_of(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(redelivery_broker):
            redelivery_broker.faults.drop("COMMIT")

        def test_cleared(redelivery_broker):
            redelivery_broker.faults.drop("COMMIT")
            redelivery_broker.faults.clear()

        def test_struck(redelivery_broker):
            import pytest, redelivery
            redelivery_broker.faults.drop("CONNECT")
            with pytest.raises(redelivery.ConnectError):
                redelivery.connect(redelivery_broker.vm_url)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, warnings=1)
    result.stdout.fnmatch_lines(["*UserWarning: planned fault never struck: drop COMMIT*"])


def test_of_a_durable_broker_each_one_that_there_was_is_warned_of(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_before_a_restart(redelivery_durable_broker):
            redelivery_durable_broker.broker.faults.drop("COMMIT")
            redelivery_durable_broker.restart()

        def test_after_it(redelivery_durable_broker):
            redelivery_durable_broker.kill()
            redelivery_durable_broker.restart().faults.fail_sync()

        def test_cleared(redelivery_durable_broker):
            redelivery_durable_broker.broker.faults.drop("COMMIT")
            redelivery_durable_broker.broker.faults.clear()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, warnings=2)
    result.stdout.fnmatch_lines_random(["*planned fault never struck: drop COMMIT*", "*never struck: error SYNC*"])


def test_it_is_listed_with_its_words(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--fixtures")
    result.stdout.fnmatch_lines(["*redelivery_broker*", "*An embedded broker of its own for each test*"])
