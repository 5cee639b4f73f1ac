"""What ``body_type=`` makes of a body, and what the error says of one that does not fit."""

from __future__ import annotations

import json
import sys
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pytest

from redelivery.model.content.typed.converter import converter, fill, refused
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.model.messages import Message

many: Any = list  # of a class that a type checker does not know


class Colour(Enum):
    RED = "red"
    BLUE = 2


Sku = NewType("Sku", str)
T = TypeVar("T")


@dataclass(frozen=True)
class Item:
    sku: Sku
    price: float
    count: int = 1


@dataclass
class Order:
    id: int
    items: list[Item]
    note: str | None = None
    paid: bool = False
    colour: Colour = Colour.RED
    due: date | None = None
    previous: Order | None = None
    tags: dict[str, int] = field(default_factory=dict)


@dataclass
class Checked:
    count: int
    limit: InitVar[int] = 10

    def __post_init__(self, limit: int) -> None:
        if self.count > limit:
            raise ValueError("more than there are")


class Refund(TypedDict):
    id: int
    reason: NotRequired[str]


class Point(NamedTuple):
    x: float
    y: float = 0.0


@dataclass
class Priced:
    price: Decimal
    ids: set[UUID]


@dataclass
class Box(Generic[T]):
    of: T


def made(body_type: Any, body: object) -> Any:
    to = converter(body_type)
    assert to is not None
    message = Message()
    message.stamp(body=body)  # as a broker may have brought it: AMQP's maps have lists in them
    fill(message, to)
    return message.body


def fault(body_type: Any, body: object) -> str:
    with pytest.raises(MessageFormatError) as raised:
        made(body_type, body)
    return str(raised.value)


WHOLE = {"id": 1, "items": [{"sku": "a", "price": 2}, {"sku": "b", "price": 2.5, "count": 3}]}
ORDER = Order(1, [Item(Sku("a"), 2.0), Item(Sku("b"), 2.5, 3)])
UUID_TEXT = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.mark.parametrize(
    ("body", "body_type", "converted"),
    [
        ("text", str, "text"),
        (b"bytes", bytes, b"bytes"),
        ('{"a": 1}', dict, {"a": 1}),
        (b"[1]", list, [1]),
        ({"a": 1}, dict, {"a": 1}),
        ("3", "json", 3),
        ("7", int, 7),
        ("1.50", Decimal, Decimal("1.50")),
        (UUID_TEXT, UUID, UUID(UUID_TEXT)),
        ("true", bool, True),
        ("red", Colour, Colour.RED),
        ("2", Colour, Colour.BLUE),
        ("2026-11-27", date, date(2026, 11, 27)),
        ('"2026-11-27T10:00:00Z"', datetime, datetime(2026, 11, 27, 10, tzinfo=UTC)),
        ("10:30:00", time, time(10, 30)),
        ("[1, 2]", list[int], [1, 2]),
        ([1, 2], tuple[int, ...], (1, 2)),
        ("[1, 2.5]", tuple[int, float], (1, 2.5)),
        ("[]", tuple[()], ()),
        ("[1, 1]", set[int], {1}),
        ('{"1": true}', dict[int, bool], {1: True}),
        ({"a": b"x"}, dict[str, bytes], {"a": b"x"}),
        ("hello", str | None, "hello"),
        ("null", str | None, None),
        ("5", int | str, 5),
        ("five", int | str, "five"),
        (None, Order | None, None),
        ('"a"', Literal["a", "b"], "a"),
        ("5", Annotated[int | None, "metadata"], 5),
        ('{"x": 1}', Point, Point(1.0)),
        ('{"id": 3, "more": 1}', Refund, {"id": 3}),
        ('[{"id": 3, "reason": "broken"}]', list[Refund], [{"id": 3, "reason": "broken"}]),
        ('{"count": 11, "limit": 20}', Checked, Checked(11, limit=20)),
    ],
    ids=str,
)
def test_a_body_becomes(body: object, body_type: Any, converted: object) -> None:
    found = made(body_type, body)
    assert found == converted
    assert type(found) is type(converted)


