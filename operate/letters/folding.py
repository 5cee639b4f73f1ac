"""Finds the text that all letters that failed alike share: not its numbers, quoted values and names.

Numbers and quoted values are recognized in each text by itself. A name is recognized by the other texts: where two that
are equal in all other words differ in one place, and this is where a name can be, it is a name in both. So which
texts are alike depends on the letters that are looked at together: see `Folding`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, TypeAlias

from redelivery.model.content.dead_letters import DeadLetterInfo
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message

By: TypeAlias = Literal["cause", "type", "origin"]

_LENGTH: Final = 12  # hexadecimal digits of a fingerprint
_READ: Final = 2000  # characters of a cause: a stranger's may be of any length
_WORDS: Final = 24  # that are compared one by one; the rest is one more
_TEXTS: Final = 5_000  # different ones by which names are recognized
_NAME: Final = 3  # words of a name, at most
_SHORT: Final = 10  # words, at most, where each of two names may have several words
_FEW: Final = 8  # different texts that it takes where hardly another word says what has failed
_TYPE: Final = re.compile(r"([A-Za-z_][\w.$]*)(?::\s*|$)")
_NESTED: Final = re.compile(r"\{[^{}]*\}")
_ALL: Final = (  # what differs from letter to letter, and what stands for it
    (re.compile(r"(?<!\w)[bruBRU]{0,2}'(?:\\.|[^'\\]|(?<=\w)'(?=\w))*'(?!\w)"), "''"),
    (re.compile(r"(?<!\w)[bruBRU]{0,2}\"(?:\\.|[^\"\\])*\""), "''"),
    (re.compile(r"`[^`]*`|“[^”]*”|„[^“”]*[“”]|«[^»]*»|\u2018(?:[^\u2019]|\u2019(?=\w))*\u2019"), "''"),
    (re.compile(r"\b\w[\w+.-]*://\S+|\b[\w.+-]+@[\w-]+\.[\w.-]+"), "#"),
    (re.compile(r"(?<![\w-])[-+]?[\w-]*\d[\w-]*(?:[.:,/+]+[\w-]*\d[\w-]*)*"), "#"),
    (re.compile(r"(?:#|'')(?:,? (?:#|''))+|#(?:[.:,/+-]#)+"), "#"),
)
# These are no names, and no part of one, unless other texts have a name in their place.
_PLAIN_WORDS: Final = """
a an and are as at be been but by can cannot could did do does for from had has have if in into is it its may
must no not of off on or out over should since so than that the their then there this to too under until was
were when where which while who will with within without would est ist nicht pas und {} - – : = ->
"""  # noqa: RUF001  # as others write it
_PLAIN: Final = frozenset(_PLAIN_WORDS.split())
_FOLDED: Final = frozenset(("#", "''", "{}"))
# After these there is what is the matter, not who.
_STATES_WORDS: Final = "are be been being became becomes cannot is isn't not remains was were wasn't est ist"
_STATES: Final = frozenset(_STATES_WORDS.split())
_NO_NAMES: Final = ("ed", "ing", "able", "ible")


@dataclass(frozen=True, slots=True)
class LetterFailure:
    """The reason why a letter is there: ``origin``; its exception's ``kind``, or ""; ``text`` without what differs."""

    origin: Destination | None
    kind: str
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """The words that are compared."""
        words = self.text.split()
        return (*words[:_WORDS], " ".join(words[_WORDS:])) if len(words) > _WORDS else tuple(words)


def failure(message: Message) -> LetterFailure:
    """The failure that a letter tells of."""
    return failure_of(message.dead_letter)


def failure_of(letter: DeadLetterInfo | None) -> LetterFailure:
    """The failure of which a letter says this."""
    if letter is None:
        return LetterFailure(None, "", "")
    said, kind = (letter.exception or letter.cause or "")[:_READ], ""
    if letter.exception and (found := _TYPE.match(said)):
        said, kind = said[found.end() :], found[1]
    return LetterFailure(letter.origin, kind, folded(said))


def folded(text: str) -> str:
    """The text without numbers, ids and quoted values."""
    while text != (outer := _NESTED.sub("\0", text)):
        text = outer
    text = text.replace("\0", "{}")
    for pattern, instead in _ALL:
        text = pattern.sub(instead, text)
    return " ".join(text.split())


def literal(found: LetterFailure) -> str:
    """The fingerprint of a failure with the names that it has."""
    return _hashed(found, " ".join(found.words))


