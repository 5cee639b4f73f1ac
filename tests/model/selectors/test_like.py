"""LIKE against another way to tell, and in time that grows with what is read, whatever the pattern."""

from __future__ import annotations

import re
from itertools import product
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.run import forms

from redelivery.model.selectors.patterns import LikePattern
from redelivery.model.selectors.selector import Selector


def is_like(text: str, pattern: str, escape: str | None) -> bool:
    """By a table: whether the first i characters are like the first j parts of the pattern."""
    parts: list[tuple[str, bool]] = []  # with whether it is a wildcard
    characters = iter(pattern)
    for character in characters:
        parts.append((next(characters), False) if character == escape else (character, character in "%_"))
    row = [True] + [False] * len(text)
    for part, wild in parts:
        new = [row[0] and wild and part == "%"]
        for index, character in enumerate(text):
            if wild and part == "%":
                new.append(row[index + 1] or new[index])
            else:
                new.append(row[index] and (wild or part == character))
        row = new
    return row[-1]


@settings(max_examples=forms.examples(500), deadline=None)
@given(st.text("ab%_!", max_size=12), st.text("ab%_!", max_size=10), st.sampled_from((None, "!", "a", "%", "_")))
def test_it_is_what_a_table_says(text: str, pattern: str, escape: str | None) -> None:
    try:
        found = LikePattern(pattern, escape)
    except ValueError:
        rest = pattern
        for character in (escape or "",):
            rest = rest.replace(character * 2, "")
        assert rest.endswith(escape or ""), "only what ends with the escape character is refused"
        return
    assert found.matches(text) == is_like(text, pattern, escape)


def words(letters: str, longest: int) -> list[str]:
    return ["".join(each) for size in range(longest + 1) for each in product(letters, repeat=size)]


def test_every_short_pattern_is_what_a_table_says_of_every_short_text() -> None:
    """A place that is missed by one is where a segment with `_` ends with the text: `'abXc' LIKE '%X_%'`."""
    texts = words("ab", 4)
    wrong = [
        (text, pattern)
        for pattern in words("ab%_", 5)
        for found in (LikePattern(pattern, None),)
        for text in texts
        if found.matches(text) != is_like(text, pattern, None)
    ]
    assert wrong == []


def test_every_short_pattern_with_an_escape_is_what_a_table_says() -> None:
    texts = words("a%_!", 3)
    wrong = []
    for pattern in words("a%_!", 4):
        if re.search(r"(?<!!)(!!)*!$", pattern):
            with pytest.raises(ValueError, match="ends with its escape character"):
                LikePattern(pattern, "!")
            continue
        found = LikePattern(pattern, "!")
        wrong += [(text, pattern) for text in texts if found.matches(text) != is_like(text, pattern, "!")]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "pattern", "value"),
    [
        ("abXc", "%X_%", True),
        ("abX", "%X_%", False),
        ("Xc", "%X_%", True),
        ("abXc", "%_c%", True),
        ("abXcYd", "%X_%Y_%", True),
        ("abXcY", "%X_%Y_%", False),
        ("abXc", "a%X_%c", False),
        ("abXcc", "a%X_%c", True),
    ],
)
def test_a_segment_may_end_with_the_text(text: str, pattern: str, value: bool) -> None:
    assert Selector(f"a LIKE '{pattern}'").matches({"a": text}.get) is value
    assert Selector(f"a NOT LIKE '{pattern}'").matches({"a": text}.get) is not value


LONG = "a" * 200_000


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("%" * 10_000 + "b", LONG, False),
        ("%a" * 10_000 + "%b", LONG, False),
        ("%a" * 10_000 + "%", LONG, True),
        ("%" + "a_" * 5_000 + "b%", LONG, False),
        ("%a_a" * 2_000 + "%", LONG, True),
        ("%a_b" * 2_000 + "%", LONG, False),
        ("_" * 10_000 + "%", LONG, True),
        ("%_" * 10_000 + "%", LONG, True),
        ("%" + "ä" * 10_000 + "%", "ä" * 9_999 + "b", False),
        ("%a%" * 10_000, "ab" * 10_000, True),
    ],
    ids=[
        "percents",
        "a at the end",
        "many a",
        "underscores",
        "found",
        "not found",
        "only _",
        "%_",
        "one less",
        "twice",
    ],
)
def test_no_pattern_takes_long(pattern: str, text: str, value: bool) -> None:
    """A backtracking matcher needs hours for each: more than the processor time of this whole file by far."""
    selector = Selector(f"a LIKE '{pattern}'")
    began = process_time()
    assert selector.matches({"a": text}.get) is value
    assert process_time() - began < 5


def test_characters_are_what_python_counts() -> None:
    assert LikePattern("_", None).matches("😀")
    assert LikePattern("a%b", None).matches("a\nb"), "a line end is a character"
    assert not LikePattern("A", None).matches("a")
    assert LikePattern("[a].*", None).matches("[a].*"), "nothing but % and _ is special"
