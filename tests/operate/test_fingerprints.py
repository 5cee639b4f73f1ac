"""Fingerprints of letters with passports and without, and the states and rates of their groups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from packaging.version import InvalidVersion, Version

from redelivery.model.destinations import Queue
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.fingerprints import WAYS, Fingerprints, LetterTraits
from redelivery.operate.letters.folding import LetterFailure, folded
from redelivery.operate.letters.states.resolved import NotResolvedError, ReleaseName, Resolution, Resolutions
from redelivery.operate.letters.states.seen import SeenFingerprints, UnknownFingerprintError

ONE, TWO = "1" * 12, "2" * 12
NOW = datetime.now(UTC)


def letter(text: str, frame: str | None = None, release: str | None = None, kind: str = "ValueError") -> LetterTraits:
    return LetterTraits(LetterFailure(Queue("orders"), kind, folded(text)), frame, release)


def test_a_fingerprint_is_that_of_the_passport_whatever_the_text_says() -> None:
    same = [letter("order 17 is odd", ONE), letter("order 18 is even", ONE)]
    found = Fingerprints([*same, letter("order 17 is odd", TWO)])
    assert [found.of(each, "fingerprint") for each in same] == [ONE, ONE]
    assert found.members(ONE) == frozenset(same)
    assert found.members(TWO[:4]) == frozenset([letter("order 17 is odd", TWO)])


def test_a_letter_without_a_passport_has_the_fingerprint_of_its_cause() -> None:
    old = letter("order 17 is odd")
    alone = Fingerprints([old])
    assert alone.of(old, "fingerprint") == alone.of(old)


def test_a_letter_without_a_passport_joins_those_that_failed_with_the_same_cause() -> None:
    old, new, other = letter("order 17 is odd"), letter("order 18 is odd", ONE), letter("order 9 is odd", TWO)
    found = Fingerprints([old, new])
    assert found.of(old, "fingerprint") == ONE
    assert found.members(ONE) == frozenset([old, new])
    found = Fingerprints([old, new, other])  # in which of the two places it failed nobody knows
    name = found.of(old, "fingerprint")
    assert name not in (ONE, TWO, found.of(old))
    assert found.members(name) == frozenset([old])


def test_each_way_finds_its_own_members() -> None:
    letters = [
        letter("order 17 is odd", ONE, "shop 2.4"),
        letter("order 18 is odd", TWO, "shop 2.5"),
        letter("bank", ONE, "shop 2.5", "TimeoutError"),
        letter("who knows"),
    ]
    found = Fingerprints(letters)
    for by in WAYS:
        names = {each: found.of(each, by) for each in letters}
        for name in names.values():
            assert found.members(name) == {each for each in letters if names[each] == name}
            assert found.having({name: "x"}) == {"x": found.members(name)}


def test_a_fingerprint_is_known_again_when_one_letter_is_left() -> None:
    both = [letter("customer ada is late"), letter("customer bob is late")]
    name = Fingerprints(both).of(both[0])
    assert Fingerprints(both[1:]).having({name: "x"}) == {"x": frozenset(both[1:])}
    assert Fingerprints([letter("customer bob is blocked")]).having({name: "x"}) == {}


VERSIONS = (
    *(
        "1.0.dev1",
        "1.0a1.dev1",
        "1.0a1",
        "1.0a1.post1.dev2",
        "1.0a1.post1",
        "1.0-alpha2",
        "1.0b1",
        "1.0_beta.2",
        "1.0rc1",
    ),
    *("1.0c2", "1.0pre3", "1.0", "1.0+local", "1.0+local.2", "1.0+local.10", "1.0+5", "1.0.post1.dev1", "1.0.post1"),
    *("1.0-2", "1.0.r3", "v1.1", "1.1.0", "1.1.0.1", "1.2", "1.10", "2.4", "2.4.0.0", "2.4.1", "2.10", "2026.11.27"),
    *("1!0.1", "1!0.1.dev0", "2.4-SNAPSHOT", "2.4.x", "latest", "a1b2c3d", "2.4.1-rc1", "2", "02.04", "2.4+", "2..4"),
)


@pytest.mark.parametrize("one", VERSIONS)
def test_releases_are_ordered_as_packaging_orders_them(one: str) -> None:
    for other in VERSIONS:
        try:
            expected: bool | None = Version(one) >= Version(other)
        except InvalidVersion:
            expected = None
        assert ReleaseName("", one).is_from(ReleaseName("", other)) is expected, other


def test_a_release_may_name_its_application() -> None:
    shop = ReleaseName.read("web shop 2.4")
    assert (shop.application, shop.version) == ("web shop", "2.4")
    assert shop.is_from(ReleaseName.read("2.4")) is True
    assert shop.is_from(ReleaseName.read("web shop 2.5")) is False
    assert shop.is_from(ReleaseName.read("bank 2.3")) is None
    assert ReleaseName("", "9" * 5000).is_from(shop) is None


@pytest.mark.parametrize(
    ("release", "minutes", "broken"),
    [
        ("shop 2.4", -5, True),  # it was to be repaired in it
        ("shop 2.10", -5, True),
        ("shop 2.3", 5, False),  # an instance that still has the old one
        ("shop nightly", 5, True),
        ("shop nightly", -5, False),
        (None, 5, True),
        (None, -5, False),
        (None, None, False),
    ],
    ids=str,
)
def test_what_comes_again(release: str | None, minutes: int | None, broken: bool) -> None:
    at = None if minutes is None else NOW + timedelta(minutes=minutes)
    assert Resolution(ONE, "2.4", NOW, "ann@ops").is_broken_by(release, at) is broken


def test_what_is_resolved_is_kept_and_taken_back(tmp_path: Path) -> None:
    kept = Resolutions(tmp_path / "new" / "folder")
    assert kept.read() == {}
    kept.resolve(ONE, "2.4", "ValueError: order #")
    kept.resolve(TWO, " shop   2.4 ")
    kept.resolve(ONE, "2.5")
    assert [(name, each.release) for name, each in kept.read().items()] == [(TWO, "shop 2.4"), (ONE, "2.5")]
    assert kept.file.stat().st_mode & 0o777 == 0o600
    assert kept.reopen("2").fingerprint == TWO
    assert list(kept.read()) == [ONE]
    for name in (TWO, "", "3"):
        with pytest.raises(NotResolvedError, match="is not resolved"):
            kept.reopen(name)
    kept.resolve("1" * 11 + "2", "2.4")
    with pytest.raises(ConfigError, match="2 that are resolved begin so"):
        kept.reopen("11")
    for name, release in (("1" * 11, "2.4"), ("x" * 12, "2.4"), (ONE, " "), (ONE, "2\x1b[m"), (ONE, "2" * 500)):
        with pytest.raises(ConfigError):
            kept.resolve(name, release)


@pytest.mark.parametrize(
    "damage",
    ['{"resolved": "1', "[]", "5", "{}", '{"resolved": 1, "in": "2", "when": "x", "who": "", "what": ""}', "\x00"],
)
def test_a_damaged_file_is_named_and_nothing_is_written_to_it(tmp_path: Path, damage: str) -> None:
    kept = Resolutions(tmp_path)
    kept.resolve(ONE, "2.4")
    with kept.file.open("a") as file:
        file.write(damage)
    before = kept.file.read_bytes()
    for call in (kept.read, lambda: kept.resolve(TWO, "2.4"), lambda: kept.reopen(ONE)):
        with pytest.raises(ConfigError, match=r"resolved\.ndjson, line 2: this is not a line of it"):
            call()
    assert kept.file.read_bytes() == before


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    names = [f"{number:012x}" for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: Resolutions(tmp_path).resolve(name, "2.4", "x" * 3000), names))
    assert sorted(Resolutions(tmp_path).read()) == names


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="what is resolved cannot be"):
        Resolutions(tmp_path / "file").resolve(ONE, "2.4")
    with pytest.raises(ConfigError, match="cannot be remembered"):
        SeenFingerprints(tmp_path / "file").remember({ONE: "x"})


def test_the_fingerprints_that_were_shown_are_found_by_their_first_digits(tmp_path: Path) -> None:
    seen = SeenFingerprints(tmp_path)
    seen.remember({ONE: "ValueError", TWO: "KeyError"})
    with (tmp_path / "seen.ndjson").open("a") as file:
        file.write("cut sho")
    assert seen.find("1") == (ONE, "ValueError")
    seen.remember({"1" * 11 + "a": "x"})
    assert seen.find("2" * 12) == (TWO, "KeyError")
    with pytest.raises(ConfigError, match="2 groups begin so"):
        seen.find("11")
    for unknown in ("3", "", "1" * 13):
        with pytest.raises(UnknownFingerprintError, match="no letter that was looked at here"):
            seen.find(unknown)
