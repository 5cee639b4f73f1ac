"""The options in docs/spark/options.md are those that parsing knows; `make check` compares the page."""

from __future__ import annotations

from tests.spark.option_page import tables

from redelivery.spark.options.table import OPTIONS


def test_every_option_stands_in_the_tables_with_its_default_and_meaning() -> None:
    text = tables()
    for option in OPTIONS:
        rows = [line for line in text.splitlines() if line.startswith(f"| `{option.name}`")]
        assert any(option.meaning in row for row in rows), option.name
        assert option.default is None or any(f"| `{option.default}` |" in row for row in rows), option.name
