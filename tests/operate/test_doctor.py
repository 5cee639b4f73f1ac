"""The doctor: each finding, when it is one, and what it says; on values, and on the embedded broker."""

from __future__ import annotations

import socket

import pytest
from tests.policies.readers.documents import address_settings, classic, read, redelivery_plugin

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.operate.doctor import inspect
from redelivery.operate.doctor.addresses import check_url
from redelivery.operate.doctor.configured import check_problems, check_rules
from redelivery.operate.doctor.doctor import examine
from redelivery.operate.doctor.findings import Finding, Report, in_order
from redelivery.operate.doctor.observed import ObservedQueue, check_bound, check_clock, check_queues
from redelivery.transports.wire import clock

ORDERS = (redelivery.Queue("orders"),)
SAFE = read(
    address_settings(**{"#": {"dead_letter_address": "DLQ"}}).replace(
        "</core>", '<addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses></core>'
    )
)
LOSING = read(address_settings(**{"#": {"max_delivery_attempts": 3}}))


def found(findings: object) -> list[tuple[str, str]]:
    return [(each.level, each.check) for each in findings]  # type: ignore[attr-defined]  # an iterable of them


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("stomp://broker.example:61613", [("warning", "tls")]),
        ("amqp://10.0.0.1", [("warning", "tls")]),
        ("amqps://broker.example", []),
        ("stomp://localhost:61613", []),
        ("stomp://127.0.0.1:61613", []),
        ("amqp://[::1]:5672", []),
        ("vm://x", []),
        ("amqps://guest:guest@broker.example", [("error", "credentials")]),
        ("stomp://admin:admin@localhost", [("warning", "credentials")]),
        ("stomp://admin:other@localhost", []),
        ("failover:(stomp+ssl://a,stomp://b)", [("warning", "tls")]),
        ("nonsense", []),
    ],
)
def test_a_url_shows_encryption_and_default_credentials(url: str, expected: list[tuple[str, str]]) -> None:
    assert found(check_url(url)) == expected


def test_rules_that_remove_messages_are_errors() -> None:
    (orders, pattern) = check_rules(LOSING, ORDERS)
    assert (orders.level, orders.check) == ("error", "removed")
    assert orders.what == "queue://orders: a message is removed after 3 deliveries (no dead-letter-address is set)"
    assert pattern.what.startswith(">: a message is removed")
    (named, other) = check_rules(read(address_settings(x={})), ())
    assert named.what.startswith("queue://x: a message is removed")
    assert other.what.startswith("any other queue: a message is removed")
    assert found(check_rules(SAFE, ORDERS)) == []


def test_what_a_file_says_and_nobody_understands_is_an_error() -> None:
    """Artemis does not start with such a factor; `policies.read(strict=False)` leaves it out."""
    bad = read(address_settings(x={"redelivery_collision_avoidance_factor": 1.5}), strict=False)
    (finding,) = check_problems(bad)
    assert (finding.level, finding.check) == ("error", "not-understood")
    assert finding.what.startswith("file.xml:3:")
    assert "redelivery-collision-avoidance-factor='1.5'" in finding.what
    assert finding in examine("vm://problems", bad, watch=0).findings
    assert list(check_problems(SAFE)) == []


def test_rules_without_a_limit_are_a_warning() -> None:
    endless = read(address_settings(orders={"max_delivery_attempts": -1}, other={"dead_letter_address": "D"}))
    assert ("warning", "no-limit") in found(check_rules(endless, ORDERS))


def test_a_dead_letter_address_without_a_queue_is_a_warning() -> None:
    addresses = '<addresses><address name="x"><anycast><queue name="x"/></anycast></address></addresses></core>'
    unbound = address_settings(**{"#": {"dead_letter_address": "DLQ"}}).replace("</core>", addresses)
    assert ("warning", "unbound") in found(check_rules(read(unbound), ORDERS))


def test_a_quorum_queue_without_a_delivery_limit_is_a_warning() -> None:
    queue = '{"name": "q", "arguments": {"x-queue-type": "quorum", "x-dead-letter-exchange": ""%s}}'
    unset, limited = (
        read(f'{{"queues": [{queue % more}], "policies": []}}') for more in ("", ', "x-delivery-limit": 5')
    )
    named = (redelivery.Queue("q"),)
    assert ("warning", "delivery-limit") in found(check_rules(unset, named))
    assert ("warning", "delivery-limit") not in found(check_rules(limited, named))


