"""Each public name says whose rules it follows, or that it is this library's own."""

from __future__ import annotations

from tests.reference.names import PAGES, names_of
from tests.reference.pages import pages, shown
from tests.reference.sources import OWN, SOURCES, is_decided

HEADINGS = [each.heading for page in shown() for each in names_of(page)]


def test_each_public_name_has_its_source() -> None:
    assert [each for each in HEADINGS if not is_decided(each)] == []
    assert not is_decided("Invented")


def test_no_source_is_of_a_name_that_is_gone() -> None:
    if len(shown()) == len(PAGES):
        assert sorted((SOURCES.keys() | OWN) - set(HEADINGS)) == []
    assert not SOURCES.keys() & OWN


def test_the_reference_shows_them() -> None:
    text = "\n".join(pages().values())
    for name, source in SOURCES.items():
        if name in HEADINGS:
            assert f"Follows: {source}." in text, name
