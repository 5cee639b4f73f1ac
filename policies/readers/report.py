"""Collects what a reader finds wrong, so that one error names all of it, and resolves placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.places import Place, Problem, Unread

T = TypeVar("T")

_PLACEHOLDER: Final = re.compile(r"\$\{([^${}:]*)(?::([^${}]*))?\}")
_LONGEST: Final = 200  # characters of a value that an error shows
NO_PROPERTIES: Final[Mapping[str, str]] = {}


class Report:
    """What a reader could not understand (``problems``), and what it skipped (``unread``).

    ``properties``: the values of placeholders such as ``${activemq.retries}`` that the caller gives; no others are
    looked up anywhere. ``${name:default}`` has its default without one.
    """

    def __init__(self, properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        self.problems: list[Problem] = []
        self.unread: list[Unread] = []
        self._properties = properties

    def problem(self, text: str, place: Place) -> None:
        """Something is wrong there."""
        if len(text) > _LONGEST:
            text = text[:_LONGEST] + "…"
        self.problems.append(Problem(text, place))

    def skip(self, name: str, place: Place) -> None:
        """A section says nothing about redelivery or dead letters."""
        self.unread.append(Unread(name, place))

    def read(self, reader: Callable[[str, str], T], name: str, text: str, place: Place) -> T | None:
        """The value of a setting; None where it is not one, which is a problem then."""
        try:
            return reader(name, self.resolved(text))
        except ConfigError as error:
            self.problem(str(error), place)
            return None

    def checked(self, make: Callable[[], T], place: Place) -> T | None:
        """What ``make`` gives; None where its values do not go together, which is a problem then."""
        try:
            return make()
        except ConfigError as error:
            self.problem(str(error), place)
            return None

    def resolved(self, text: str) -> str:
        """The str with its placeholders replaced.

        Raises:
            ConfigError: one has no value.
        """

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name in self._properties:
                return self._properties[name]
            if default is not None:
                return default
            raise ConfigError(f"the placeholder ${{{name}}} has no value: pass properties={{{name!r}: …}}")

        return _PLACEHOLDER.sub(value, text)

    def skip_unless_known(
        self, name: str, place: Place, concerns: re.Pattern[str], known: Collection[str], hint: Callable[[str], str]
    ) -> None:
        """A name that is not read: a problem where it looks as if it concerned redelivery, and else skipped."""
        if name not in known and concerns.search(name):
            self.problem(hint(name), place)
