"""The characters of Artemis' patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from redelivery.policies.destinations.patterns import ONE, REST, words_of

LITERAL: Final = "\0"
"""Before a word that is a wildcard in our notation, and none there."""


@dataclass(frozen=True, slots=True)
class Wildcards:
    """The characters of patterns (``wildcard-addresses``): between words, for any further words, for one word."""

    delimiter: str = "."
    any_words: str = "#"
    single_word: str = "*"

    def words(self, match: str) -> tuple[str, ...]:
        """Return the words of a pattern in our notation: ``>`` for any further ones, ``*`` for one.

        ``management#`` is ``management.#`` (Match). What is a wildcard here and none there is kept apart by a NUL.
        """
        if match.endswith(self.any_words) and match != self.any_words:
            match = match.removesuffix(self.any_words).removesuffix(self.delimiter) + self.delimiter + self.any_words
        kinds = {REST: LITERAL + REST, "#": LITERAL + "#", ONE: LITERAL + ONE}
        kinds |= {self.any_words: REST, self.single_word: ONE}
        return words_of(".".join(kinds.get(word, word) for word in match.split(self.delimiter)))


DEFAULT_WILDCARDS: Final = Wildcards()
