"""A passport that a connection does not send, or not whole: as it is asked for, and where there is no room."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.client.shell import Bench, eventually, receive
from tests.client.test_dead_letter_passports import ONCE, SHORT, OrderError, fail, letter, passport

import redelivery
from redelivery import AckMode, ConfigError, Message, Passport
from redelivery.broker import EmbeddedBroker


def test_no_passport(bench: Bench) -> None:
    fail(bench, passport=False)
    found = letter(bench)
    assert "dlqPassport" not in found.properties
    assert found.dead_letter is not None
    assert found.dead_letter.passport is None


def test_a_function_has_the_last_word(bench: Bench) -> None:
    given: list[Passport] = []

    def redact(passport: Passport) -> Passport | None:
        given.append(passport)
        return replace(passport, message=None, stack=()) if len(given) == 1 else None

    fail(bench, passport=redact)
    assert passport(bench) == replace(given[0], message=None, stack=())
    fail(bench, passport=redact)
    assert "dlqPassport" not in letter(bench).properties


def raising(_: Passport) -> Passport:
    raise RuntimeError("broken")


BROKEN: list[Callable[[Passport], Any]] = [
    raising,
    lambda _: "text",
    lambda _: {},
    lambda passport: replace(passport, message=5),  # type: ignore[arg-type]  # this is the mistake
    lambda passport: replace(passport, fingerprint="no"),
]


@pytest.mark.parametrize("redact", BROKEN)
def test_a_function_that_fails_costs_the_passport_and_not_the_letter(
    bench: Bench, redact: Callable[[Passport], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "redelivery")
    fail(bench, passport=redact)
    found = letter(bench)
    assert found.body == "moon"
    assert "dlqPassport" not in found.properties
    assert bench.left == []
    assert "its dead letter has no passport, as making it failed" in caplog.text


def test_an_exception_that_cannot_be_looked_at_costs_the_passport_and_not_the_letter(bench: Bench) -> None:
    class Odd(Exception):
        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]  # an application's own
            raise LookupError("odd")

    bench.send("moon")
    session, consumer = bench.consuming(AckMode.TRANSACTED, **{**SHORT, "redelivery_policy": ONCE})
    receive(consumer)
    session.rollback(cause=Odd("x"))
    assert letter(bench).body == "moon"


async def awaited(passport: Passport) -> Passport:
    return passport


@pytest.mark.parametrize("value", [None, "yes", 1, Passport, awaited, lambda: None])
def test_what_is_not_a_passport_option_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="passport"):
        redelivery.connect("vm://x", passport=value)


@pytest.mark.parametrize("value", [5, b"shop", "", "  ", "shop\n2.4", "x" * 201])
def test_what_is_not_an_application_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="application"):
        redelivery.connect("vm://x", application=value)


def test_no_secret_and_no_body_is_anywhere_on_a_dead_letter(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """But in the traceback, which is the application's own and in its log only."""
    secret, body = "s3cr3tX", "the body, which is nobody's business"

    def handle(message: Message) -> None:
        password = secret + str(message.body)
        try:
            raise ConnectionError(f"amqp://shop:{secret}@db refused, password={secret}")
        except ConnectionError as error:
            raise OrderError(f"Authorization: Bearer {secret}, {len(password)}") from error

    caplog.set_level(logging.INFO, "redelivery")
    bench.send(body)
    with bench.connect(**SHORT).listener_container("orders", handle):
        eventually(lambda: bench.broker.queue_depth("DLQ") == 1)
    found = letter(bench)
    properties = str(dict(found.properties))
    assert "OrderError: Authorization: ****" in properties
    assert secret not in properties
    assert body not in properties
    assert secret not in "".join(record.getMessage() for record in caplog.records)


def letters_of(broker: EmbeddedBroker, url: str, sent: list[dict[str, Any]], **options: Any) -> list[Message]:
    """The dead letters of these messages, which fail one after the other."""
    found = []
    with redelivery.connect(url, **{**SHORT, **options}) as connection:
        for message in sent:
            broker.send("orders", message["body"], properties=message["properties"])
            with connection.session("client") as session:
                consumer = session.consumer("orders")
                for _ in range(2):
                    receive(consumer)
                    session.recover(cause=OrderError("no moon"))
            with connection.session() as session:
                found.append(receive(session.consumer("DLQ")))
    return found


def test_it_takes_the_room_that_a_frame_has() -> None:
    """Beside what the application has written, which is worth more."""
    sizes = []
    with EmbeddedBroker("room", stomp_port=0) as broker:
        sent = [{"body": "x" * length, "properties": {"mine": "v" * 500}} for length in range(2000, 6700, 400)]
        url = f"{broker.stomp_url}?wireFormat.maxFrameSize=8000"
        for message, original in zip(letters_of(broker, url, sent, passport=long), sent, strict=True):
            assert (message.body, message.properties["mine"]) == (original["body"], "v" * 500)
            assert message.dead_letter is not None
            found = message.dead_letter.passport
            assert found is not None
            assert len(found.fingerprint or "") == 12
            sizes.append(len(str(message.properties["dlqPassport"])))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 3000
    assert sizes[-1] <= 256
    assert len(set(sizes)) >= 3


def test_it_takes_the_place_that_is_left_among_headers() -> None:
    sent = [{"body": "moon", "properties": {f"p{each}": "v" for each in range(number)}} for number in (1, 970, 990)]
    with EmbeddedBroker("places", stomp_port=0) as broker:
        found = letters_of(broker, broker.stomp_url, sent, dialect="activemq!")  # which allows 1,000
    assert [len([each for each in message.properties if each[1:].isdigit()]) for message in found] == [1, 970, 990]
    assert ["dlqPassport" in message.properties for message in found] == [True, True, False]


def long(passport: Passport) -> Passport:
    return replace(passport, message="\U0001f600" * 4096)
