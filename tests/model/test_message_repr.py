"""A message in one line: which one it is and what it is like, never what it holds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from redelivery.model.destinations import Queue
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import Body, Value


class Source:
    def __init__(self, body: Body | None, broken: tuple[str, ...] = (), **headers: object) -> None:
        self.content, self.broken, self.headers = body, broken, headers

    def body(self) -> Body:
        if "body" in self.broken:
            raise MessageFormatError("not UTF-8")
        return self.content

    def properties(self) -> Mapping[str, Value]:
        return {"secret": "property"}

    def header(self, name: str) -> object:
        if name in self.broken:
            raise MessageFormatError("not UTF-8")
        return self.headers.get(name)

    def wire_count(self) -> int:
        return 2


def test_it_says_which_message_it_is_but_no_content() -> None:
    message = Message("secret text", properties={"secret": "property"})
    assert repr(message) == "<Message text of 11 characters>"
    message.stamp(message_id="ID:1", destination=Queue("q"))
    assert repr(message) == "<Message ID:1 queue://q text of 11 characters>"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (None, "<Message no body>"),
        ("", "<Message text of 0 characters>"),
        ("a", "<Message text of 1 character>"),
        (b"ab" * 1000, "<Message 2,000 bytes>"),
        ({"secret": 1}, "<Message map of 1 entry>"),
        (["secret", 2], "<Message stream of 2 values>"),
    ],
)
def test_the_kind_and_size_of_the_body(body: object, shown: str) -> None:
    assert repr(Message(body)) == shown


def test_a_received_one_has_its_count() -> None:
    source = Source("secret", message_id="ID:1", destination=Queue("orders"))
    assert repr(Message.received(source, 1, None)) == "<Message ID:1 queue://orders text of 6 characters, delivery 3>"


def test_what_cannot_be_read_raises_nothing() -> None:
    source = Source("secret", ("body", "destination"), message_id="ID:1")
    assert repr(Message.received(source, 0, None)) == "<Message ID:1 body that cannot be read, delivery 2>"
    assert repr(Message.received(Source(None, ("message_id",)), 0, None)) == "<Message no body, delivery 2>"
