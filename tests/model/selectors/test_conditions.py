"""What a selector says of a message: three values, types, and the operators (JMS 3.1 §3.8.1.2 and §3.8.1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

import pytest

from redelivery.model.selectors.logic import Operand
from redelivery.model.selectors.selector import Selector

MESSAGE: Final[Mapping[str, Operand]] = {
    "yes": True,
    "no": False,
    "five": 5,
    "half": 0.5,
    "word": "lose",
    "two": "2",
    "phone": "12993",
    "code": "_50%",
    "empty": "",
    "blob": b"\x01",
    "JMSPriority": 7,
    "JMSXGroupID": "g",
}
UNKNOWN: Final = "unknown"


def truth(condition: str, message: Mapping[str, Operand] = MESSAGE) -> bool | str:
    """The value of a condition, by what itself, its negation and (so that it is no error) its being NULL are."""
    is_true = Selector(condition).matches(message.get)
    is_false = Selector(f"NOT ({condition})").matches(message.get)
    assert not (is_true and is_false)
    return True if is_true else False if is_false else UNKNOWN


TABLE = {True: "yes", False: "no", UNKNOWN: "missing"}


@pytest.mark.parametrize(("left", "right"), list(product(TABLE, repeat=2)))
def test_the_tables_of_and_or_and_not(left: bool | str, right: bool | str) -> None:
    both = {left, right}
    conjunction = False if False in both else UNKNOWN if UNKNOWN in both else True
    disjunction = True if True in both else UNKNOWN if UNKNOWN in both else False
    a, b = TABLE[left], TABLE[right]
    assert truth(f"{a} AND {b}") == conjunction
    assert truth(f"{a} OR {b}") == disjunction
    assert truth(f"{a} AND {b} AND yes") == conjunction
    assert truth(f"no OR {a} OR {b}") == disjunction
    assert truth(f"NOT {a}") == {True: False, False: True, UNKNOWN: UNKNOWN}[left]


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        # precedence: NOT before AND before OR; * and / before + and -; unary before all
        ("yes OR yes AND no", True),
        ("(yes OR yes) AND no", False),
        ("NOT no AND no", False),
        ("NOT (no AND no)", True),
        ("NOT five = 6", True),
        ("2 + 3 * 4 = 14 AND (2 + 3) * 4 = 20 AND 20 - 4 - 3 = 13 AND 24 / 4 / 2 = 3", True),
        ("-five + 6 = 1 AND - -five = +5 AND 2 - -3 = five", True),
        # like types
        ("five = 5 AND five <> 6 AND five > 4 AND five >= 5 AND five < 6 AND five <= 5", True),
        ("five > 5", False),
        ("five = 5.0 AND half = 5E-1 AND half < 1", True),
        ("word = 'lose' AND word <> 'Lose'", True),
        ("yes = TRUE AND no <> TRUE AND yes <> no", True),
        ("(five = 5) = (word = 'lose')", True),
        ("empty = ''", True),
        # unlike types: false, also of <>; names are case-sensitive
        ("two = 2", False),
        ("two <> 2", False),
        ("two > 1", False),
        ("1 < two", False),
        ("word > five", False),
        ("word < two", False),
        ("yes = 1", False),
        ("yes = 'true'", False),
        ("yes > no", False),
        ("five = yes", False),
        ("blob = 'x'", False),
        ("1 = 'a'", False),
        ("'a' = 'a' AND 1 = 1 AND TRUE", True),
        ("Five = 5", UNKNOWN),
        # NULL
        ("missing = 5", UNKNOWN),
        ("missing <> 5", UNKNOWN),
        ("5 > missing", UNKNOWN),
        ("missing = missing", UNKNOWN),
        ("missing + 1 = 1", UNKNOWN),
        ("missing", UNKNOWN),
        ("missing IS NULL AND five IS NOT NULL AND empty IS NOT NULL AND blob IS NOT NULL", True),
        ("missing IS NOT NULL", False),
        ("five IS NULL", False),
        # a name that is no boolean is no condition
        ("word", UNKNOWN),
        ("five", UNKNOWN),
        ("five OR yes", True),
        # BETWEEN is >= AND <=, and NOT BETWEEN is < OR >
        ("five BETWEEN 5 AND 5 AND five BETWEEN 4.5 AND 6", True),
        ("five BETWEEN 6 AND 4", False),
        ("five NOT BETWEEN 6 AND 7 AND five NOT BETWEEN 6 AND 4", True),
        ("five NOT BETWEEN 5 AND 7", False),
        ("5 BETWEEN half AND five + 1", True),
        ("missing BETWEEN 1 AND 2", UNKNOWN),
        ("five BETWEEN 6 AND missing", False),
        ("five BETWEEN 4 AND missing", UNKNOWN),
        ("five NOT BETWEEN 6 AND missing", True),
        ("two BETWEEN 1 AND 3", False),
        ("two NOT BETWEEN 1 AND 3", False),
        # IN
        ("word IN ('win', 'lose')", True),
        ("word IN ('Lose', 'los')", False),
        ("word NOT IN ('win')", True),
        ("word NOT IN ('win', 'lose')", False),
        ("missing IN ('win')", UNKNOWN),
        ("missing NOT IN ('win')", UNKNOWN),
        ("five IN ('5')", False),
        ("five NOT IN ('5')", True),  # as NOT (five = '5')
        # LIKE: the specification's examples
        ("phone LIKE '12%3'", True),
        ("phone NOT LIKE '12%3'", False),
        ("phone LIKE '1234'", False),
        ("word LIKE 'l_se'", True),
        ("word LIKE 'l_s'", False),
        ("code LIKE '\\_%' ESCAPE '\\'", True),
        ("word LIKE '\\_%' ESCAPE '\\'", False),
        ("missing LIKE '%'", UNKNOWN),
        ("missing NOT LIKE '%'", UNKNOWN),
        ("five LIKE '5'", False),
        ("five NOT LIKE '5'", True),
        # headers
        ("JMSPriority = 7 AND JMSXGroupID = 'g'", True),
        ("JMSType IS NULL", True),
    ],
)
def test_a_condition(condition: str, value: bool | str) -> None:
    assert truth(condition) == value


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("two > 1 AND two = 2 AND 2 = two AND two <> 3 AND two < 2.5", True),
        ("two BETWEEN 1 AND 3", True),
        ("two * 3 + 1 = 7 AND -two = 0 - 2", True),
        ("two NOT BETWEEN 1 AND 3", False),
        ("two = '2'", True),
        ("flag = TRUE AND FALSE <> flag", True),
        ("price = 2.5 AND price > 2 AND price > two", False),  # the last compares two strings
        ("two BETWEEN 1 AND 3 AND price BETWEEN 2.0 AND 3.0", True),
        ("price BETWEEN two AND two + 1.0", False),  # is price >= two AND price <= …: the first compares two strings
        ("2 BETWEEN price AND 3", False),  # 2.5 is not a whole number
        ("price = 2", False),  # 2.5 is not a whole number
        ("price > 2.0", True),
        ("word > 1", False),
        ("word <> 1", False),
        ("word + 1 = 2", UNKNOWN),
        ("word = TRUE", False),
        ("flag", UNKNOWN),
        ("missing > 1", UNKNOWN),
        ("long > 1", False),
    ],
)
def test_strings_that_look_like_what_they_are_compared_with(condition: str, value: bool | str) -> None:
    """ActiveMQ Classic's reading of what comes over STOMP, where a property is always a string."""
    message = {"two": "2", "flag": "True", "price": "2.5", "word": "lose", "long": "1" * 5000}
    assert Selector(condition, lenient=True).matches(message.get) == (value is True)
    assert Selector(f"NOT ({condition})", lenient=True).matches(message.get) == (value is False)
