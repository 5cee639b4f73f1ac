"""Large bodies over STOMP: they are kept and sent in parts, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.raw_stomp import Raw
from tests.broker.stomp.steps import left, send

import redelivery
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.broker.servers.stomp.bodies import LARGE, ArrivedBody, LargeFrame, PartsReader, check_text, not_text
from redelivery.model.errors import MessageFormatError, ProtocolError
from redelivery.transports.stomp.codec.formats import KIND
from redelivery.transports.stomp.codec.frames import encode
from redelivery.transports.stomp.codec.maps import START, write_map

SIZE = LARGE + (1 << 19)
SIZED = {"content-length": str(SIZE)}
DATA = bytes(range(256)) * (SIZE >> 8)
TEXT = "aä€𝄞" * (SIZE // 10)


@pytest.fixture(params=["in memory", "with a store"])
def any_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    store = tmp_path / "shop.db" if request.param == "with a store" else None
    config = BrokerConfig(store_synchronous="normal")
    with EmbeddedBroker("large", stomp_port=0, store=store, config=config) as broker:
        yield broker


@pytest.fixture
def large(any_broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(any_broker.stomp_url) as client:
        yield client


def test_each_kind_arrives_by_each_protocol(any_broker: EmbeddedBroker, large: Raw) -> None:
    send(large, DATA, **SIZED)
    send(large, TEXT.encode())
    for _ in range(2):
        assert left(any_broker, "q") == [DATA, TEXT]
    with redelivery.connect(any_broker.vm_url) as connection, connection.session("client") as session:
        consumer = session.consumer("q")
        for sent in (DATA, TEXT):
            message = consumer.receive(timeout=10)
            assert message is not None
            assert message.body == sent
    large.subscribe()
    data, text = large.messages(2)
    assert (data.body, data.headers["content-length"]) == (DATA, str(SIZE))
    assert text.body == TEXT.encode()
    assert not {"content-length", KIND} & text.headers.keys()


@pytest.mark.parametrize(
    ("sent", "arrives", "headers"),
    [
        ("\0" + TEXT, ("\0" + TEXT).encode(), {"content-length": str(1 + len(TEXT.encode()))}),
        ("\ud800" + TEXT, b"?" + TEXT.encode(), {}),
        (START.decode() + TEXT, START + TEXT.encode(), {KIND: "text"}),
    ],
)
def test_a_text_leaves_as_a_small_one_does(
    any_broker: EmbeddedBroker, large: Raw, sent: str, arrives: bytes, headers: dict[str, str]
) -> None:
    any_broker.send("q", sent)
    large.subscribe()
    frame = large.next()
    assert frame.body == arrives
    assert {name: frame.headers.get(name) for name in ("content-length", KIND)} == {
        "content-length": None,
        KIND: None,
        **headers,
    }


@pytest.mark.parametrize("at", [0, LARGE - 1, SIZE - 1])
def test_a_text_that_is_not_utf_8_is_refused_at_its_byte(any_broker: EmbeddedBroker, large: Raw, at: int) -> None:
    body = b"x" * at + b"\xc3" + b"x" * (SIZE - at - 1)
    why = "unexpected end of data" if at == SIZE - 1 else "invalid continuation byte"
    answer = large.call("SEND", body, destination="/queue/q")
    assert answer.headers["message"] == (
        f"the text body is not UTF-8 ({why} at byte {at}): send bytes with a content-length"
    )
    assert any_broker.queue_depth("q") == 0
    send(large, b"the session goes on")


def test_a_map_is_read_and_what_is_none_is_kept_as_it_is(any_broker: EmbeddedBroker, large: Raw) -> None:
    send(large, write_map({"a": TEXT.replace("𝄞", "")}), transformation="jms-map-json")
    send(large, TEXT.encode(), transformation="jms-map-json")
    found = any_broker.messages("q")
    assert [message.body for message in found] == [{"a": TEXT.replace("𝄞", "")}, TEXT]
    assert found[1].properties["transformation-error"] == "the body is not jms-map-json"


def test_the_body_of_another_command_is_left_alone(large: Raw) -> None:
    large.ok("BEGIN", DATA, **SIZED, transaction="t")
    large.ok("ABORT", transaction="t")


def test_a_large_message_and_small_ones_keep_their_order(any_broker: EmbeddedBroker, large: Raw) -> None:
    sent: list[bytes] = []
    for number in range(12):
        sent.append(DATA if number % 5 == 2 else b"%d" % number)
        send(large, sent[-1], **{"content-length": str(len(sent[-1]))})
    large.subscribe(ack="auto")
    assert [frame.body for frame in large.messages(12)] == sent
    any_broker.wait_for("q", depth=0)


def test_a_client_that_leaves_within_a_large_message_has_not_received_it(any_broker: EmbeddedBroker) -> None:
    with Raw(any_broker.stomp_url, receive_buffer=64 << 10) as client:
        send(client, 16 * DATA, **{"content-length": str(16 * SIZE)})
        client.say("SUBSCRIBE", {"destination": "/queue/q", "id": "s", "ack": "auto"})
        assert client.socket.recv(1)
    any_broker.wait_for("q", depth=1)
    with Raw(any_broker.stomp_url) as client:
        client.subscribe()
        assert client.next().body == 16 * DATA


def fed(wire: bytes, step: int) -> list[tuple[bytes, object]]:
    reader = PartsReader()
    return [frame for at in range(0, len(wire), step) for frame in reader.feed(wire[at : at + step])]


@pytest.mark.parametrize("step", [1000, 5000, 1 << 18])
@pytest.mark.parametrize("headers", [{}, {"content-length": str(SIZE)}])
def test_the_parts_are_the_body(step: int, headers: dict[str, str]) -> None:
    body = DATA if headers else b"x" * SIZE
    wire = encode("SEND", headers, body) + encode("SEND", {}, b"small")
    (head, parts), small = fed(wire, step)
    assert isinstance(parts, list)
    assert b"".join(parts) == body
    assert small == (b"SEND\n", b"small")
    frame = LargeFrame(head, parts)
    assert repr(frame) == f"<Frame SEND of {SIZE} bytes>"
    assert frame.join() == body
    assert parts == [body]


def test_what_is_not_larger_is_bytes() -> None:
    assert fed(encode("SEND", {}, b"x" * LARGE), 1 << 18) == [(b"SEND\n", b"x" * LARGE)]
    with pytest.raises(ProtocolError, match="larger than"):
        PartsReader(max_body=SIZE).feed(b"SEND\n\n" + b"x" * (SIZE + 1))


@given(st.binary(max_size=30) | st.text(max_size=9).map(lambda text: text.encode("utf-8", "surrogatepass")), st.data())
def test_a_text_is_checked_in_parts_as_it_is_as_a_whole(data: bytes, cuts: st.DataObject) -> None:
    points = sorted(cuts.draw(st.lists(st.integers(0, len(data)), max_size=5)))
    parts = [data[begin:end] for begin, end in zip([0, *points], [*points, len(data)], strict=True)]
    refused = None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        refused = str(not_text(error))
    with pytest.raises(MessageFormatError) if refused else nullcontext() as raised:
        check_text(parts)
    assert refused == (None if raised is None else str(raised.value))


def test_a_body_that_was_read_is_one_part() -> None:
    body = ArrivedBody("bytes", [b"ab", bytearray(b"c")])
    assert (body.read(), body.parts(), len(body)) == (b"abc", [b"abc"], 3)
    assert body.read() is body.read()
