"""A message that cannot be a row leaves no trace, or becomes a row that says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from tests.spark.column_rows import HALF, PARTS, SENT, Source, received, rows

from redelivery import IllegalStateError, Message, MessageFormatError, Queue
from redelivery.spark.rows.columns import Columns


@pytest.mark.parametrize("part", [part for part in PARTS if part != "properties"])
def test_permissive_keeps_what_can_be_read(part: str) -> None:
    headers = {"message_id": "ID:1", "type": "t", "correlation_id": "c", "reply_to": Queue("r"), "timestamp": SENT}
    broken = Source("text", frozenset((part,)), count=2, named={"a": 1}, headers=headers)
    columns = Columns(errors=True)
    with pytest.raises(MessageFormatError, match=f"{part} cannot be read"):
        columns.add(received(broken))
    columns.add_error(received(broken), "MessageFormatError: why")
    whole = Source("text", count=2, named={"a": 1}, headers=headers)
    columns.add(received(whole))
    bad, good = rows(columns)
    assert bad["_error"] == "MessageFormatError: why"
    assert good["_error"] is None
    assert bad[part] is None
    lost = {part, "_error", "body_type"} if part == "body" else {part, "_error"}
    assert {name: bad[name] for name in bad.keys() - lost} == {name: good[name] for name in good.keys() - lost}


def test_permissive_has_the_raw_body_of_what_could_not_be_converted() -> None:
    columns = Columns(errors=True, converter=lambda message: {}[message.body])
    columns.add_error(Message("raw", properties={HALF: HALF}, type=HALF), f"KeyError: {HALF}")
    (found,) = rows(columns)
    assert (found["body"], found["body_type"], found["_error"]) == (b"raw", "text", "KeyError: ?")
    assert (found["type"], found["properties"]) == ("?", [("?", "?")])


def test_permissive_without_its_column() -> None:
    with pytest.raises(IllegalStateError, match="errors=True"):
        Columns().add_error(Message("x"), "why")


texts = st.text(st.characters(exclude_categories=()), max_size=8)  # half surrogate pairs too
values = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | texts
bodies = texts | st.binary(max_size=8) | st.none() | st.dictionaries(texts.filter(bool), values, max_size=3)
sources = st.builds(
    Source,
    content=bodies | st.lists(values, max_size=3),
    broken=st.just(frozenset()) | st.frozensets(st.sampled_from(PARTS), max_size=2),
    count=st.integers(1, 3),
    named=st.dictionaries(texts, values, max_size=3),
    headers=st.fixed_dictionaries(
        {}, optional={"message_id": texts, "type": texts, "correlation_id": texts | st.binary()}
    ),
)


@given(st.lists(sources, max_size=12), st.sampled_from(["string", "variant"]))
def test_a_failed_message_leaves_no_trace(mixture: list[Source], properties_type: str) -> None:
    """Any mixture of good and bad gives the columns of the good ones alone."""
    columns, good = Columns(properties_type), []
    for source in mixture:
        before = (len(columns), columns.size, columns.keys)
        try:
            columns.add(received(source))
        except MessageFormatError:
            assert (len(columns), columns.size, columns.keys) == before
        else:
            good.append(source)
    alone = Columns(properties_type)
    for source in good:
        alone.add(received(source))
    assert repr(rows(columns)) == repr(rows(alone))  # as text: NaN is not equal to itself
    assert columns.size == alone.size
    assert all(not source.broken for source in good)


@given(st.lists(sources, max_size=12), st.sampled_from(["string", "variant"]))
def test_permissive_takes_any_mixture(mixture: list[Source], properties_type: str) -> None:
    columns = Columns(properties_type, errors=True)
    errors: list[str | None] = []
    for source in mixture:
        try:
            columns.add(received(source))
            errors.append(None)
        except MessageFormatError as error:
            columns.add_error(received(source), str(error))
            errors.append(str(error))
    assert [each["_error"] for each in rows(columns)] == errors
