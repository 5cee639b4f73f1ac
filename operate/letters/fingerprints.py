"""The fingerprints of letters: what those of a group have in common, whichever way they are grouped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from redelivery.model.content.dead_letters import DeadLetterInfo
from redelivery.model.messages import Message
from redelivery.operate.letters.folding import Folding, LetterFailure, digest, failure_of

By: TypeAlias = Literal["cause", "type", "origin", "fingerprint", "release"]
T = TypeVar("T")
WAYS: Final[tuple[By, ...]] = get_args(By)


@dataclass(frozen=True, slots=True)
class LetterTraits:
    """The traits by which a letter is grouped.

    ``frame``: the fingerprint in its passport; ``release``: its application there.
    """

    failure: LetterFailure
    frame: str | None = None
    release: str | None = None


def traits(letter: Message) -> LetterTraits:
    """Return what it is grouped by."""
    return traits_of(letter.dead_letter)


def traits_of(said: DeadLetterInfo | None) -> LetterTraits:
    """Return what a letter that says this is grouped by; reading it takes longer than all else."""
    passport = None if said is None else said.passport
    if passport is None:
        return LetterTraits(failure_of(said))
    return LetterTraits(failure_of(said), passport.fingerprint, passport.application)


class Fingerprints:
    """The fingerprints of letters that are looked at together.

    By ``fingerprint`` it is that of the passport: of the exception's class and the application's innermost frame. A
    letter without one is in the group of those that failed with the same cause, where these all have the same; else it
    has the fingerprint of its cause, as `Folding` finds it.
    """

    def __init__(self, letters: Iterable[LetterTraits]) -> None:
        self._known = tuple(dict.fromkeys(letters))
        self._folding = Folding(each.failure for each in self._known)
        self._frames: dict[str, set[str]] = {}
        for each in self._known:
            if each.frame is not None:
                self._frames.setdefault(self._folding.fingerprint(each.failure), set()).add(each.frame)

    def of(self, letter: LetterTraits, by: By = "cause") -> str:
        """The same of letters that belong together."""
        if by == "release":
            return digest(f"release\n{letter.release}")
        if by != "fingerprint":
            return self._folding.fingerprint(letter.failure, by)
        if letter.frame is not None:
            return letter.frame
        cause = self._folding.fingerprint(letter.failure)
        frames = self._frames.get(cause, frozenset((cause,)))
        return min(frames) if len(frames) == 1 else digest(f"no passport\n{cause}")

    def having(self, fingerprints: Mapping[str, T]) -> dict[T, frozenset[LetterTraits]]:
        """The letters of each of these whole fingerprints, whatever they were made by; as `members`."""
        found: dict[T, set[LetterTraits]] = {}
        for each in self._known if fingerprints else ():
            names = {self.of(each, by) for by in WAYS}
            if names.isdisjoint(fingerprints):
                names = set(self._folding.others(each.failure))
            for name in names & fingerprints.keys():
                found.setdefault(fingerprints[name], set()).add(each)
        return {value: frozenset(those) for value, those in found.items()}

    def members(self, fingerprint: str) -> frozenset[LetterTraits]:
        """The letters of this fingerprint, or of one that begins so, by whatever they were grouped; as `Folding`."""
        wanted = fingerprint.lower()
        for by in WAYS:
            if found := frozenset(each for each in self._known if self.of(each, by).startswith(wanted)):
                return found
        failures = self._folding.members(fingerprint)
        return frozenset(each for each in self._known if each.failure in failures)
