"""Remembers the fingerprints that were shown, so that one which no letter has had is noticed when it is typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.letters.states import shared_files

FILE: Final = "seen.ndjson"
_MOST: Final = 10_000  # lines; then it begins anew


class UnknownFingerprintError(JMSError):
    """A fingerprint that no letter that was looked at here has had."""


class SeenFingerprints:
    """The fingerprints that were shown here, each with what failed so."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def remember(self, shown: Mapping[str, str]) -> None:
        """Remember fingerprints and what they mean. Raises ConfigError: the file cannot be written."""
        known = self._read()
        new = [{"seen": name, "what": what} for name, what in shown.items() if name not in known]
        try:
            if len(known) > _MOST:
                self._file.unlink(missing_ok=True)
            if new:
                shared_files.append(self._file, new)
        except OSError as error:
            raise ConfigError(f"the fingerprints that are shown cannot be remembered: {error}") from error

    def find(self, begins: str) -> tuple[str, str]:
        """Return the one that begins so, and what it means.

        Raises:
            UnknownFingerprintError: there is none.
            ConfigError: there are several.
        """
        found = [(name, what) for name, what in self._read().items() if name.startswith(begins.lower())]
        if not found or not begins:
            raise UnknownFingerprintError(
                f"no letter that was looked at here has had the fingerprint {begins!r}: "
                "'redelivery dlq groups QUEUE' lists those of a queue"
            )
        if len(found) > 1:
            raise ConfigError(f"{begins}: the fingerprints of {len(found)} groups begin so: give more of it")
        return found[0]

    def _read(self) -> dict[str, str]:
        """Return those that are remembered; a line that is damaged is left out."""
        try:
            lines = shared_files.read(self._file).splitlines()
        except (OSError, UnicodeDecodeError):
            return {}
        found: dict[str, str] = {}
        for text in lines:
            try:
                line = json.loads(text)
                found[str(line["seen"])] = str(line["what"])
            except (ValueError, KeyError, TypeError):
                continue
        return found
