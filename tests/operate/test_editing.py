"""Letters are edited: as their sender wrote them, without what their failure has added, and whatever is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery import ConfigError, Message, MessageFormatError
from redelivery.model.destinations import destination
from redelivery.model.values import Long, Value
from redelivery.operate.letters.editing import Edited, assigning, difference, editable, program, replacing
from redelivery.operate.letters.routes import REPLAYED, REPLAYS, Leaving, NoWayError

ORDERS = destination("orders")
FAILED: dict[str, Value] = {
    "originalDestination": "queue://orders",
    "dlqDeliveryFailureCause": "ValueError",
    "dlqDeliveryCount": 7,
}


def letter(body: Any = "text", **properties: Any) -> Message:
    message = Message(body, properties={"tenant": "eu", **properties})
    message.adopt({**message.properties, **FAILED})
    message.stamp(message_id="ID:1", priority=7, persistent=True)
    return message


def edit(found: Message, *assignments: str) -> Leaving:
    leaving = Edited(assigning(assignments), ORDERS, "run")(found)
    assert leaving is not None
    return leaving


def test_what_is_sent_is_no_dead_letter() -> None:
    leaving = edit(letter('{"price": 0}'), "body.price=5")
    assert leaving.message.body == '{"price": 5}'
    assert dict(leaving.message.properties) == {"tenant": "eu", REPLAYED: "run", REPLAYS: 1}
    assert (leaving.destination, leaving.priority, leaving.persistent) == (ORDERS, 7, True)
    assert leaving.message.dead_letter is None


def test_a_text_stays_a_text() -> None:
    message = edit(letter("a", count=4, name="4"), "properties.count=5", "properties.name=5", "type=7").message
    assert (message.properties["count"], message.properties["name"], message.type) == (5, "5", "7")


def test_a_replay_before_is_counted_and_not_shown() -> None:
    found = letter("a", **{REPLAYED: "before", REPLAYS: 2})
    assert REPLAYED not in editable(found)["properties"]
    properties = edit(found, "body=b").message.properties
    assert (properties[REPLAYED], properties[REPLAYS]) == ("run", 3)


@pytest.mark.parametrize(
    ("body", "assignment", "result"),
    [
        ('{"a":1,"b":"ä"}', "body.a=2", '{"a":2,"b":"ä"}'),
        ('{"a": 1, "b": "\\u00e4"}', "body.a=2", '{"a": 2, "b": "\\u00e4"}'),
        ('{\n  "a": [\n    1,\n    2\n  ]\n}', "body.a[1]=3", '{\n  "a": [\n    1,\n    3\n  ]\n}'),
        ('{"a": 1}', "body.new=true", '{"a": 1, "new": true}'),
        ('{"a": {"b.c": 1}}', 'body.a."b.c"=2', '{"a": {"b.c": 2}}'),
        ('{"a": 1}', "body.a=text with = in it", '{"a": "text with = in it"}'),
        ('{"a": 1}', 'body.a="5"', '{"a": "5"}'),
        ('[{"a": 1}]', "body[0].a=null", '[{"a": null}]'),
        ("<a/>", "body=<b/>", "<b/>"),
        ("4", "body=5", "5"),
        ('{"a": 1}', "body=none", "none"),
        ("none", 'body={"a":1}', '{"a": 1}'),
        ({"price": Long(4)}, "body.price=5", {"price": Long(5)}),
        ({"price": 4}, "body.price=5", {"price": 5}),
    ],
)
def test_one_value_is_set_and_the_rest_is_as_it_was_written(body: Any, assignment: str, result: Any) -> None:
    sent = edit(letter(body), assignment).message.body
    assert sent == result
    if isinstance(result, dict):
        assert type(sent["price"]) is type(result["price"])


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": 12345678901234567890.123456789}', '{"a": NaN}', '{"a": -0}', "[1", '"text"', "5", ""],
)
def test_what_json_would_lose_is_edited_as_text(text: str) -> None:
    found = editable(letter(text))
    assert (found["body_type"], found["body"]) == ("text", text)


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("body.price", "write NAME=VALUE"),
        ("bodi.price=5", "NAME begins with one of body, properties"),
        ("body_type=text", "NAME begins with one of"),
        ("body..price=5", "write NAME=VALUE"),
        ("body.items[2]=5", r"the letter has no body\.items\[2\]"),
        ("body.nope.price=5", r"the letter has no body\.nope"),
        ("body.price.x=5", r"the letter has no body\.price\.x"),
        ("priority=12", "priority=12: must be an integer from 0 to 9"),
        ("persistent=5", "persistent=5: must be true or false"),
        ("properties.JMSXDeliveryCount=1", "JMSXDeliveryCount is a broker's own"),
        ("properties.x=[1]", "property 'x' is a list"),
        ("reply_to=nowhere://x", "not a message"),
    ],
)
def test_what_cannot_be_set_is_named(assignment: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        edit(letter('{"price": 0, "items": [1, 2]}'), assignment)


def test_what_is_not_changed_stays() -> None:
    with pytest.raises(NoWayError, match="letter ID:1 was not changed"):
        edit(letter("a"), "body=a")
    with pytest.raises(NoWayError, match="was not changed"):
        Edited(program("def fix(letter): return None", "fix.py"), ORDERS, "run")(letter("a"))


def test_a_program_changes_what_it_is_given() -> None:
    source = "def fix(letter):\n letter['body']['price'] *= 2\n letter['properties']['fixed'] = True\n return letter"
    found = letter('{"price": 4}')
    leaving = Edited(program(source, "fix.py"), ORDERS, "run")(found)
    assert leaving is not None
    assert (leaving.message.body, leaving.message.properties["fixed"]) == ('{"price": 8}', True)
    assert found.body == '{"price": 4}'


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def fix(", "SyntaxError"),
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("x = 1", r"it has no function fix\(letter\)"),
        ("def fix(letter): return letter['nope']", r"fix\(\) raised KeyError: 'nope'"),
        ("def fix(letter): return 'text'", r"fix\(\) returned a str"),
        ("def fix(letter): return {'body': 'x'}", "missing: body_type, correlation_id"),
        ("def fix(letter): return {**letter, 'boby': 1}", "unknown: boby"),
    ],
)
def test_a_program_that_is_wrong_is_named(source: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Edited(program(source, "fix.py"), ORDERS, "run")(letter("a"))


def test_the_difference_is_shown() -> None:
    lines = list(difference(letter('{"price": 0, "sku": "A7"}'), assigning(["body.price=5"])))
    assert lines[:2] == ["--- ID:1 as it failed", "+++ ID:1 edited"]
    assert [line.strip() for line in lines if line[0] in "+-"][2:] == ['-    "price": 0,', '+    "price": 5,']
    assert list(difference(letter("a"), assigning(["body=a"]))) == []


def test_a_body_that_cannot_be_read_is_not_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.operate.letters.editing.to_record", lambda _: {"unreadable": "not UTF-8"})
    with pytest.raises(MessageFormatError, match="letter ID:1 cannot be edited: not UTF-8"):
        editable(letter())


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.dictionaries(st.text(), st.recursive(LEAVES, st.lists, max_leaves=10)))
def test_any_json_comes_through_an_edit(value: dict[str, Any]) -> None:
    text = json.dumps({**value, "price": 0})
    sent = edit(letter(text), "body.price=5").message.body
    assert json.loads(sent) == {**value, "price": 5}
    assert sent == json.dumps({**value, "price": 5})


def test_what_somebody_has_made_of_a_letter_replaces_no_other() -> None:
    change = replacing({"body": 1}, {"body": 2}, destination("dead"))
    assert change({"body": 1}) == {"body": 2}
    with pytest.raises(ConfigError, match="queue://dead has changed meanwhile"):
        change({"body": 3})
