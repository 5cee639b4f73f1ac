"""Collects what a reader finds wrong, so that one error names all of it, and resolves placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.files.places import Decisive, Place, Places, Problem, Setting, Unread
from redelivery.policies.kinds import Names

T = TypeVar("T")

_PLACEHOLDER: Final = re.compile(r"\$\{([^${}:]*)(?::([^${}]*))?\}")
_NESTED: Final = 10  # placeholders within each other
_LARGEST: Final = 100_000  # length of what placeholders become
_LONGEST: Final = 200  # characters of a value that an error shows
NO_PROPERTIES: Final[Mapping[str, str]] = {}
ANY: Final = re.compile("")


@dataclass(frozen=True, slots=True)
class Given:
    """The settings that a part of a file gives: ``fields`` by our names, and where each stands (``places``)."""

    fields: Mapping[str, Any]
    settings: tuple[Setting, ...]
    places: Places


class ReadingReport:
    """The parts of a file that a reader could not understand (``problems``), and those that it skipped (``unread``).

    ``properties``: the values of placeholders such as ``${activemq.retries}`` that the caller gives; no others are
    looked up anywhere. ``${name:default}`` has its default without one.
    ``part``: which one of several brokers, clients or profiles of the file is meant; None where nothing was said.
    """

    def __init__(self, properties: Mapping[str, str] = NO_PROPERTIES, part: str | None = None) -> None:
        self.problems: list[Problem] = []
        self.unread: list[Unread] = []
        self.part = part
        self.chose = False
        self._properties = properties

    def another(self) -> ReadingReport:
        """Return an empty one for a part of the file; `join` takes what is in it."""
        return ReadingReport(self._properties, self.part)

    def join(self, other: ReadingReport) -> None:
        """Take what another one has collected."""
        self.problems += other.problems
        self.unread += other.unread

    def problem(self, text: str, place: Place) -> None:
        """Note that something is wrong there."""
        if len(text) > _LONGEST:
            text = text[:_LONGEST] + "…"
        self.problems.append(Problem(text, place))

    def skip(
        self, name: str, place: Place, why: str = "", part: Place | None = None, names: tuple[str, ...] = ()
    ) -> None:
        """Note a part that is not read; see `Unread`."""
        self.unread.append(Unread(name, place, why, part, names))

    def skip_decisive(
        self,
        known: Mapping[str, Decisive],
        given: Iterable[tuple[str, str, Place]],
        part: Place | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        """Note those of the settings (name, text and place of each) that decide, and are not read."""
        for name, text, place in given:
            why = known[name].why_of(self._shown(text, place)) if name in known else ""
            if why:
                self.skip(f"{name} = {text}" if text else name, place, why, part, names)

    def chosen(self, found: Sequence[tuple[str, T, Place]], what: str) -> T | None:
        """Return one of several: the only one, or that of the name `part`; else None, which is a problem.

        ``found``: name, value and place of each. ``what``: the word for several of them.
        """
        self.chose = True
        wanted = [value for name, value, _ in found if self.part in (None, name)]
        if len(wanted) == 1:
            return wanted[0]
        if found:
            names = ", ".join(f"{name} ({place.line}:{place.column})" for name, _, place in found)
            one = f"there is no {self.part!r}" if self.part else f"{len(found)} {what}"
            end = "" if self.part else f"; name one: {found[0][2].file}#{found[0][0]}"
            self.problem(f"{one}: {names}{end}", found[0][2])
        return None

    def read(self, reader: Callable[[str, str], T], name: str, text: str, place: Place) -> T | None:
        """Return the value of a setting; None where it is not one, which is a problem then."""
        return self.checked(lambda: reader(name, self.resolved(text)), place)

    def text(self, text: str, place: Place) -> str | None:
        """Return the text of a setting; None where a placeholder in it has no value, which is a problem then."""
        return self.checked(lambda: self.resolved(text), place)

    def checked(self, make: Callable[[], T], place: Place) -> T | None:
        """Return what ``make`` gives; None where its values do not go together, which is a problem then."""
        try:
            return make()
        except ConfigError as error:
            self.problem(str(error), place)
            return None

    def _shown(self, text: str, place: Place) -> str:
        return self.checked(lambda: self.resolved(text, unknown=True), place) or text

    def resolved(self, text: str, *, unknown: bool = False) -> str:
        """Return the str with its placeholders replaced; with ``unknown`` those without a value stay.

        Raises:
            ConfigError: one has no value.
        """

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            for each in (name, *name.split(",")):  # JBoss tries each of several names
                if each in self._properties:
                    return self._properties[each]
            if default is not None:
                return default
            if unknown:
                return found[0]
            raise ConfigError(f"the placeholder ${{{name}}} has no value: pass properties={{{name!r}: …}}")

        for _ in range(_NESTED):  # the innermost first, as a default can have one: ${a:${b:5}}
            before, text = text, _PLACEHOLDER.sub(value, text)
            if text == before and (unknown or not _PLACEHOLDER.search(text)):
                return text
            if text == before or len(text) > _LARGEST:
                break
        raise ConfigError(f"values of placeholders have placeholders, without an end: {before[:_LONGEST]!r}")

    def settings(
        self,
        names: Names,
        given: Iterable[tuple[str, str, Place]],
        title: str,
        *,
        concerns: re.Pattern[str] = ANY,
        known: Collection[str] = (),
        of: str = "",
    ) -> Given:
        """Read the settings that are in ``names``, of name, text and place of each that is ``given``.

        Another one is a problem where it looks as if it concerned redelivery (``concerns``), and is not in ``known``.
        ``title``: the part of the file that gives them; ``of``: what an error calls it, if not so.
        """
        fields: dict[str, Any] = {}
        settings: list[Setting] = []
        places: dict[str, Place] = {}
        for name, text, place in given:
            if name in names:
                field, kind = names[name]
                value = self.read(kind.read, name, text, place)
                if fields.get(field, value) != value:
                    self.problem(f"{name!r} stands twice: here, and at {places[field]}; leave one out", place)
                if value is not None:
                    fields[field], places[field] = value, place
                    settings.append(Setting(name, text, title, place))
            elif name not in known and concerns.search(name):
                self.problem(unknown_option(name, names, of=of or title), place)
        return Given(fields, tuple(settings), places)

    def sections(
        self,
        given: Iterable[tuple[str, Place]],
        known: Collection[str],
        *,
        concerns: re.Pattern[str],
        of: str,
        others: Collection[str] = (),
    ) -> None:
        """Skip the sections that are not in ``known``.

        One that looks as if it concerned redelivery, and is not in ``others``, is a problem.
        """
        for name, place in given:
            if name not in known and name not in others and concerns.search(name):
                self.problem(unknown_option(name, known, of=of), place)
            elif name not in known:
                self.skip(name, place)
