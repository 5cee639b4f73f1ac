"""Which messages are taken for those that stand in a segment already, and which are others with the same id."""

from __future__ import annotations

import threading
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from redelivery import Message
from redelivery.model.values import Byte, Float, Long, Short
from redelivery.spark.log.segments import SegmentWriter, segment_keys
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import Wal
from redelivery.spark.read.receiving.duplicates import Duplicates
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.digests import Key, digest

ONE, TWO = b"1" * 16, b"2" * 16


class Known:
    """Segments in doubt; one whose mark turns up is in doubt no more."""

    def __init__(self, **segments: list[Key]) -> None:
        self.segments = segments
        self.marked: set[str] = set()
        self.looks = 0

    def in_doubt(self) -> dict[str, list[Key]]:
        return dict(self.segments)

    def confirmed(self, name: str) -> bool:
        self.looks += 1
        if name in self.marked:
            self.segments.pop(name, None)
        return name not in self.segments


def duplicates(known: Known, patience: float = 0) -> Duplicates:
    return Duplicates(known, threading.Event(), patience)


def test_same_id_and_new_body_is_another_message() -> None:
    found = duplicates(Known(a=[("order-1", ONE)]))
    assert found.places([("order-1", TWO), ("order-1", TWO), ("order-1", b"3" * 16)]) == []


def test_same_id_and_body_is_dropped() -> None:
    assert duplicates(Known(a=[("order-1", ONE)])).places([("x", TWO), ("order-1", ONE)]) == [1]


def test_same_body_and_another_id_is_another_message() -> None:
    assert duplicates(Known(a=[("order-1", ONE)])).places([("order-2", ONE), (None, ONE)]) == []


def test_without_an_id_the_digest_decides() -> None:
    assert duplicates(Known(a=[(None, ONE)])).places([(None, TWO), (None, ONE)]) == [1]


def test_what_is_new_is_kept_though_its_digest_agrees() -> None:
    """A tick that has neither id nor time, delivered for the first time."""
    found = duplicates(Known(a=[(None, ONE)] * 3))
    assert found.places([(None, ONE)] * 4, new={0, 1, 3}) == [2]
    found.committed()
    assert found.places([(None, ONE)] * 3, new={0}) == [1, 2]


def test_of_equal_messages_as_many_are_dropped_as_segments_have() -> None:
    known = Known(a=[(None, ONE)], b=[(None, ONE)])
    assert duplicates(known).places([(None, ONE)] * 5) == [0, 1]


def test_what_was_dropped_and_committed_is_gone_from_the_broker() -> None:
    found = duplicates(Known(a=[(None, ONE)]))
    assert found.places([(None, ONE)]) == [0]
    assert found.places([(None, ONE)]) == [], "of the same transaction"
    found.committed()
    assert found.places([(None, ONE)]) == []


def test_what_was_dropped_and_rolled_back_is_dropped_again() -> None:
    found = duplicates(Known(a=[(None, ONE)]))
    for _ in range(3):
        assert found.places([(None, ONE)]) == [0]
        found.rolled_back()


def test_an_equal_message_while_another_task_is_about_to_commit_is_another_one() -> None:
    known = Known(a=[(None, ONE)])
    found = duplicates(known, patience=30)
    timer = threading.Timer(0.1, known.marked.add, ["a"])
    timer.start()
    assert found.places([(None, ONE)]) == []
    timer.join()
    assert known.looks > 1


def test_a_segment_that_is_never_marked_is_waited_for_once() -> None:
    known = Known(a=[(None, ONE), (None, TWO)])
    found = duplicates(known)
    assert found.places([(None, ONE)]) == [0]
    looks = known.looks
    assert found.places([(None, TWO)]) == [0]
    assert known.looks == looks


def test_nobody_waits_for_segments_that_have_nothing_in_common() -> None:
    known = Known(a=[("x", ONE)])
    assert duplicates(known, patience=30).places([("y", ONE)]) == []
    assert known.looks == 0


def test_the_ids_of_the_release_before_are_enough() -> None:
    assert duplicates(Known(a=[("x", None)])).places([("x", ONE), ("x", TWO), ("y", ONE)]) == [0]