def test_prefetched_messages_that_a_lost_connection_charges_are_a_warning_or_an_error() -> None:
    options = {"prefetch": 100, "charges_prefetched": True}
    (finding, *_) = check_rules(SAFE, ORDERS, **options)  # type: ignore[arg-type]  # of the right types
    assert (finding.level, finding.check) == ("warning", "prefetch")
    assert "up to 100 prefetched messages" in finding.what
    assert ("error", "prefetch") in found(check_rules(LOSING, ORDERS, **options))  # type: ignore[arg-type]
    assert found(check_rules(SAFE, ORDERS, prefetch=1, charges_prefetched=True)) == []
    assert found(check_rules(SAFE, ORDERS, prefetch=100)) == []


def test_a_client_and_a_broker_that_both_redeliver_are_a_warning() -> None:
    plugin = classic(redelivery_plugin())
    queue = (redelivery.Queue("SpecialQueue"),)
    (finding, *_) = check_rules(plugin, queue, client=redelivery.RedeliveryPolicy())
    assert (finding.level, finding.check) == ("warning", "multiplied")
    assert "up to 5 x 7 = 35 attempts" in finding.what
    once = redelivery.RedeliveryPolicy(maximum_redeliveries=0)
    assert found(check_rules(plugin, queue, client=once)) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((3, 0), (3, 0), [("warning", "dead-letters")]),
        ((3, 0), (5, 0), [("error", "dead-letters")]),
        ((3, None), (5, None), [("error", "dead-letters")]),
        ((3, None), (2, None), []),  # somebody has read one
        ((3, 1), (5, 1), []),
        ((0, 0), (0, 0), []),
    ],
)
def test_dead_letters_that_nobody_reads(
    before: tuple[int, int | None], after: tuple[int, int | None], expected: list[tuple[str, str]]
) -> None:
    first, second = ({"DLQ": ObservedQueue("DLQ", *each)} for each in (before, after))
    assert found(check_queues(first, second, frozenset({"DLQ"}))) == expected


@pytest.mark.parametrize(
    ("messages", "consumers", "expected"), [(9, 0, [("warning", "backlog")]), (9, 2, []), (0, 0, []), (9, None, [])]
)
def test_a_backlog_without_a_consumer(messages: int, consumers: int | None, expected: list[tuple[str, str]]) -> None:
    state = {"orders": ObservedQueue("orders", messages, consumers)}
    assert found(check_queues(state, state, frozenset({"DLQ"}))) == expected


@pytest.mark.parametrize(
    "name", ["DLQ.x", "shop.dlq", "shopDLQ", "my-dead-letters", "orders.DeadLetter", "DLA", "a.DLA.b"]
)
def test_a_queue_that_is_called_so_holds_dead_letters(name: str) -> None:
    state = {name: ObservedQueue(name, 9)}
    assert found(check_queues(state, state, frozenset())) == [("warning", "dead-letters")]
    assert found(check_queues(state, state, frozenset(), frozenset([name]))) == [("warning", "dead-letters")]


@pytest.mark.parametrize("name", ["handlar", "idle", "dead", "deadline.letters", "adla"])
def test_a_queue_with_another_name_holds_messages(name: str) -> None:
    state = {name: ObservedQueue(name, 9, 0)}
    assert found(check_queues(state, state, frozenset())) == [("warning", "backlog")]


@pytest.mark.parametrize("dead", [False, True])
def test_five_queues_with_different_counts_are_one_finding(dead: bool) -> None:
    names = [f"{'DLQ.' if dead else ''}q{number}" for number in range(7)]
    states = {name: ObservedQueue(name, 10 * number + 1, 0) for number, name in enumerate(names)}
    (finding,) = check_queues(states, states, frozenset())
    what = "dead letters" if dead else "messages"
    assert finding.what.startswith(f"217 {what} are in 7 queues ({names[6]} (61), {names[5]} (51), ")
    assert " and 4 more)" in finding.what
    asked = list(check_queues(states, states, frozenset(), frozenset(names[:1])))
    assert [each.what.partition(",")[0] for each in asked] == [
        f"1 {'dead letter' if dead else 'message'} is in {names[0]}",
        f"216 {'dead letters' if dead else 'messages'} are in 6 queues ({names[6]} (61)",
    ]
    assert len(list(check_queues(states, states, frozenset(), frozenset(names)))) == 1
    few = dict(list(states.items())[:4])
    assert len(list(check_queues(few, few, frozenset()))) == 4


def test_five_dead_letter_addresses_without_a_queue_are_one_finding() -> None:
    (finding,) = check_bound([f"DLA.{n}" for n in range(6)], {"q": ObservedQueue("q", 0, 0, "DLA")})
    assert finding.what.endswith("DLA.0, DLA.1, DLA.2 and 3 more")


