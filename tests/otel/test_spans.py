"""Spans of threads' sessions: what is followed, in whose context, and what a message carries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from opentelemetry import trace
from opentelemetry.propagators.textmap import DefaultGetter, TextMapPropagator
from opentelemetry.trace import SpanKind, StatusCode
from tests.client.shell import SOON, Background, embedded, eventually, receive
from tests.conformance.blocking import Shell
from tests.otel.collected import Collected, context, linked, parent

import redelivery
from redelivery import AckMode, Message, RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.events import Event

FAST = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01)


@pytest.fixture(params=["vm", "stomp", "amqp"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of an embedded broker of the test's own."""
    with embedded(request.param) as (_, url):
        yield url


@pytest.fixture
def background() -> Iterator[Background]:
    others = Background()
    yield others
    others.join()


@pytest.fixture
def seen() -> Collected:
    return Collected()


def test_a_send_and_its_receive(url: str, seen: Collected) -> None:
    with (
        redelivery.connect(url, observer=seen.observer, client_id="till-1") as connection,
        connection.session() as session,
        seen.tracer.start_as_current_span("checkout"),
    ):
        sent = session.producer("orders").send("two chairs", correlation_id="order-7")
        got = receive(session.consumer("orders"))
    checkout, send, receiving = seen.spans
    assert [each.name for each in seen.spans] == ["checkout", "send orders", "receive orders"]
    assert (send.kind, receiving.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT)
    assert parent(send) == parent(receiving) == context(checkout).span_id
    assert linked(receiving) == [context(send).span_id]
    carried = f"00-{context(send).trace_id:032x}-{context(send).span_id:016x}-"
    assert str(got.properties["traceparent"]).startswith(carried)
    attributes = dict(receiving.attributes or {})
    assert attributes.pop("messaging.message.id") == got.message_id
    assert attributes.pop("server.address") in ("127.0.0.1", url.removeprefix("vm://"))
    attributes.pop("server.port", None)
    assert attributes.pop("messaging.system") == ("activemq" if url.startswith("vm") else "redelivery")
    assert attributes == {
        "messaging.operation.name": "receive",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "orders",
        "messaging.message.conversation_id": "order-7",
        "messaging.client.id": "till-1",
        "redelivery.delivery_count": 1,
    }
    assert send.attributes is not None
    assert send.attributes.get("messaging.message.id") == sent.message_id


def test_a_redelivery_is_linked_to_the_first_delivery(url: str, seen: Collected) -> None:
    with (
        redelivery.connect(url, observer=seen.observer, redelivery_policy=FAST) as connection,
        connection.session("transacted") as session,
    ):
        session.producer("orders").send("two chairs")
        session.commit()
        consumer = session.consumer("orders")
        for _ in range(2):
            receive(consumer)
            session.rollback(ValueError("no stock"))
        assert receive(consumer).delivery_count == 3
        session.commit()
    assert seen.names == [
        *("send orders", "commit"),
        *("receive orders", "rollback orders", "receive orders", "rollback orders", "receive orders", "commit orders"),
    ]
    send, _, first, rolled_back, second, _, third, committed = seen.spans
    assert linked(first) == [context(send).span_id]
    assert linked(second) == linked(third) == [context(send).span_id, context(first).span_id]
    assert dict(third.links[1].attributes or {}) == {"redelivery.first_delivery": True}
    assert rolled_back.kind == committed.kind == SpanKind.CLIENT
    assert (committed.attributes or {})["messaging.operation.type"] == "settle"
    assert seen.observer._firsts._spans == {}


def test_a_listener_works_in_a_span(url: str, shell: Shell, seen: Collected) -> None:
    current: list[int] = []

    def listener(message: Message) -> None:
        current.append(trace.get_current_span().get_span_context().span_id)
        if message.delivery_count == 1:
            raise ValueError("no stock")

    with (
        shell.connect(url, observer=seen.observer, redelivery_policy=FAST) as connection,
        connection.session() as session,
    ):
        connection.publisher().send("two chairs", "orders")
        session.consumer("orders").listen(listener)
        eventually(lambda: len(seen.spans) == 3)
    send, failed, worked = seen.spans
    assert seen.names == ["send orders", "process orders", "process orders"]
    assert current == [context(failed).span_id, context(worked).span_id]
    assert parent(failed) == parent(worked) == context(send).span_id
    assert context(worked).trace_id == context(send).trace_id
    assert failed.kind == SpanKind.CONSUMER
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "no stock")
    assert (failed.attributes or {})["error.type"] == "ValueError"
    assert linked(worked) == [context(send).span_id, context(failed).span_id]
    assert worked.status.status_code is StatusCode.UNSET


