"""What a container decides, without any waiting."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

import redelivery
from redelivery import AckMode, ConfigError, DeadLetter, Drop, Message, MessageFormatError, Producer, Retry, Session
from redelivery.client.containers.calls import arguments, takes_message
from redelivery.client.containers.lanes import MAKERS
from redelivery.client.containers.outcomes import Fate, Verdict, judge
from redelivery.client.containers.plan import AT_ONCE, IDLE, Plan
from redelivery.client.containers.running import StopRequests, handling
from redelivery.client.containers.settings import check_settings


class TestAnOutcome:
    @pytest.mark.parametrize(
        ("result", "error", "fate"),
        [
            (None, None, Fate.SUCCEEDED),
            ("a reply", None, Fate.SUCCEEDED),
            (ValueError("returned, not raised"), None, Fate.SUCCEEDED),
            (KeyError("returned, not raised"), None, Fate.SUCCEEDED),
            (None, ValueError(), Fate.FAILED),
            (None, KeyError(), Fate.GIVEN_UP),
            (None, MessageFormatError("x"), Fate.GIVEN_UP),
            (Retry(), None, Fate.FAILED),
            (None, Retry(after=3), Fate.FAILED),
            (None, DeadLetter("no use"), Fate.GIVEN_UP),
            (Drop(), None, Fate.DROPPED),
            (Retry, None, Fate.FAILED),
            (DeadLetter, None, Fate.GIVEN_UP),
            (Drop, None, Fate.DROPPED),
            (ValueError, None, Fate.SUCCEEDED),
        ],
    )
    def test_says_what_becomes_of_the_message(self, result: object, error: Exception | None, fate: Fate) -> None:
        verdict = judge(result, error, fatal=(LookupError, MessageFormatError), overdue=None)
        assert verdict.fate is fate
        assert verdict.commits is (fate in (Fate.SUCCEEDED, Fate.DROPPED))

    def test_may_say_when(self) -> None:
        assert judge(None, Retry(after=3), fatal=(), overdue=None).ruling.after == 3

    def test_is_given_up_when_its_time_is_over(self) -> None:
        assert judge(None, Retry(), fatal=(), overdue="too late").ruling.give_up == "too late"
        assert judge(None, ValueError(), fatal=(), overdue="too late").ruling.give_up == "too late"
        assert judge("fine", None, fatal=(), overdue="too late").fate is Fate.SUCCEEDED
        assert judge(ValueError("returned"), None, fatal=(), overdue="too late").fate is Fate.SUCCEEDED

    def test_to_retry_is_not_fatal(self) -> None:
        assert judge(None, Retry(after=3), fatal=(Exception,), overdue=None).ruling.after == 3

    def test_may_be_worth_a_retry_or_not(self) -> None:
        only = {"fatal": (KeyError,), "retry_on": (LookupError,), "overdue": None}
        assert judge(None, IndexError(), **only).fate is Fate.FAILED  # type: ignore[arg-type]  # as given
        assert judge(None, KeyError(), **only).fate is Fate.GIVEN_UP  # type: ignore[arg-type]  # fatal goes first
        found = judge(None, OSError("away"), **only)  # type: ignore[arg-type]
        assert (found.fate, found.ruling.give_up) == (Fate.GIVEN_UP, "OSError is not to be retried")
        named = judge(None, OSError("away"), **only, outage_on=lambda _: True)  # type: ignore[arg-type]
        assert (named.fate, named.outage) == (Fate.FAILED, True)
        assert judge(None, Retry(), **only).fate is Fate.FAILED  # type: ignore[arg-type]  # the handler has asked for it

    @pytest.mark.parametrize("error", [Retry("later"), DeadLetter("no use"), Drop("a test"), KeyError("fatal")])
    def test_that_the_handler_has_decided_is_no_outage(self, error: Exception) -> None:
        assert not judge(None, error, fatal=(KeyError,), overdue=None, outage_on=lambda _: True).outage

    def test_in_an_outage_waits_beyond_its_time(self) -> None:
        found = judge(None, OSError("away"), fatal=(), overdue="too late", outage_on=lambda _: True)
        assert (found.fate, found.ruling.give_up) == (Fate.FAILED, "too late")

    def test_a_retry_checks_its_duration(self) -> None:
        with pytest.raises(ConfigError, match="after"):
            Retry(after=-1)


class TestAHandler:
    def test_may_take_the_session_and_more(self) -> None:
        def one(message: Message) -> None: ...

        def two(message, session): ...  # type: ignore[no-untyped-def]  # without annotations

        def by_class(body: str, *, here: Session, whole: Message, producer: Producer, more: int = 3) -> None: ...

        def second_by_class(body: str, whole: Message) -> None: ...

        class Fake:
            def producer(self) -> str:
                return "a producer"

        message, session = Message("m"), Fake()
        assert arguments(one, MAKERS)(message, session) == {}
        assert arguments(two, MAKERS)(message, session) == {"session": session}
        assert arguments(second_by_class, MAKERS)(message, session) == {"whole": message}
        assert arguments(print, MAKERS)(message, session) == {}
        assert arguments(by_class, MAKERS)(message, session) == {
            "here": session,
            "whole": message,
            "producer": "a producer",
        }

    def test_may_have_annotations_that_only_its_function_knows(self) -> None:
        class Order: ...

        def of_message(message: Message[Order]) -> None: ...

        def of_body(order: Order, given: Message[Order], session: Session) -> None: ...

        assert takes_message(of_message)
        assert not takes_message(of_body)
        assert not takes_message(print)
        assert not takes_message(lambda: None)
        message, session = Message("m"), object()
        assert arguments(of_body, MAKERS)(message, session) == {"given": message, "session": session}

    @pytest.mark.parametrize("handler", [lambda: None, lambda *, _: None, lambda _, __, ___: None])
    def test_that_takes_something_else_is_refused(self, handler: Any) -> None:
        with pytest.raises(ConfigError, match="the handler"):
            arguments(handler, MAKERS)


class TestThePlan:
    def make(self, **options: Any) -> Plan:
        return Plan(check_settings("orders", lambda _: None, MAKERS, **options))

    def test_adds_a_worker_where_messages_wait_for_one(self) -> None:
        plan, message, done = self.make(concurrency=(1, 3)), Message("m"), Verdict(Fate.SUCCEEDED)
        turn = plan.permit(0.0)
        plan.joins(1)
        assert not plan.takes(message, 0.0, AT_ONCE)  # it has not waited
        plan.ends(message, turn, done, replied=False)
        assert plan.takes(message, 0.0, 0.0)
        plan.ends(message, turn, done, replied=False)
        assert not plan.takes(message, 0.0, 0.0)  # the other worker is free
        assert plan.takes(message, 0.0, 0.0)
        assert not plan.takes(message, 0.0, 0.0)  # three is the most
        assert plan.counters.workers == 3

    def test_lets_a_worker_go_that_is_not_needed(self) -> None:
        plan = self.make(concurrency=(1, 2))
        plan.joins(1)
        assert not plan.may_leave(IDLE)
        plan.joins(1)
        assert not plan.may_leave(IDLE - 1)
        assert plan.may_leave(IDLE)
        assert not plan.may_leave(IDLE)

    def test_knows_the_deadline_over_all_attempts(self) -> None:
        plan, message = self.make(deadline=10), Message("m")
        message.stamp(message_id="ID:1")
        plan.takes(message, 100.0, 1.0)
        plan.takes(message, 105.0, 1.0)
        assert plan.overdue(message, 109.9) is None
        assert plan.overdue(message, 110.0) == "the deadline of 10 s for all attempts has passed"


def test_the_first_signal_drains_and_the_second_ends() -> None:
    asked = StopRequests(30.0)
    assert not asked.again(signal.SIGTERM)
    assert asked.again(signal.SIGINT)
    assert (asked.times, asked.exit_code) == (2, 128 + signal.SIGINT)


def test_the_handlers_of_before_are_there_again() -> None:
    def own(_number: int, _frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, own)
    try:
        with handling(StopRequests(30.0)):
            assert signal.getsignal(signal.SIGTERM) is not own
        assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("concurrency", 0),
        ("concurrency", (2, 1)),
        ("concurrency", (1, 2, 3)),
        ("concurrency", "4"),
        ("concurrency", "3-10"),
        ("ack_mode", "individual"),
        ("ack_mode", "auto"),
        ("max_messages_per_task", 0),
        ("fatal", "ValueError"),
        ("fatal", (ValueError, 3)),
        ("retry_on", "ValueError"),
        ("retry_on", (ValueError, 3)),
        ("deadline", -1),
        ("outage_on", "ConnectionError"),
        ("outage_on", (ConnectionError, 3)),
        ("outage_on", int),
        ("outage_on", lambda: True),
        ("outage_after", 0),
        ("outage_after", True),
        ("probe_interval", 0),
    ],
)
def test_every_bad_option_names_itself(option: str, value: Any) -> None:
    needs: dict[str, Any] = {"outage_on": OSError} if option in ("outage_after", "probe_interval") else {}
    with redelivery.connect("vm://bad-options") as connection, pytest.raises(ConfigError, match=option):
        connection.listener_container("orders", print, **needs, **{option: value})


@pytest.mark.parametrize(
    "options",
    [
        {"outage_after": 3},
        {"probe_interval": 5.0},
        {"outage_on": (), "outage_after": 3},
        {"fatal": ValueError, "retry_on": ValueError},
        {"fatal": (KeyError, LookupError), "retry_on": (ValueError, IndexError)},
        {"retry_on": MessageFormatError},
        {"fatal": OSError, "outage_on": (ValueError, ConnectionError)},
    ],
)
def test_an_option_without_effect_is_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match=f"{list(options)[-1]}.* has no effect"):
        check_settings("orders", print, MAKERS, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"outage_after": None},
        {"outage_on": OSError, "outage_after": None, "fatal": ConnectionError},
        {"retry_on": LookupError, "fatal": KeyError},
    ],
)
def test_one_with_an_effect_is_not(options: Any) -> None:
    check_settings("orders", print, MAKERS, **options)


@pytest.mark.parametrize(("given", "meant"), [("3-10", "(3, 10)"), (" 3 - 10", "(3, 10)"), ("4", "4")])
def test_how_spring_writes_the_concurrency_gets_a_hint(given: Any, meant: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"write concurrency={meant}")):
        check_settings("orders", print, MAKERS, concurrency=given)


def test_an_unknown_option_says_which_one_was_meant() -> None:
    with redelivery.connect("vm://bad-options") as connection, pytest.raises(TypeError, match="concurrency"):
        connection.listener_container("orders", print, workers=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("mode", ["transacted", AckMode.CLIENT])
def test_the_modes(mode: Any) -> None:
    assert check_settings("orders", print, MAKERS, ack_mode=mode).mode in (AckMode.TRANSACTED, AckMode.CLIENT)