def test_a_dead_letter_address_of_a_broker_that_has_no_queue_on_it() -> None:
    on_artemis = {"q": ObservedQueue("q", 0, 0, "DLA")}
    assert found(check_bound(["DLA", "DLQ::of.its.own"], on_artemis)) == []
    assert found(check_bound(["elsewhere", "elsewhere"], on_artemis)) == [("error", "unbound")]
    assert found(check_bound(["elsewhere"], {"q": ObservedQueue("q", 0)})) == []  # not Artemis: it shows no addresses


@pytest.mark.parametrize(
    ("skew", "says"), [(0.5, None), (-1.9, None), (90.0, "90.0 s ahead of"), (-3.0, "3.0 s behind")]
)
def test_a_clock_that_is_wrong(skew: float, says: str | None) -> None:
    findings = list(check_clock(skew))
    assert [says in each.what for each in findings if says] == ([True] if says else [])
    assert bool(findings) is bool(says)


def test_what_is_alike_is_explained_once() -> None:
    reason = ("nobody works on them", "start its consumer")
    lost = [Finding("error", "x", each, "lost", "stop") for each in "ae"]
    findings = [lost[0], Finding("error", "z", "f", "late", "go"), lost[1]]
    findings += [Finding("warning", "y", each, *reason) for each in "bcd"]
    assert str(Report("B", in_order(findings))).splitlines()[1:] == [
        "error: a",
        "error: e",
        "  why: lost",
        "  do:  stop",
        "error: f",
        "  why: late",
        "  do:  go",
        "warning: b",
        "warning: c",
        "warning: d",
        "  why: nobody works on them",
        "  do:  start its consumer",
    ]


def test_a_report_has_errors_first_and_says_what_was_not_checked() -> None:
    warning, error = (Finding(level, "x", "w", "y", "d") for level in ("warning", "error"))
    report = Report("B", in_order([warning, error, warning]), ("the moon",))
    assert found(report.findings) == [("error", "x"), ("warning", "x")]
    assert str(report).splitlines()[0] == "B: 1 error, 1 warning"
    assert "not checked: the moon" in str(report)
    assert report.failed
    assert report.as_dict()["failed"] is True
    assert not Report("B", (warning,)).failed


def test_dead_letters_on_a_broker_that_runs_are_found() -> None:
    with EmbeddedBroker(stomp_port=0) as broker:
        assert broker.stomp_url is not None
        clean = examine(broker.stomp_url, SAFE, watch=0)
        broker.send("ActiveMQ.DLQ", "lost")
        report = examine(broker.stomp_url, SAFE, queues=["orders"], watch=0)
    assert set(found(clean.findings)) == {("warning", "prefetch")}
    assert clean.broker.startswith("redelivery")
    (finding,) = (each for each in report.findings if each.check == "dead-letters")
    assert finding.what == "1 dead letter is in ActiveMQ.DLQ, and nobody reads them"
    assert report.unchecked == ()


def test_the_clock_of_a_broker_that_runs_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker(stomp_port=0) as broker:
        assert broker.stomp_url is not None
        with redelivery.connect(broker.stomp_url) as connection:
            assert inspect.clock_skew(connection) == pytest.approx(0, abs=0.5)
            monkeypatch.setattr(inspect, "epoch_ms", lambda: clock.epoch_ms() - 60_000)
            assert inspect.clock_skew(connection) == pytest.approx(60, abs=1)


def test_the_clock_of_this_process_is_its_own() -> None:
    with redelivery.connect("vm://clock") as connection:
        assert inspect.clock_skew(connection) == 0
    assert not [each for each in examine("vm://clock", SAFE, watch=0).unchecked if "clock" in each]


def test_a_clock_that_a_protocol_does_not_show_is_said_not_to_be_checked() -> None:
    pytest.importorskip("proton")
    with EmbeddedBroker(amqp_port=0) as broker:
        assert broker.amqp_url is not None
        unchecked = examine(broker.amqp_url, SAFE, watch=0).unchecked
    assert "the broker's clock: the messages of this broker do not say its time over AMQP; use stomp://" in unchecked


def test_a_broker_that_is_not_there_is_an_error_and_the_file_is_checked_all_the_same() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"stomp://127.0.0.1:{unused.getsockname()[1]}"
        report = examine(url, LOSING, connect_timeout=2)
    assert found(report.findings)[:2] == [("error", "connect"), ("error", "removed")]
    assert report.unchecked == ("the broker itself, which was not reached",)


def test_wrong_arguments_are_errors_of_the_caller() -> None:
    with pytest.raises(redelivery.ConfigError):
        examine("nonsense")
    with pytest.raises(redelivery.InvalidDestinationError):
        examine("vm://x", queues=["a b"])
