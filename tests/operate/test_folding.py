"""Which letters failed alike: numbers, quoted values and names do not count, what is the matter does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from time import perf_counter

import pytest

from redelivery.model.destinations import Queue
from redelivery.operate.letters.folding import Folding, LetterFailure, folded, literal

ORDERS = Queue("orders")


def failures(texts: Iterable[str], kind: str = "ValueError") -> list[LetterFailure]:
    return [LetterFailure(ORDERS, kind, folded(each)) for each in texts]


def sizes(found: list[LetterFailure]) -> list[int]:
    folding = Folding(found)
    return sorted(Counter(map(folding.fingerprint, found)).values(), reverse=True)


@pytest.mark.parametrize(
    "texts",
    [
        ("order 17 has no 'price'", "order 18 has no 'size'"),
        ("can't read 'it's'", 'can\'t read "x"', "can't read `y`", "can't read “z”", "can't read «a»"),
        ("no key b'\\x00'", "no key 'O\\'Brien'"),
        ("row {'a': {'b': 1}} is bad", "row {} is bad"),
        ("at 10.0.0.1:5672 since 2026-11-26T23:00:00.5Z", "at 10.0.0.22:61616 since 2025-01-01"),
        ("-5.2e10 is too small", "17 is too small"),
        ("items [1, 2, 3] are gone", "items [4] are gone"),
        ("ID:host-1-2:3:4 is bad", "ID:other-9-2:3:4 is bad"),
        ("GET https://a.example/x?y failed", "GET http://b.example failed"),
        ("mail to ada@example.org bounced", "mail to b.c@x.example bounced"),
        ("session 0x7f3a is gone", "session deadbeef01 is gone"),
    ],
    ids=lambda texts: texts[0],
)
def test_numbers_and_quoted_values_do_not_count(texts: tuple[str, ...]) -> None:
    assert sizes(failures(texts)) == [len(texts)]
    assert len(set(map(literal, failures(texts)))) == 1  # each by itself


NAMES = ("ada", "Bob", "eve", "fred", "Ada Lovelace", "Jean-Luc de Picard", "Zoë", "O'Brien", "17", "'quoted'")


@pytest.mark.parametrize(
    "text",
    [
        "customer {} is blocked since 2026-11-26",
        "no stock for {} in Berlin",
        "{} is blocked",
        "unknown user {}",
        "could not charge {}: card refused",
        "customer={} has no credit",
    ],
)
def test_names_do_not_count(text: str) -> None:
    names = NAMES if "=" not in text else NAMES[:4]
    assert sizes(failures(text.format(each) for each in names)) == [len(names)]


def test_two_names_in_a_text_do_not_count() -> None:
    people = [f"{first}{last}" for first in "abcdefgh" for last in ("nn", "mm", "ll")]
    texts = [f"customer {one} owes supplier {two} 5 EUR" for one, two in zip(people, people[7:], strict=False)]
    assert sizes(failures(texts)) == [len(texts)]


@pytest.mark.parametrize(
    "texts",
    [
        ("order 1 is odd", "order 1 is even"),
        ("order 1 was refused", "order 1 was lost"),
        ("Connection refused by peer", "Connection reset by peer"),
        ("bank", "shop"),
        ("bank unreachable", "shop closed"),
        ("customer ada is blocked", "customer ada has no address"),
        ("order 1 not found", "order 1 not paid"),
        ("no price", "no size"),
    ],
    ids=str,
)
def test_what_is_the_matter_counts(texts: tuple[str, str]) -> None:
    assert sizes(failures(texts * 3)) == [3, 3]


def test_origin_and_type_count() -> None:
    found = [*failures(["customer ada is late"]), *failures(["customer bob is late"], "KeyError")]
    assert sizes([*found, LetterFailure(Queue("bills"), "ValueError", "customer eve is late")]) == [1, 1, 1]


def test_five_thousand_letters_of_four_causes_are_four_groups() -> None:
    chance = random.Random(7)  # noqa: S311  # a test's

    def name() -> str:
        return "".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(chance.randint(3, 9)))

    texts = []
    for number in range(5000):
        who = name() if number % 3 else f"{name().title()} {name().title()}"
        texts.append(
            (
                f"customer {who} is blocked since 2026-11-{number % 28:02d}",
                f"order {number} has no '{who}'",
                f"no stock for {who} in {name().title()}",
                f"the bank of {who} does not answer within {number} s",
            )[number % 4]
        )
    began = perf_counter()
    assert sizes(failures(texts)) == [1250] * 4
    assert perf_counter() - began < 20  # about 2


def test_a_long_hostile_text_takes_no_time() -> None:
    texts = ["E" * 2000, "-" * 1999 + "1", "'" * 2000, "a." * 1000, "{" * 2000, "a " * 1000, "(" * 1000 + "\\'" * 500]
    began = perf_counter()
    sizes(failures(texts * 2))
    assert perf_counter() - began < 5


def test_a_group_is_found_again_when_few_of_it_are_left() -> None:
    found = failures(["customer ada is late", "customer bob is late", "customer ada is blocked", "bank"])
    shown = Folding(found).fingerprint(found[0])
    assert Folding(found).members(shown) == frozenset(found[:2])
    assert Folding(found[1:]).members(shown) == frozenset([found[1]])
    assert Folding(found[2:]).members(shown) == frozenset()
    assert Folding(found).members(shown[:6]) == frozenset(found[:2])
    assert Folding(found).members(literal(found[0])) == frozenset([found[0]])
    for by in ("type", "origin"):
        assert Folding(found).members(Folding(found).fingerprint(found[0], by)) == frozenset(found)