class Folding:
    """The fingerprints of failures that are looked at together."""

    def __init__(self, failures: Iterable[LetterFailure]) -> None:
        self._buckets: dict[tuple[Destination | None, str], dict[LetterFailure, None]] = {}
        for each in failures:
            self._buckets.setdefault((each.origin, each.kind), {})[each] = None
        self._found: dict[LetterFailure, str] = {}
        for alike in self._buckets.values():
            self._found |= _fold(list(alike))

    def fingerprint(self, found: LetterFailure, by: By = "cause") -> str:
        """The same of those that failed alike: by their exceptions' text, by its type, or where they come from."""
        match by:
            case "type":
                return digest(f"type\n{found.kind or found.text}")
            case "origin":
                return digest(f"origin\n{found.origin}")
        return self._found.get(found) or literal(found)

    def members(self, fingerprint: str) -> frozenset[LetterFailure]:
        """The failures of this fingerprint, or of one that begins so, by whatever it was grouped.

        Also where it was made when there were others, by which more words were names.
        """
        wanted = fingerprint.lower()
        known = list(self._found)
        ways = (self.fingerprint, literal, lambda each: self.fingerprint(each, "type"))
        for way in (*ways, lambda each: self.fingerprint(each, "origin")):
            if found := frozenset(each for each in known if way(each).startswith(wanted)):
                return found
        if len(wanted) < _LENGTH:
            return frozenset()
        return frozenset(each for each in known if any(other == wanted for other in _others(each)))

    def others(self, found: LetterFailure) -> Iterator[str]:
        """The fingerprints that it may have had beside others; none where such are here, and have shown its names."""
        alone = literal(found)
        if self._found.get(found, alone) == alone:
            yield alone
            yield from _others(found)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to see names in what a letter says. ``sure``: these words can be names. ``texts``: how many it takes."""

    text: str
    names: int
    sure: bool
    texts: int


def _fold(failures: Sequence[LetterFailure]) -> dict[LetterFailure, str]:
    if len(failures) == 1:
        return {failures[0]: literal(failures[0])}
    counted: Counter[int] = Counter()
    for each in failures[:_TEXTS]:
        counted.update(hash(way.text) for way in _ways(each.words) if way.sure)
    return {each: _hashed(each, _best(each, counted)) for each in failures}


def _best(found: LetterFailure, counted: Counter[int]) -> str:
    """Fold one name, if that makes it like others; two, if that makes it like three times as many."""
    best: dict[int, tuple[int, int, str]] = {}
    for way in _ways(found.words):
        count = counted[hash(way.text)]
        if count >= way.texts:
            best[way.names] = max(best.get(way.names, (0, 0, "")), (count, len(way.text.split()), way.text))
    one, two = best.get(1), best.get(2)
    if two is not None and (one is None or two[0] > 3 * one[0]):
        return two[2]
    return " ".join(found.words) if one is None else one[2]


def _ways(words: tuple[str, ...]) -> Iterator[_Way]:
    says = [each not in _FOLDED for each in words]
    said = sum(says)
    spans = [
        (at, end)
        for at in range(len(words))
        if at == 0 or words[at - 1].lower() not in _STATES
        for end in range(at + 1, min(at + _NAME, len(words)) + 1)
    ]
    for at, end in spans:
        left = said - sum(says[at:end])
        if left >= (end - at) - 1:
            text = " ".join((*words[:at], "*", *words[end:]))
            yield _Way(text, 1, all(map(_is_name, words[at:end])), 2 if left >= 2 else _FEW)
    spans = [(at, end) for at, end in spans if _PLAIN.isdisjoint(map(str.lower, words[at:end]))]
    if len(words) > _SHORT:
        spans = [(at, end) for at, end in spans if end == at + 1]
    for (at, end), (second, last) in combinations(spans, 2):
        if second > end and said - sum(says[at:end]) - sum(says[second:last]) >= 3:
            text = " ".join((*words[:at], "*", *words[end:second], "*", *words[last:]))
            yield _Way(text, 2, all(map(_is_name, (*words[at:end], *words[second:last]))), 2)


def _others(found: LetterFailure) -> Iterator[str]:
    return (_hashed(found, way.text) for way in _ways(found.words))


def _is_name(word: str) -> bool:
    word = word.rstrip(".,:;!?)").lower()
    return word not in _FOLDED and word not in _PLAIN and not word.endswith(_NO_NAMES)


def _hashed(found: LetterFailure, text: str) -> str:
    return digest(f"{found.origin}\n{found.kind}\n{text}")


def digest(text: str) -> str:
    """Return the fingerprint of what letters have in common."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]
