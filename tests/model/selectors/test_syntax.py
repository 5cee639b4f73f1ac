"""What is a selector (JMS 3.1 §3.8.1.1 and §3.8.1.2), and where an error points when it is none."""

from __future__ import annotations

import pickle

import pytest

from redelivery.model.errors import InvalidSelectorError
from redelivery.model.selectors.parsing import DEEPEST, LONGEST
from redelivery.model.selectors.selector import Selector

VALID = [
    "JMSType = 'car' AND color = 'blue' AND weight > 2500",  # the specification's own example
    "age BETWEEN 15 AND 19 and age not between 16 and 17",
    "Country IN ('UK', 'US', 'France') or Country Not In('x')",
    "phone LIKE '12%3' AND word LIKE 'l_se' AND underscored LIKE '\\_%' ESCAPE '\\'",
    "prop_name IS NULL OR prop_name IS NOT NULL",
    "urgent",
    "NOT (urgent OR NOT TRUE)",
    "(urgent = true) = (late <> FALSE)",
    "((name)) LIKE 'a%'",
    "a = 'it''s' AND b = ''",
    "57 = a OR -957 = a OR +62 = a OR 0x1F = a OR 017 = a OR 9L = a OR -9223372036854775808 = a",
    "7E3 = a OR -57.9E2 = a OR 7. = a OR -95.7 = a OR .5 = a OR 1f = a OR 2.5D = a",
    "a*2+b/-3-4 >= - - 5",
    "a=1\tAND\nb\r\n=\f2",
    "$a = 1 AND _b = 2 AND größe = 3 AND 名前 = '七' AND €uro = 4",
    "ANDREW = 1 AND Internal = 2 AND not_so IS NULL AND likely AND nullable AND isle AND betweens",
    "JMSDeliveryMode = 'PERSISTENT' AND JMSPriority > 4 AND JMSMessageID = 'x' AND JMSTimestamp > 0",
    "JMSCorrelationID IS NULL AND JMSXGroupID = 'g' AND JMSXDeliveryCount < 3 AND JMS_vendor = 1",
    "1 = 'a'",  # unlike types: false, but a selector
]


@pytest.mark.parametrize("text", VALID)
def test_it_is_a_selector(text: str) -> None:
    assert Selector(text).text == text


INVALID = [
    ("a = = b", 4, "write = once"),
    ("a == 1", 3, "write = once"),
    ("a != 1", 2, "write <>"),
    ("a > = 1", 4, "write >= in one word"),
    ("a &&b", 2, "write AND"),
    ("a || b", 2, "write OR"),
    ('color = "red"', 8, "single quotes: 'eu'"),
    ("color = 'red", 8, "no end"),
    ("a = 1; b = 2", 5, "without a semicolon"),
    ("a = 1 AND AND b = 2", 10, "'AND' cannot stand here, but a name, a value or a bracket can"),
    ("a =", 3, "more is needed: a name, a value or a bracket"),
    ("NOT", 3, "more is needed"),
    ("a IS", 4, "more is needed: NULL"),
    ("a NOT 1", 6, "LIKE, IN or BETWEEN"),
    ("(a = 1", 6, "a closing bracket"),
    ("a = 1)", 5, "')' cannot stand here"),
    ("a b", 2, "'b' cannot stand here, but an operator can"),
    ("a = 1 b", 6, "'b' cannot stand here, but AND or OR can"),
    ("(a = 1 b)", 7, "'b' cannot stand here, but a closing bracket, AND or OR can"),
    ("a BETWEEN 1 b", 12, "'b' cannot stand here, but AND can"),
    ("a IN ('x' 'y')", 10, "but a comma or a closing bracket can"),
    ("a = NULL", 4, "IS NULL"),
    ("a IN ()", 6, "a string in single quotes"),
    ("a IN (1, 2)", 6, "a string in single quotes"),
    ("a IN 'x'", 5, "a list in round brackets"),
    ("a LIKE b", 7, "a string in single quotes"),
    ("'abc' LIKE 'a%'", 0, "LIKE is for the name of a header or property, and this is a string"),
    ("a + 1 IN ('x')", 0, "IN is for the name"),
    ("5 IS NULL", 0, "IS NULL is for the name"),
    ("a LIKE 'b' ESCAPE 'xx'", 18, "one character"),
    ("a LIKE 'b' ESCAPE ''", 18, "one character"),
    ("a LIKE 'b!' ESCAPE '!'", 7, "ends with its escape character"),
    ("a BETWEEN 'x' AND 'y'", 10, "BETWEEN is for numbers, and this is a string"),
    ("a BETWEEN 1", 11, "more is needed: AND"),
    ("name > 'x'", 7, "> compares numbers, and this is a string"),
    ("flag <= TRUE", 8, "<= compares numbers, and this is a condition"),
    ("a = b = c", 6, "'=' cannot stand here"),
    ("5", 0, "a condition is needed here, and this is a number"),
    ("a + 1", 0, "a condition is needed"),
    ("a = 1 OR 'x'", 9, "a condition is needed here, and this is a string"),
    ("NOT 5", 4, "a condition is needed"),
    ("a + 'x' = 3", 4, "+ is for numbers, and this is a string"),
    ("-TRUE = a", 1, "- is for numbers"),
    ("9223372036854775808 = a", 0, "does not fit 64 bits"),
    ("a = -9223372036854775809", 5, "does not fit 64 bits"),
    (f"a = {'9' * 5000}", 4, "does not fit 64 bits"),
    (f"a = 0x{'f' * 5000}", 4, "does not fit 64 bits"),
    ("a = 08", 4, "octal"),
    ("a = 1e400", 4, "does not fit a double"),
    ("a = 5AND b = 1", 4, "runs into a word"),
    ("5a = 1", 0, "runs into a word"),
    ("a = 1 -- and a comment", 9, "'and' cannot stand here"),  # JMS has none: - -and
    ("a /* x */ = 1", 3, "cannot stand here"),
    ("true = not", 7, "'not' cannot stand here"),
    ("In = 1", 0, "'In' cannot stand here"),
    ("JMSDestination = 'queue://a'", 0, "not JMSDestination"),
    ("JMSRedelivered", 0, "JMSPriority"),
    ("a = 1 \x00", 6, "has no meaning"),
    ("my-name = 'a' AND b.c = 1", 19, "has no meaning"),
]