@pytest.mark.parametrize("form", ["text", "bytes", "map"])
def test_a_dataclass_is_built_from_json_and_from_a_map(form: str) -> None:
    text = json.dumps({**WHOLE, "colour": "red", "due": "2026-11-27", "previous": {"id": 0, "items": []}, "new": 1})
    body = {"text": text, "bytes": text.encode(), "map": json.loads(text)}[form]
    found = made(Order, body)
    assert found == Order(1, ORDER.items, due=date(2026, 11, 27), previous=Order(0, []))


def test_a_number_is_exact_where_a_decimal_is_wanted() -> None:
    found = made(Priced, f'{{"price": 1234567890.123456789012345678, "ids": ["{UUID_TEXT}"]}}')
    assert found == Priced(Decimal("1234567890.123456789012345678"), {UUID(UUID_TEXT)})
    assert made(Priced, {"price": 0.1, "ids": []}).price == Decimal("0.1")


@pytest.mark.parametrize(
    ("body", "body_type", "why"),
    [
        ("x", bytes, "to bytes: the message holds text, not bytes"),
        ("{", dict, "to dict: Expecting property name"),
        ("[]", dict, "to dict: it is a list, not a dict"),
        ("x", int, "to int: invalid literal"),
        (None, "json", "to JSON: there is none"),
        ("yes", bool, "to bool: Expecting value"),
        ("1", bool, "to bool: it is an integer, not a boolean"),
        (None, Order, "to Order: it is null, not an object"),
        ("[]", Order, "to Order: it is an array, not an object"),
        ({"id": 1}, Order, "to Order: items: it is missing"),
        ('{"id": "1", "items": []}', Order, "id: it is a string, not an integer"),
        ('{"id": true, "items": []}', Order, "id: it is a boolean, not an integer"),
        ('{"id": 1.5, "items": []}', Order, "id: it is a number, not an integer"),
        ('{"id": 1, "items": [{"sku": "a", "price": "2"}]}', Order, "items[0].price: it is a string, not a number"),
        ('{"id": 1, "items": [{"sku": "a"}]}', Order, "items[0].price: it is missing"),
        ('{"id": 1, "items": [], "note": 5}', Order, "note: it is an integer, not a string"),
        ('{"id": 1, "items": [], "colour": "green"}', Order, "colour: it is none of the values of Colour"),
        ('{"id": 1, "items": [], "due": "27.11."}', Order, "due: it is not a date of ISO 8601"),
        ('{"id": 1, "items": [], "tags": {"a": "b"}}', Order, "tags.a: it is a string, not an integer"),
        ('{"id": 1, "items": [], "previous": {"id": 2, "items": [1]}}', Order, "previous.items[0]: it is an integer"),
        ('{"count": 11}', Checked, "to Checked: Checked: more than there are"),
        ('{"reason": "x"}', Refund, "to Refund: id: it is missing"),
        ("[1]", tuple[int, float], "it has 1 values, not 2"),
        ('"c"', Literal["a", "b"], "it is none of 'a', 'b'"),
        ("[]", Order | int, "it fits none of Order (it is an array, not an object); int (it is an array, not an"),
        (b"\xff", Order, "to Order: 'utf-8' codec can't decode"),
        (f'{{"price": {"9" * 5000}, "ids": []}}', Priced, "to Priced: Exceeds the limit"),
        ('{"price": "x", "ids": []}', Priced, "price: it is not a decimal number"),
        ("[" * 100_000, list[int], "recursion"),
        ("1e999999", float | None, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_body_that_does_not_fit_is_an_error_that_says_where(body: object, body_type: Any, why: str | None) -> None:
    if why is None:
        assert made(body_type, body) == float("inf")
        return
    found = fault(body_type, body)
    assert found.startswith("the body does not convert to ")
    assert why in found


def test_the_error_of_one_who_receives_has_the_message() -> None:
    message = Message("{", correlation_id="c")
    message.stamp(message_id="ID:1", destination="queue://orders")
    error = refused(message, MessageFormatError("why"))
    assert str(error) == "queue://orders ID:1: why"
    assert error.message is message


@pytest.mark.parametrize(
    ("body_type", "why"),
    [
        (5, "body_type=5 is neither str"),
        (list[complex], "body_type=list[complex]: the field [] has the type complex, which JSON has nothing for"),
        (Box, "body_type=Box: the field of has the type a type variable"),
        (Any, "body_type=typing.Any"),
    ],
    ids=str,
)
def test_a_type_of_which_nothing_is_known_is_refused(body_type: Any, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        made(body_type, "1")
    assert why in str(raised.value)


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    class Inner:
        pass

    @dataclass
    class Outer:
        inner: Inner

    with pytest.raises(ConfigError, match=r"Outer.*'Inner' is not defined.*module of the class"):
        made(Outer, "{}")


class TestPydantic:
    def test_may_be_what_looks_like_a_model(self) -> None:
        class Model:
            def __init__(self, **fields: Any) -> None:
                self.fields = fields

            @classmethod
            def model_validate(cls, value: dict[str, Any]) -> Model:
                return cls(**value)

            @classmethod
            def model_validate_json(cls, text: str) -> Model:
                return cls(**json.loads(text))

        assert [made(Model, body).fields for body in ('{"id": 1}', {"id": 1})] == [{"id": 1}] * 2

    def test_a_model_is_validated(self) -> None:
        pydantic = pytest.importorskip("pydantic")
        item = pydantic.create_model("Item", price=(float, ...))
        order = pydantic.create_model("Order", id=(int, ...), items=(many[item], []))
        whole: list[Any] = ['{"id": 1}', b'{"id": 1}', {"id": 1}]
        for body in whole:
            assert made(order, body) == order(id=1)
        found = fault(order, '{"id": "secret", "items": [{"price": "secret"}, {}]}')
        assert found == (
            "the body does not convert to Order: id: Input should be a valid integer, unable to parse string as an "
            "integer; items[0].price: Input should be a valid number, unable to parse string as a number; "
            "items[1].price: Field required"
        )
        broken: list[Any] = [b"{", {"colour": "blue"}, None]
        for body in broken:
            assert "the body does not convert to Order: " in fault(order, body)

    def test_models_may_be_within_other_types(self) -> None:
        pydantic = pytest.importorskip("pydantic")
        item = pydantic.create_model("Item", price=(float, ...))
        assert made(many[item], '[{"price": 1}]') == [item(price=1)]
        assert "[1].price: Field required" in fault(many[item], '[{"price": 1}, {}]')
        assert made(pydantic.TypeAdapter(many[item]), '[{"price": 1}]') == [item(price=1)]

    def test_its_dataclasses_are_its_own(self) -> None:
        dataclasses = pytest.importorskip("pydantic.dataclasses")

        @dataclasses.dataclass
        class Own:
            id: int

        assert made(Own, '{"id": "1"}').id == 1
        assert "id: Input should be a valid integer" in fault(Own, {"id": "x"})


class TestMsgspec:
    def test_a_struct_is_validated(self) -> None:
        msgspec = pytest.importorskip("msgspec")
        item = msgspec.defstruct("Item", [("price", float)])
        order = msgspec.defstruct("Order", [("id", int), ("items", many[item], [])])
        whole: list[Any] = ['{"id": 1}', b'{"id": 1}', {"id": 1}]
        for body in whole:
            assert made(order, body) == order(1)
        assert fault(order, '{"id": 1, "items": [{"price": "secret"}]}') == (
            "the body does not convert to Order: items[0].price: Expected `float`, got `str`"
        )
        assert made(many[order], '[{"id": 1}]') == [order(1)]
        assert "[0].id: Expected `int`, got `str`" in fault(many[order], '[{"id": "1"}]')
        assert "JSON is malformed" in fault(order, "{nope}")


def test_a_library_is_imported_by_its_own_types_only() -> None:
    import subprocess

    program = (
        "import sys; from dataclasses import make_dataclass; "
        "from redelivery.model.content.typed.converter import converter; "
        "converter(make_dataclass('A', [('id', int)])); "
        "print(sorted({'pydantic', 'msgspec', 'attrs'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"
