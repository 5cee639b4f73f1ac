"""The runbook names every error that the source and the sink raise, and nothing that they do not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.spark.error_texts import error_texts

RUNBOOK: Final = Path(__file__).resolve().parents[2] / "docs" / "spark" / "runbook.md"
TEXTS: Final = error_texts()


def phrases() -> list[str]:
    """What stands in code in the first column of a row."""
    rows = [line.split(" | ")[0] for line in RUNBOOK.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return [each for row in rows for each in re.findall(r"`([^`]+)`", row)]


def names(phrase: str, text: str) -> bool:
    """Check whether it is a part of the text; … is anything."""
    return re.search(".*?".join(map(re.escape, phrase.split("…"))), text, re.DOTALL) is not None


def test_each_error_is_in_the_runbook() -> None:
    missing = [texts for texts in TEXTS.values() if not any(names(each, text) for each in phrases() for text in texts)]
    assert missing == []


def test_each_text_of_the_runbook_is_an_error() -> None:
    known = [text for texts in TEXTS.values() for text in texts]
    assert [phrase for phrase in phrases() if not any(names(phrase, text) for text in known)] == []


def test_the_code_is_read() -> None:
    """Else an error that nobody finds would be missed."""
    assert len(TEXTS) > 90
    assert any("its checksum does not agree" in text for texts in TEXTS.values() for text in texts)
