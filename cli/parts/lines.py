"""Letters as lines of JSON: what ``export`` writes and ``import`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, Any

from redelivery import Message
from redelivery.cli.parts.shown import as_json
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.records import from_record, to_record


def write(letters: Iterable[Message], file: IO[str]) -> int:
    """Write each as a line; how many they are."""
    count = 0
    for letter in letters:
        file.write(as_json(to_record(letter)) + "\n")
        count += 1
    return count


def read(line: str, number: int) -> tuple[dict[str, Any], Message]:
    """The record in a line, and its message. Raises ConfigError: it was not written by `write`."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"line {number} is not JSON, as export writes it: {error}") from error
    try:
        return record, from_record(record)
    except (ValueError, ConfigError) as error:
        raise ConfigError(f"line {number}: {error}") from error