@pytest.mark.parametrize(("text", "position", "problem"), INVALID)
def test_an_error_shows_the_place(text: str, position: int, problem: str) -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector(text)
    assert problem in str(caught.value)
    assert caught.value.position == position
    assert position <= len(text)
    line, caret = str(caught.value).split("\n")[1:]
    assert caret.strip() == "^"
    if position < len(text):
        assert line[caret.index("^")] == text[position].replace("\0", " ")


def test_the_caret_of_a_long_selector_stands_in_a_short_line() -> None:
    text = "a = 1 AND " * 500 + "b = = 2 AND\n" + "c = 3 AND " * 500 + "d"
    with pytest.raises(InvalidSelectorError, match=r"at character 5005") as caught:
        Selector(text)
    line, caret = str(caught.value).split("\n")[1:]
    assert len(line) < 140
    assert line[caret.index("^") :].startswith("= 2 AND")


def test_the_caret_stands_in_its_line_of_several() -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector("a = 1\n\tAND b = = 2\nAND c = 3")
    assert str(caught.value).split("\n")[1:] == ["     AND b = = 2", "             ^"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1),
        "(" * 10_000 + "a" + ")" * 10_000,
        "NOT " * (DEEPEST + 1) + "a",
        "- " * 5_000 + "a = 1",
    ],
    ids=["brackets", "many brackets", "NOT", "minus"],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(InvalidSelectorError, match="nested more than 100 deep") as caught:
        Selector(text)
    assert caught.value.position is not None


def test_what_is_too_long_is_refused_unread() -> None:
    with pytest.raises(InvalidSelectorError, match="it has 40000 characters, and 32768 are allowed"):
        Selector("'" * 40_000)
    assert Selector("b OR a = '" + "x" * (LONGEST - 11) + "'").matches({"b": True}.get)


def test_thousands_of_operands_are_no_depth() -> None:
    assert Selector("a" + " + a" * 2_000 + " = 4002 OR a" + " OR a" * 2_000).matches({"a": 2}.get)


def test_the_error_travels_between_processes() -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        Selector("a = = b")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (str(copy), copy.position) == (str(caught.value), 4)


def test_what_a_selector_says_of_itself() -> None:
    selector = Selector("a = 1 AND JMSType LIKE '%a%!%%' ESCAPE '!' OR NOT (b IN ('x', 'y') AND c LIKE '%')")
    assert selector.identifiers == {"a", "JMSType", "b", "c"}
    assert selector.wildcards == 3, "of the LIKE with most of them, and not what is escaped"
    assert repr(Selector("a")) == "Selector('a')"
