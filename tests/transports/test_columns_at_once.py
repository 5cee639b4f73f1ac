"""What `columns()` reads at once is what `header` reads one by one, whatever came before on the same subscription."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.content.columns import NAMES, columns_of
from redelivery.model.destinations import Queue, TemporaryQueue, Topic
from redelivery.model.errors import MessageFormatError
from redelivery.model.values import from_epoch_ms
from redelivery.transports.amqp.codec.messages import AmqpFormat, AmqpMessage
from redelivery.transports.dialects import activemq, artemis, hornetq, qpid, rabbitmq, unknown
from redelivery.transports.stomp.codec.formats import OURS, StompFormat
from redelivery.transports.stomp.codec.messages import StompMessage
from redelivery.transports.stomp.codec.names import is_property

STOMP = (activemq.STOMP, artemis.STOMP, hornetq.STOMP, rabbitmq.STOMP, unknown.STOMP)
AMQP = (activemq.AMQP, artemis.AMQP, qpid.AMQP, rabbitmq.AMQP, unknown.AMQP)
KNOWN = (
    *("message-id", "amqp-message-id", "destination", "reply-to", "correlation-id", "type", "timestamp", "expires"),
    *("priority", "persistent", "redelivered", "JMSXGroupID", "JMSXGroupSeq", "_AMQ_GROUP_ID", "ack", "subscription"),
    *("content-length", "JMS_redelivery_kind", "JMS_redelivery_mode", "_AMQ_ORIG_ADDRESS", "x-first-death-queue"),
    *("region", "number", "na\\cme", "na:me", "ключ"),
)
TEXTS = (
    *("", "1", "-1", "4", "99", "true", "false", "1795804842527", "1795804842", "9" * 19, "ID\\cvm-1\\c1", "T_1@@s@@1"),
    *(
        "/queue/orders",
        "/topic/prices",
        "jms.queue.orders",
        "orders",
        "/temp-queue/x",
        "/queue/a%2Fb",
        "queue://orders",
    ),
    *("a\\\\b", "a\\nb", "a\\\\cb", "wrong\\x", "ends\\", "ü", "\r", "a:b"),
)
heads = st.lists(
    st.tuples(st.sampled_from(KNOWN), st.one_of(st.sampled_from(TEXTS), st.text("ab:\\cn", max_size=6))), max_size=14
).map(lambda lines: "MESSAGE\n" + "".join(f"{name}:{value}\n" for name, value in lines))
odd = st.sampled_from([b"MESSAGE\nno colon\n", b"MESSAGE\n:no name\n", b"MESSAGE\nregion:\xff\n", b"MESSAGE\n"])


def one_by_one(source: Any) -> list[Any]:
    return [*map(source.header, NAMES), dict(source.properties())]


def at_once(source: Any) -> list[Any]:
    *found, properties = columns_of(source)
    return [
        *(from_epoch_ms(each) if name in ("timestamp", "expiration") else each for name, each in named(found)),
        dict(properties),
    ]


def named(found: Sequence[Any]) -> list[tuple[str, Any]]:
    assert not any(isinstance(each, datetime) for each in found), "each of these has columns() of its own"
    return list(zip(NAMES, found, strict=True))


def said(read: Any, source: Any) -> Any:
    try:
        return read(source)
    except MessageFormatError:
        return MessageFormatError


@given(st.lists(st.one_of(heads.map(str.encode), odd), min_size=1, max_size=6), st.sampled_from(STOMP), st.data())
def test_stomp(frames: list[bytes], dialect: Any, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from([Queue("orders"), Topic("prices"), TemporaryQueue("temp-queue://x")]))
    version = data.draw(st.sampled_from(["1.1", "1.2"]))
    link = StompFormat(dialect, version, target)
    for head in (*frames, *frames[::-1]):
        message = StompMessage(head, b"\0body", link)
        assert said(at_once, message) == said(one_by_one, message)
        assert said(own_properties, message) == said(lambda each: dict(each.properties()), message)


def own_properties(message: StompMessage) -> Mapping[str, Any]:
    """As they were read before heads were known to be alike: one after the other."""
    dialect, found = message.format.dialect, message.noted()
    return {name: value for name, value in found.items() if name not in OURS and is_property(name, dialect)}


@pytest.mark.parametrize(
    "line",
    [
        *("ack:wrong\\x", "priority:", "timestamp:a\\cb", "region:a\\\\cb"),
        *("priority:²", "timestamp:²", "expires:²", "JMSXGroupSeq:²", "expires:1\\c", "persistent:true\\c"),
    ],
)
def test_an_odd_line_behind_a_usual_one_of_the_same_name(line: str) -> None:
    link, name = StompFormat(activemq.STOMP, "1.2", Queue("orders")), line.partition(":")[0]
    for head in (f"MESSAGE\n{name}:1\n", f"MESSAGE\n{line}\n"):
        message = StompMessage(head.encode(), b"", link)
        assert said(at_once, message) == said(one_by_one, message)
        assert said(own_properties, message) == said(lambda each: dict(each.properties()), message)


def test_a_subscription_with_more_kinds_of_heads_than_are_remembered() -> None:
    link = StompFormat(activemq.STOMP, "1.2", Queue("orders"))
    for number in (*range(200), *range(200)):
        head = f"MESSAGE\nmessage-id:{number}\np{number}:{number}\ntimestamp:{number}\n".encode()
        message = StompMessage(head, b"", link)
        assert dict(message.properties()) == {f"p{number}": str(number)}
        assert columns_of(message)[0] == str(number)


ids = st.one_of(
    st.none(), st.sampled_from(["ID:1", "bare", "ID:AMQP_UUID:x", "", "ü"]), st.binary(max_size=3), st.integers(0, 9)
)
names = st.sampled_from([None, "orders", "queue://orders", "topic://prices", "/queues/orders", "a,b", "", "x" * 300])


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "id": ids,
                "correlation_id": ids,
                "address": names,
                "reply_to": names,
                "subject": names,
                "group_id": names,
                "group_sequence": st.sampled_from([0, 1, 0xFFFF_FFFF]),
                "creation_time": st.sampled_from([0, 1.5, 1795804842.527]),
                "expiry_time": st.sampled_from([0, 1795804842.527]),
                "user_id": st.sampled_from([b"", b"me", b"\xff"]),
                "durable": st.booleans(),
                "priority": st.integers(0, 255),
                "annotations": st.sampled_from(
                    [{"x-opt-jms-dest": 1, "x-opt-jms-reply-to": 0}, {"x-opt-to-type": "topic"}]
                ),
                "properties": st.dictionaries(
                    st.text("ab", max_size=2), st.one_of(st.text("xü", max_size=3), st.integers(-9, 9))
                ),
            },
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(AMQP),
)
def test_amqp(sent: list[dict[str, Any]], dialect: Any) -> None:
    from tests.transports.amqp_samples import encoded  # skips where there is no proton

    link = AmqpFormat(dialect, Queue("orders"))
    for each in sent:
        raw = encoded("body", **each)
        for cut in (len(raw), len(raw) // 2):
            assert said(at_once, AmqpMessage(raw[:cut], link)) == said(one_by_one, AmqpMessage(raw[:cut], link))


@pytest.mark.parametrize("dialect", AMQP, ids=lambda dialect: type(dialect).__name__)
def test_amqp_of_odd_types(dialect: Any) -> None:
    """A peer may write any type into any field."""
    for place in range(13):
        for value in (
            b"\x41",
            b"\x52\x07",
            b"\xa0\x01\xff",
            b"\xa1\x01\xff",
            b"\xa3\x01x",
            b"\xa1\x05ab",
            b"\x45",
            b"\x98" + bytes(16),
        ):
            fields = b"\x40" * place + value
            raw = b"\x00\x53\x73\xc0" + bytes((len(fields) + 1, place + 1)) + fields + b"\x00\x53\x77\xa1\x01x"
            link = AmqpFormat(dialect, Queue("orders"))
            assert said(at_once, AmqpMessage(raw, link)) == said(one_by_one, AmqpMessage(raw, link))
