"""The passport of a dead letter as a value: what is written is read, whatever an exception or a stranger has made."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.run.forms import examples

from redelivery.model.content.dead_letters import read_dead_letter
from redelivery.model.passport import FailedAttempt, Passport, read_passport, write_passport
from redelivery.model.passport.passport import MOST

AT = datetime(2026, 11, 27, 15, 26, 0, 123000, tzinfo=UTC)
TEXTS = st.text(st.characters() | st.sampled_from("\0\x1b\ud800\udfff\u202e\n"), max_size=800)
ATTEMPTS = st.builds(
    FailedAttempt,
    st.integers(0, 2**31 - 1),
    st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - they get one
    TEXTS,
)
PASSPORTS = st.builds(
    Passport,
    exception=TEXTS,
    message=TEXTS,
    fingerprint=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    frame=TEXTS,
    stack=st.lists(TEXTS, max_size=60).map(tuple),
    attempts=st.lists(ATTEMPTS, max_size=20).map(tuple),
    policy=TEXTS,
    client=TEXTS,
    application=TEXTS,
    consumer=TEXTS,
)


@given(PASSPORTS, st.integers(64, MOST))
def test_what_is_written_is_read(passport: Passport, most: int) -> None:
    """With room for it as it is; without, shorter, but with its fingerprint."""
    written = write_passport(passport, most)
    assert written.isascii()
    assert written.isprintable()
    assert len(written) <= most
    found = read_passport(written)
    assert found is not None
    assert found.fingerprint == passport.fingerprint
    assert write_passport(found, most) == written
    whole = write_passport(passport, 10**9)
    assert found == passport or len(whole) > most


def test_every_part_of_it() -> None:
    passport = Passport(
        exception="shop.errors.OrderError",
        message="no sku\nin line 3 \U0001f600",
        fingerprint="0123456789ab",
        frame="shop.orders:Order.place",
        stack=("shop.worker:handle, line 12", "shop.orders:Order.place, line 41"),
        attempts=(FailedAttempt(1, AT, "pod-1"), FailedAttempt(2, AT + timedelta(seconds=1.5), "pod-1")),
        policy="orders.>: 1 redelivery, after 1.5 s",
        client="redelivery 0.1.0",
        application="shop 2.4",
        consumer="queue://orders",
    )
    written = write_passport(passport)
    assert json.loads(written) == {
        "v": 1,
        "exception": "shop.errors.OrderError",
        "message": "no sku\nin line 3 \U0001f600",
        "fingerprint": "0123456789ab",
        "frame": "shop.orders:Order.place",
        "stack": ["shop.worker:handle, line 12", "shop.orders:Order.place, line 41"],
        "attempts": [
            {"number": 1, "at": "2026-11-27T15:26:00.123Z", "host": "pod-1"},
            {"number": 2, "at": "2026-11-27T15:26:01.623Z", "host": "pod-1"},
        ],
        "policy": "orders.>: 1 redelivery, after 1.5 s",
        "client": "redelivery 0.1.0",
        "application": "shop 2.4",
        "consumer": "queue://orders",
    }
    assert read_passport(written) == passport
    letter = read_dead_letter({"originalDestination": "queue://orders", "dlqPassport": written}, None, lambda: None)
    assert letter is not None
    assert letter.passport == passport


def test_what_is_longest_is_cut_first() -> None:
    stack = tuple(f"shop.framework:call_{number}, line {number}" for number in range(100))
    attempts = tuple(FailedAttempt(number, AT, "pod-1") for number in range(1, 13))
    passport = Passport(exception="ValueError", message="x" * 300, fingerprint="0" * 12, stack=stack, attempts=attempts)
    found = read_passport(write_passport(passport))
    assert found is not None
    assert (found.exception, found.message, found.attempts) == ("ValueError", "x" * 300, attempts)
    assert (found.stack[0], found.stack[-1]) == ("…", stack[-1])
    few = read_passport(write_passport(passport, 1024))
    assert few is not None
    assert few.exception == "ValueError"
    assert (few.attempts[0], few.attempts[-1]) == (attempts[0], attempts[-1])


@pytest.mark.parametrize(
    "value",
    [
        *(None, 5, True, b"{}", ["x"], {"v": 1}, "", "passport", "[]", "null", '"x"', "1", '{"v":1', "{'v':1}"),
        *('{"v":0}', '{"v":-1}', '{"v":"1"}', '{"v":true}', '{"v":null}', '{"v":1.5}', "{}", '{"V":1}'),
        *(
            '{"v":' + "9" * 3000 + "}",
            "[" * 4000,
            '{"v":' * 1000,
            '{"v":1,"x":' + "[" * 2000,
            "{" + " " * 4096 + '"v":1}',
        ),
        *('{"v":NaN}', '{"v":1e999}', "\0", "\ufeff" + '{"v":1}', '{"v":1}x'),
    ],
)
def test_what_is_no_passport_is_none(value: object) -> None:
    assert read_passport(value) is None


BAD: list[Any] = [None, 1, True, 1.5, [], {}, ["x"], {"x": 1}, "x", [[]], [None], [{"number": "1"}], "\ud800", 10**30]


@pytest.mark.parametrize("name", [each for each in Passport.__slots__ if each != "version"])
def test_a_part_that_is_not_as_it_should_be_is_left_out(name: str) -> None:
    kept = Passport(2, exception="ValueError", fingerprint="0123456789ab")
    empty = getattr(Passport(), name)
    for bad in BAD:
        said = {"v": 2, "exception": "ValueError", "fingerprint": "0123456789ab", "new": {"a": [1]}, name: bad}
        found = read_passport(json.dumps(said))
        assert found is not None
        assert found.version == 2
        assert replace(found, **{name: empty}) == replace(kept, **{name: empty})


@pytest.mark.parametrize(
    "attempt",
    [
        *("x", [], {}, {"number": 1}, {"at": "2026-11-27T15:26:00Z", "host": "h"}),
        *({"number": 1, "at": at, "host": "h"} for at in (1, None, "", "now", "2026-11-27T15:26:00", "9" * 400)),
        {"number": 1, "at": "0001-01-01T00:00:00+14:00", "host": "h"},
        *({"number": number, "at": "2026-11-27T15:26:00Z", "host": "h"} for number in (-1, 2**31, "1", True, 1.0)),
        {"number": 1, "at": "2026-11-27T15:26:00Z", "host": 5},
    ],
)
def test_an_attempt_that_is_none_is_left_out(attempt: object) -> None:
    good = {"number": 2, "at": "2026-11-27T16:26:00+01:00", "host": "h"}
    found = read_passport(json.dumps({"v": 1, "attempts": [attempt, good]}))
    assert found is not None
    assert found.attempts == (FailedAttempt(2, datetime(2026, 11, 27, 15, 26, tzinfo=UTC), "h"),)


@settings(max_examples=examples(200))
@given(st.text(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
@example('{"v":1,"stack":"\\ud800"}')
def test_reading_never_raises(text: str) -> None:
    for each in (text, f'{{"v":1,"message":{json.dumps(text)},"stack":[{json.dumps(text)}],"attempts":[{text}]}}'):
        found = read_passport(each)
        if found is not None:
            repr(found).encode()
            write_passport(found)


@pytest.mark.parametrize(
    "parts",
    [
        {"message": 5},
        {"client": None},
        {"stack": (1,)},
        {"attempts": ("x",)},
        {"fingerprint": "XYZ"},
        {"version": 0},
        {"version": "1"},
    ],
    ids=str,
)
def test_a_passport_of_other_types_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Passport(**parts)


def test_an_attempt_has_an_aware_time_in_milliseconds() -> None:
    zone = timezone(timedelta(hours=2))
    assert FailedAttempt(1, datetime(2026, 11, 27, 17, 26, 0, 123456, tzinfo=zone), "h").at == AT
    with pytest.raises(ValueError, match="aware"):
        FailedAttempt(1, datetime(2026, 11, 27), "h")  # noqa: DTZ001 - this is what is refused
    with pytest.raises(TypeError):
        FailedAttempt("1", AT, "h")  # type: ignore[arg-type]  # as above


def test_a_text_has_nothing_that_acts_on_a_terminal() -> None:
    passport = Passport(message="a\0b\x1b[31mc\u202ed\ud800e\nf\tg", client="\x07x")
    assert (passport.message, passport.client) == ("a b [31mc d\ufffde\nf\tg", " x")