def test_a_container_works_and_settles_in_a_span(url: str, shell: Shell, seen: Collected) -> None:
    def handler(message: Message, session: redelivery.Session) -> None:
        session.producer("bills").send("a bill")
        if message.delivery_count == 1:
            raise redelivery.Retry("no stock", after=0.01)

    with shell.connect(url, observer=seen.observer, redelivery_policy=FAST) as connection:
        connection.publisher().send("two chairs", "orders")
        with connection.listener_container("orders", handler) as container:
            eventually(lambda: container.counters.succeeded and len(seen.spans) == 7)
    assert seen.names == [
        *("send orders", "process orders", "send bills", "rollback orders"),
        *("process orders", "send bills", "commit orders"),
    ]
    send, failed, bill, rolled_back, worked, _, committed = seen.spans
    assert parent(failed) == context(send).span_id
    assert parent(bill) == parent(rolled_back) == context(failed).span_id
    assert parent(committed) == context(worked).span_id
    assert (failed.status.status_code, worked.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert (committed.attributes or {})["redelivery.sent_count"] == 1


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_acknowledge_is_a_span(url: str, seen: Collected, mode: AckMode) -> None:
    with redelivery.connect(url, observer=seen.observer) as connection, connection.session(mode) as session:
        session.producer("orders").send("two chairs")
        message = receive(session.consumer("orders"))
        message.acknowledge()
    assert seen.names == ["send orders", "receive orders", "acknowledge orders"]
    assert (seen.span("acknowledge orders").attributes or {})["messaging.message.id"] == message.message_id


def test_what_asynchronous_sends_and_lists_of_messages_make(url: str, seen: Collected) -> None:
    with redelivery.connect(url, observer=seen.observer) as connection, connection.session() as session:
        producer = session.producer("orders")
        for future in [producer.send_async(body) for body in ("one", "two")]:
            future.result(SOON)
        assert len(session.consumer("orders").receive_many(2, timeout=SOON)) == 2
    assert seen.names == ["send orders", "send orders", "receive orders", "receive orders"]
    assert [linked(each) for each in seen.spans[2:]] == [[context(each).span_id] for each in seen.spans[:2]]


def test_a_receive_lasts_as_long_as_it_waits(url: str, seen: Collected, background: Background) -> None:
    with redelivery.connect(url, observer=seen.observer) as connection, connection.session() as session:
        consumer = session.consumer("orders")
        assert consumer.receive(timeout=0.2) is None  # in vain, and no part of the next one
        got = background.start(lambda: receive(consumer))
        eventually(lambda: session._core.tracer is not None and session._core.tracer._asked is not None)
        connection.publisher().send("two chairs", "orders")
        got()
    send, receiving = seen.span("send orders"), seen.span("receive orders")
    assert (receiving.start_time or 0) <= (send.start_time or 0)
    assert (receiving.end_time or 0) - (receiving.start_time or 0) < SOON * 1e9


def test_a_refused_send_is_a_failed_span(seen: Collected) -> None:
    with (
        EmbeddedBroker(f"otel-{uuid4().hex}", stomp_port=0) as broker,
        redelivery.connect(broker.stomp_url, observer=seen.observer, request_timeout=0.2) as connection,
        connection.session() as session,
    ):
        broker.faults.swallow("SEND")
        with pytest.raises(redelivery.InDoubtError):
            session.producer("orders").send("two chairs")
    failed = seen.span("send orders")
    assert (failed.status.status_code, (failed.attributes or {})["error.type"]) == (
        StatusCode.ERROR,
        f"{redelivery.InDoubtError.__module__}.InDoubtError",
    )
    assert seen.numbers("redelivery.in_doubt")[0][1] == 1


def test_what_is_sent_on_carries_its_own_context_and_links_to_the_earlier_one(url: str, seen: Collected) -> None:
    with redelivery.connect(url, observer=seen.observer) as connection, connection.session() as session:
        session.producer("orders").send("two chairs")
        got = receive(session.consumer("orders"))
        session.producer("bills").send(got)
        bill = receive(session.consumer("bills"))
    assert linked(seen.span("send bills")) == [context(seen.span("send orders")).span_id]
    assert linked(seen.span("receive bills")) == [context(seen.span("send bills")).span_id]
    found = trace.get_current_span(redelivery.otel.context_of(bill)).get_span_context()
    assert found.span_id == context(seen.span("send bills")).span_id


def test_a_name_with_a_dash_is_written_as_others_write_it(url: str) -> None:

    class Dashed(TextMapPropagator):
        fields = {"x-trace"}  # noqa: RUF012  # as the class has it

        def inject(self, carrier: Any, *_: Any, **__: Any) -> None:
            carrier["x-trace"] = "7"

        def extract(self, carrier: Any, context: Any = None, getter: Any = DefaultGetter()) -> Any:  # noqa: B008
            read.append(getter.get(carrier, "x-trace"))
            return context

    read: list[Any] = []
    observer = redelivery.otel.observer(propagator=Dashed())
    with redelivery.connect(url, observer=observer) as connection, connection.session() as session:
        session.producer("orders").send("two chairs")
        assert receive(session.consumer("orders")).properties["x__dash__trace"] == "7"
    assert read == [["7"]]


def test_one_that_fails_disturbs_nothing_and_is_logged_once(url: str, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def __call__(self, _: Event) -> None: ...

        def tracer(self, *_: object) -> Any:
            class Failing:
                def __getattr__(self, name: str) -> Any:
                    def fail(*_: object, **__: object) -> None:
                        raise ValueError(name)

                    return fail

            return Failing()

    class Refusing(Broken):
        def tracer(self, *_: object) -> Any:
            raise ValueError("no tracer")

    for observer in (Broken(), Refusing()):
        caplog.clear()
        with redelivery.connect(url, observer=observer) as connection, connection.session("client") as session:
            session.producer("orders").send("two chairs")
            receive(session.consumer("orders")).acknowledge()
        complaints = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert len(complaints) == 1
