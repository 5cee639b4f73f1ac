"""docs/conformance.md written in part: from the record of some pairs, and all else as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.conformance import queues_page
from tests.conformance.pairs import KINDS, ON, TABLED, Kind
from tests.conformance.record import Line
from tests.conformance.table import (
    AREAS_HEAD,
    FEATURES_HEAD,
    NOT_COUNTED,
    NOT_RUN,
    NOTES_HEAD,
    PAIR_HEADS,
    TITLE,
    area_cell,
    by_kind,
    escaped,
    feature_cell,
    features_table,
    note_numbers,
    notes,
    pair_rows,
    passed_with_asyncio,
    stated,
    table,
    without_queues,
)

_NUMBERS: Final = re.compile(r" \[(\d+(?:, \d+)*)\]")  # of notes
_BEFORE_ASYNCIO: Final = 6  # columns


def with_pairs(written: str, record: Sequence[Line]) -> str:
    """The page ``written`` with what that record says of its pairs; its rows and notes are those of `pairs.py`.

    A feature that is new there was not run on the others. Without a record only that is done.
    """
    lines = without_queues(record)
    page, of, run = _Page.read(written), by_kind(lines), {line.kind for line in lines}

    def of_feature(feature: str, kind: Kind) -> str:
        if kind.name in run:
            return feature_cell(feature, kind, of[kind.name])
        old = page.features.get((escaped(feature), kind.name))
        return old or (stated(feature, kind) if feature in kind.cannot else NOT_RUN)

    def of_area(title: str, kind: Kind) -> str:
        if kind.name in run:
            return area_cell(title.rpartition("/")[2].rstrip(")"), of[kind.name])
        return page.areas.get((title, kind.name), NOT_RUN)

    areas = {title: title for title, _ in page.areas}
    text = TITLE + "\n".join([*PAIR_HEADS, *_rows(page, lines)]) + page.between
    text += FEATURES_HEAD + features_table(of_feature) + AREAS_HEAD + table(areas, of_area)
    return text + queues_page.section(record, written) + NOTES_HEAD + notes() + _failures(page.behind, run)


def with_asyncio(written: str, lines: Sequence[Line]) -> str:
    """The page ``written`` with what passed with asyncio on the pairs of that record, and all else as it was."""
    head, rest = written[written.index("| pair |") :].split("\n\n", 1)
    rows = []
    for row in head.splitlines()[2:]:
        title, *cells = _split(row)
        counted = passed_with_asyncio([line for line in lines if line.pair == title.strip("`")])
        rows.append(_row([title, *cells[: _BEFORE_ASYNCIO - 1], counted or _last(cells)]))
    return with_pairs(TITLE + "\n".join([*PAIR_HEADS, *rows]) + f"\n\n{rest}", [])


def with_feature(written: str, lines: Sequence[Line], feature: str) -> str:
    """The page ``written`` with the row of that feature, on the pairs of that record, and all else as it was.

    A row that is new in `pairs.py` gets its place and its notes first.
    """
    written = with_pairs(written, [])
    start = f"| {escaped(feature)} | "
    (row,) = (line for line in written.splitlines() if line.startswith(start))
    run, of = {line.kind for line in lines}, by_kind(lines)
    kinds = zip(TABLED.values(), _split(row)[1:], strict=True)
    new = [feature_cell(feature, kind, of[kind.name]) if kind.name in run else cell for kind, cell in kinds]
    return written.replace(row, f"{start}{' | '.join(new)} |")


@dataclass(frozen=True, slots=True)
class _Page:
    """What a page says: the rows of pairs, by title; cells, by the title of the row and the pair's name."""

    pairs: Mapping[str, str]
    between: str
    features: Mapping[tuple[str, str], str]
    areas: Mapping[tuple[str, str], str]
    behind: str

    @classmethod
    def read(cls, written: str) -> _Page:
        """The numbers of its notes become those that the notes have now."""
        before, rest = written[written.index("| pair |") :].split(FEATURES_HEAD, 1)
        features, rest = rest.split(AREAS_HEAD, 1)
        areas, rest = rest.split(NOTES_HEAD, 1)
        old, hash_, behind = rest.partition("\n## ")
        texts = {escaped(text): number for text, number in note_numbers().items()}
        pairs_of = [line.removesuffix(".").split(". ", 1) for line in old.splitlines() if line]
        renamed = {number: str(texts[text]) for number, text in pairs_of if text in texts}
        head, blank, between = before.partition("\n\n")
        return cls(
            pairs={_split(row)[0].strip("`"): row for row in head.splitlines()[2:]},
            between=blank + between,
            features=_cells(features, renamed),
            areas=_cells(areas.partition("\n## ")[0], renamed),
            behind=hash_ + behind,
        )


def _cells(text: str, renamed: Mapping[str, str]) -> Mapping[tuple[str, str], str]:
    rows = [_split(line) for line in text.splitlines() if line.startswith("| ")]
    columns = [each.strip("`") for each in rows[0]]
    return {
        (row[0], column): _NUMBERS.sub(lambda found: _renumbered(found, renamed), cell)
        for row in rows[1:]
        for column, cell in zip(columns[1:], row[1:], strict=True)
    }


def _split(row: str) -> list[str]:
    return re.split(r"(?<!\\) ?\| ?", row.removeprefix("|").removesuffix("|").strip())


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _last(cells: Sequence[str]) -> str:
    return cells[_BEFORE_ASYNCIO - 1] if len(cells) >= _BEFORE_ASYNCIO else NOT_COUNTED


def _rows(page: _Page, lines: Sequence[Line]) -> list[str]:
    """In the order of `pairs.py`; what passed with asyncio stays where the record does not say."""
    found = dict(page.pairs)
    for kind in KINDS.values():
        fresh = pair_rows(kind, [line for line in lines if line.kind == kind.name])
        for row in fresh:
            title, *cells = _split(row)
            name = title.strip("`")
            if name in found and any(line.pair == name for line in lines):
                counted = cells[-1] if cells[-1] != NOT_COUNTED else _last(_split(found[name])[1:])
                found[name] = _row([title, *cells[:-1], counted])
            found.setdefault(name, row)
    order = list(KINDS)
    return [found[name] for name in sorted(found, key=lambda name: (order.index(name.partition(ON)[0]), name))]


def _failures(behind: str, run: set[str]) -> str:
    """Those of the other pairs; no section where none is left."""
    lines = [line for line in behind.splitlines(keepends=True) if not any(f"[{name}" in line for name in run)]
    return "".join(lines) if any(line.startswith("- ") for line in lines) else ""


def _renumbered(found: re.Match[str], renamed: Mapping[str, str]) -> str:
    kept = sorted(int(renamed[each]) for each in found[1].split(", ") if each in renamed)
    return f" [{', '.join(map(str, kept))}]" if kept else ""
