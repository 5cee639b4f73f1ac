"""Encoding of frames: nothing that an application gives can begin a header or a frame of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import MessageFormatError
from redelivery.transports.stomp.codec.frames import Frame, encode, encode_head, escape, unescape
from redelivery.transports.stomp.codec.reader import FrameReader

texts = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\\:\r\n\0")))


@given(st.dictionaries(texts, texts, max_size=5), texts, st.sampled_from(["1.2", "1.1", "1.0"]))
def test_whatever_is_written_is_read_back_as_one_frame_or_refused(
    headers: dict[str, str], body: str, version: str
) -> None:
    data = body.encode().replace(b"\0", b"")
    headers.pop("content-length", None)
    try:
        wire = encode("SEND", headers, data, version)
    except MessageFormatError:
        assert any(set(text) & set("\0\r\n:") or not name for name in headers for text in (name, headers[name]))
        return
    reader = FrameReader()
    reader.version = version
    (raw,) = reader.feed(wire)
    frame = Frame(*raw, version)
    assert (frame.command, frame.headers, frame.body) == ("SEND", headers, data)


@given(texts)
def test_escape_of_1_2_refuses_only_nul(text: str) -> None:
    if "\0" in text:
        with pytest.raises(MessageFormatError):
            escape(text)
    else:
        written = escape(text)
        assert not set(written) & set("\r\n:")
        assert unescape(written) == text


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [
        ("1.2", "a\0", "b"),
        ("1.2", "a", "b\0"),
        ("1.1", "a", "b\r"),
        ("1.0", "a", "b\nevil:1"),
        ("1.0", "a\nevil", "1"),
        ("1.0", "a:b", "1"),
        ("1.2", "", "1"),
        ("1.2", "a", "\ud800"),
    ],
)
def test_what_a_version_cannot_carry_is_refused(version: str, name: str, value: str) -> None:
    with pytest.raises(MessageFormatError):
        encode("SEND", {name: value}, version=version)


@pytest.mark.parametrize(
    ("name", "value"), [("login", "a\nevil:1"), ("passcode", "x\0"), ("login", "a\r"), ("a:b", "s3cret")]
)
def test_frames_that_are_never_escaped_refuse_line_ends_without_showing_the_value(name: str, value: str) -> None:
    with pytest.raises(MessageFormatError) as caught:
        encode_head("CONNECT", {name: value})
    assert value not in str(caught.value)


def test_a_connect_value_keeps_its_colons_and_backslashes() -> None:
    assert encode_head("CONNECT", {"passcode": "a:b\\c"}) == b"CONNECT\npasscode:a:b\\c\n"


def test_a_frame_shows_no_header_in_its_repr() -> None:
    assert "s3cret" not in repr(Frame(b"CONNECT\npasscode:s3cret\n"))
