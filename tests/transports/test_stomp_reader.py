"""The frame reader: any split gives the same frames, and no hostile bytes hurt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import ProtocolError
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.reader import FrameReader, RawFrame

bodies = st.binary(max_size=200)
names = st.text(min_size=1, max_size=8, alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.text(max_size=12, alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def feed_all(reader: FrameReader, chunks: Iterable[bytes]) -> list[RawFrame]:
    return [frame for chunk in chunks for frame in reader.feed(chunk)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[tuple[dict[str, str], bytes]]]:
    """Bytes of some frames, with and without content-length, with LF and CR LF, and the frames in them."""
    wire, frames = b"", []
    for _ in range(draw(st.integers(1, 5))):
        headers = draw(st.dictionaries(names.filter(lambda name: name != "content-length"), values, max_size=4))
        body = draw(bodies)
        if draw(st.booleans()):
            headers["content-length"] = str(len(body))
        else:
            body = body.replace(b"\0", b"0")
        head, _, rest = encode("MESSAGE", headers, body).partition(b"\n\n")
        if draw(st.booleans()):
            head, blank = head.replace(b"\n", b"\r\n"), b"\r\n\r\n"
        else:
            blank = b"\n\n"
        wire += head + blank + rest + draw(st.sampled_from([b"", b"\n", b"\r\n", b"\n\n\n"]))
        frames.append((headers, body))
    return wire, frames


@given(streams(), st.data())
def test_any_split_of_the_bytes_gives_the_same_frames(
    stream: tuple[bytes, list[tuple[dict[str, str], bytes]]], data: st.DataObject
) -> None:
    wire, expected = stream
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=12)))
    reader, got = FrameReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        got += [Frame(*raw) for raw in reader.feed(wire[begin:end])]
    assert [(frame.headers, frame.body) for frame in got] == expected


@given(streams())
def test_byte_by_byte_gives_the_same_frames(stream: tuple[bytes, list[tuple[dict[str, str], bytes]]]) -> None:
    wire, expected = stream
    reader, got = FrameReader(), []
    for at in range(len(wire)):
        got += [Frame(*raw) for raw in reader.feed(wire[at : at + 1])]
    assert [(frame.headers, frame.body) for frame in got] == expected


RECEIPTS = (
    b"RECEIPT\nreceipt-id:1\n\n\0",
    b"RECEIPT\nreceipt-id:22\n\n\0\n",
    b"RECEIPT\r\nreceipt-id:3\r\n\r\n\0\r\n",
    b"RECEIPT\nserver:x\nreceipt-id:4\n\n\0",
    b"RECEIPT\nreceipt-id:5\n\nwith a body\0",
    b"MESSAGE\nsubscription:1\n\nRECEIPT\nreceipt-id:6\n\n\0",
)


@given(st.lists(st.sampled_from(RECEIPTS), min_size=1, max_size=8), st.data())
def test_receipts_of_every_form_are_cut_like_any_frame(wire: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(wire)
    cut = data.draw(st.integers(0, len(stream)))
    whole = [
        frame for each in wire for frame in feed_all(FrameReader(), (each[at : at + 1] for at in range(len(each))))
    ]
    assert feed_all(FrameReader(), (stream[:cut], stream[cut:])) == whole


def test_a_lone_receipt_is_only_seen_where_nothing_is_under_way() -> None:
    reader = FrameReader()
    assert [reader.lone_receipt(each) for each in RECEIPTS] == [b"1", b"22", None, None, None, None]
    assert reader.lone_receipt(RECEIPTS[0] + RECEIPTS[1]) is None
    reader.feed(b"MESSAGE\nsubscription:1\n\nnot whole ")
    assert reader.lone_receipt(RECEIPTS[0]) is None


@given(st.binary(max_size=300))
def test_garbage_raises_protocol_error_or_waits_for_more(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        FrameReader().feed(data)


@pytest.mark.parametrize(
    "garbage", [b"\0", b"message\n\nx\0", b"MESSAGES\n\nx\0", b"QUIT\n\n\0", b"\xff\xfe\0\0", b" SEND\n\n\0"]
)
def test_unknown_commands_and_garbage_are_refused(garbage: bytes) -> None:
    with pytest.raises(ProtocolError, match="does not speak STOMP"):
        FrameReader().feed(garbage)


@pytest.mark.parametrize(
    ("first_bytes", "name"),
    [
        (b"\x00\x00\x01\x3c\x01ActiveMQ\x00\x00\x00\x0c\x01", "OpenWire"),
        (b"AMQP\x00\x01\x00\x00", "AMQP"),
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
    ],
)
def test_another_protocol_on_the_port_is_named(first_bytes: bytes, name: str) -> None:
    with pytest.raises(ProtocolError, match=f"looks like {name}"):
        FrameReader().feed(first_bytes)


@pytest.mark.parametrize("length", [b"-1", b"x", b"", b"1e3", b"0x10", b"9" * 5000, b"99999999999999", b"104857601"])
def test_a_content_length_that_cannot_be_is_refused_at_once(length: bytes) -> None:
    with pytest.raises(ProtocolError):
        FrameReader().feed(b"MESSAGE\ncontent-length:" + length + b"\n\nabc\0")


@pytest.mark.parametrize("body", [b"abcd\0", b"abcdefgh"])
def test_a_body_that_belies_its_content_length_is_refused(body: bytes) -> None:
    frame = b"MESSAGE\ncontent-length:3\n\n" + body
    with pytest.raises(ProtocolError, match="content-length says"):
        FrameReader().feed(frame)
    reader = FrameReader()
    with pytest.raises(ProtocolError, match="content-length says"):
        feed_all(reader, [frame[at : at + 1] for at in range(len(frame))])


def test_the_claimed_length_allocates_nothing() -> None:
    reader = FrameReader()
    reader.feed(b"MESSAGE\ncontent-length:104857600\n\nabc")
    assert sum(map(len, reader._body)) == 3


def test_an_endless_head_is_refused() -> None:
    reader = FrameReader(max_head=1000)
    with pytest.raises(ProtocolError, match="longer than 1000 bytes"):
        feed_all(reader, [b"MESSAGE\n", *([b"a:b\n" * 20] * 100)])
    with pytest.raises(ProtocolError, match="longer than 1000 bytes"):
        FrameReader(max_head=1000).feed(b"MESSAGE\n" + b"a:b\n" * 300 + b"\n\0")


@pytest.mark.parametrize("chunk", [100, 5000])
def test_an_endless_body_without_content_length_is_refused(chunk: int) -> None:
    reader = FrameReader(max_body=1000)
    with pytest.raises(ProtocolError, match="larger than 1000 bytes"):
        feed_all(reader, [b"MESSAGE\n\n", *([b"x" * chunk] * 30)])
    with pytest.raises(ProtocolError, match="larger than 1000 bytes"):
        FrameReader(max_body=1000).feed(b"MESSAGE\n\n" + b"x" * 1001 + b"\0")


@pytest.mark.parametrize("lines", [b"a:\\q\n", b"a:\\\n", b"a:\xff\n", b"no colon\n", b":value\n"])
def test_a_bad_header_shows_when_headers_are_read_and_the_raw_id_is_still_there(lines: bytes) -> None:
    frame = Frame(*FrameReader().feed(b"MESSAGE\nack:7\\c1\n" + lines + b"\nbody\0")[0])
    assert frame.raw(b"\nack:") == b"7\\c1"
    assert frame.body == b"body"
    with pytest.raises(ProtocolError):
        _ = frame.headers


def test_the_first_of_repeated_headers_counts() -> None:
    frame = Frame(*FrameReader().feed(b"MESSAGE\na:1\na:2\n\n\0")[0])
    assert frame.headers == {"a": "1"}
    assert frame.raw(b"\na:") == b"1"
    assert frame.raw(b"\nb:") is None


def test_escapes_by_version_and_none_in_connected() -> None:
    assert Frame(b"MESSAGE\na:\\r\\n\\c\\\\\n").headers == {"a": "\r\n:\\"}
    assert Frame(b"MESSAGE\na:\\n\\c\\\\\n", version="1.1").headers == {"a": "\n:\\"}
    with pytest.raises(ProtocolError):
        _ = Frame(b"MESSAGE\na:\\r\n", version="1.1").headers
    assert Frame(b"MESSAGE\na:\\c\n", version="1.0").headers == {"a": "\\c"}
    assert Frame(b"CONNECTED\nsession:ID\\c1\n").headers == {"session": "ID\\c1"}


def test_only_version_1_2_drops_a_carriage_return_before_the_line_end() -> None:
    wire = b"MESSAGE\na:b\r\n\nx\0"
    assert Frame(*FrameReader().feed(wire)[0]).headers == {"a": "b"}
    reader = FrameReader()
    reader.version = "1.1"
    assert Frame(*reader.feed(wire)[0]).headers == {"a": "b\r"}


@pytest.mark.parametrize("sized", [True, False])
def test_a_large_body_in_small_pieces_costs_linear_time(sized: bool) -> None:
    """Each piece is looked at once: to go over what came before with each would take minutes, beyond the time-out."""
    size = 64 << 20
    body = (b"\0" if sized else b"x") * size
    head = b"MESSAGE\ncontent-length:%d\n\n" % size if sized else b"MESSAGE\n\n"
    wire = head + body + b"\0"
    (frame,) = feed_all(FrameReader(), (wire[at : at + 1024] for at in range(0, len(wire), 1024)))
    assert frame[1] == body