DIFFERENT: list[dict[str, Any]] = [
    {},
    {"kind": "bytes"},
    {"body": b"hell"},
    {"body": None},
    {"timestamp": 8},
    {"timestamp": None},
    {"properties": {}},
    {"properties": {"n": 2}},
    {"properties": {"n": Long(1)}},
    {"properties": {"n": Byte(1)}},
    {"properties": {"n": "1"}},
    {"properties": {"n": True}},
    {"properties": {"n": 1.0}},
    {"properties": {"n": None}},
    {"properties": {"m": 1}},
    {"properties": {"n": 1, "m": "\ud800"}},
]


def test_what_differs_has_another_digest() -> None:
    whole = {"kind": "text", "body": b"hello", "properties": {"n": 1}, "timestamp": 7}
    found = [digest(**{**whole, **change}) for change in DIFFERENT]
    assert len(set(found)) == len(DIFFERENT)
    assert {len(each) for each in found} == {16}


def test_the_order_of_properties_and_what_brokers_count_do_not_matter() -> None:
    one = digest("text", b"x", {"a": 1, "b": "2", "JMSXDeliveryCount": 1}, 1)
    counted = dict.fromkeys(("x-acquired-count", "x-delivery-count"), Long(4))  # RabbitMQ's
    assert one == digest("text", b"x", {"b": "2", **counted, "a": 1, "JMSXDeliveryCount": 2}, 1)


NAMES = ("a", "b%s", "%", "it's", 'q"x', "\n", "é", "\ud800", "redelivered", "JMSXDeliveryCount", "B", "{x}")
VALUES = (
    *(True, False, None, 1, -5, Byte(3), Short(7), Long(9), Float(1.5), 1e300, "x", "it's", "%s", "é\ud800"),
    *(b"\x00'", "", 0.5),
)


@given(
    st.sampled_from(["text", "bytes", None]),
    st.sampled_from([None, b"", b"abc"]),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=6),
    st.sampled_from([None, 0, 1_700_000_000_000_000]),
)
def test_a_digest_stays_what_it_is_in_logs_that_exist(
    kind: str | None, body: bytes | None, properties: dict[str, Any], sent: int | None
) -> None:
    """However it is made: the segments of earlier releases have digests of this text and the body."""
    changing = ("redelivered", "JMSXDeliveryCount")
    typed = sorted((name, type(each).__name__, each) for name, each in properties.items() if name not in changing)
    text = repr((kind, None if body is None else len(body), sent, typed))
    expected = blake2b(text.encode("utf-8", "surrogatepass") + (body or b""), digest_size=16).digest()
    assert digest(kind, body, properties, sent) == expected


@pytest.mark.parametrize("properties_type", ["string", "variant"])
@pytest.mark.parametrize("converter", [None, lambda message: message.body.upper() + str(id(message))])
def test_a_row_has_the_digest_of_its_message_whatever_becomes_of_it(properties_type: str, converter: Any) -> None:
    message = Message("hello", properties={"n": 1})
    message.stamp(message_id="x", timestamp=1_700_000_000_000)
    columns = Columns(properties_type, errors=True, converter=converter)
    columns.add(message)
    columns.add_error(message, "why")
    assert columns.keys == [("x", digest("text", b"hello", {"n": 1}, 1_700_000_000_000_000))] * 2


@pytest.mark.parametrize("several", [False, True])
def test_without_dedupe_no_digest_is_made_and_nothing_is_recognised_by_its_rows(
    several: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A restart with dedupe=inDoubt finds segments without digests: by an id alone it would drop other messages."""
    monkeypatch.setattr("redelivery.spark.rows.from_message.digest", lambda *_: pytest.fail("a digest was made"))
    columns = Columns(errors=True, several=several, digests=False)
    for message in (Message(b"tick"), Message(b"tick"), Message("x", type="order")):
        columns.add(message)
    columns.add_error(Message("broken"), "why")
    assert {digest for _, digest in columns.keys} == {None}
    writer = SegmentWriter(columns.schema, "none", "attempt")
    columns.write(writer)
    wal = Wal.open(LocalStore(str(tmp_path / "wal")))
    assert wal.publish(1, 0, writer.finish())  # in doubt: there is no mark
    assert segment_keys(wal.reader(1, 0)) == []
    assert wal.in_doubt() == {}
    wal.commit_driver(1)
    assert wal.in_doubt() == {}
