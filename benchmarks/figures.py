"""Numbers of a page of docs/: measured case by case, kept as JSON, and written into the page, or compared with it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import HERE, BenchmarkError, check_quiet


def _kept(found: Any, _only: Sequence[str]) -> Any:
    """Return the numbers as they are."""
    return found


@dataclass(frozen=True)
class Figures:
    """The numbers of a page, or of a part of one.

    ``begin(found, only)`` returns the numbers that a run begins with, ``take(found, case, url)`` measures a case into
    them, and ``end(found, only)`` what comes last. ``text(found, old)`` returns the page. ``urls``: at brokers that are
    named.
    """

    results: str
    page: str
    cases: Sequence[str]
    take: Callable[[Any, str, str], Any]
    text: Callable[[Any, str], str]
    begin: Callable[[Any, Sequence[str]], Any] = _kept
    end: Callable[[Any, Sequence[str]], Any] = _kept
    urls: bool = True

    def main(self, about: str | None) -> None:
        """Do what the command line says."""
        parser = argparse.ArgumentParser(description=about)
        if self.urls:
            parser.add_argument("url", nargs="*", help="a broker that may be used")
        parser.add_argument("--only", choices=self.cases, action="append", help="this case; all without it")
        parser.add_argument(
            "--judge", action="store_true", help="measure nothing: write the page by the targets of today"
        )
        parser.add_argument(
            "--check", action="store_true", help="measure and write nothing: exit code 1 for another page"
        )
        parser.add_argument("--busy", action="store_true", help="measure though other programs use the processors")
        given = parser.parse_args()
        try:
            if not given.judge and not given.check:
                self.measure(given.url if self.urls else [""], given.only or [], busy=given.busy)
            self.deliver(check=given.check)
        except BenchmarkError as error:
            sys.exit(f"benchmarks: {error}")

    def measure(self, urls: Sequence[str], only: Sequence[str], *, busy: bool) -> None:
        """Measure, and keep the numbers. Raises BenchmarkError."""
        if not (busy or self.urls):  # a broker is at work too
            check_quiet()
        found = self.begin(read(self.results), only)
        for url in urls:
            for case in only or self.cases:
                print(case, url, json.dumps(self.take(found, case, url)), flush=True)
        self.end(found, only)
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (HERE / self.results).write_text(f"{text}\n", encoding="utf-8")

    def deliver(self, *, check: bool) -> None:
        """Write the page. ``check``: raise BenchmarkError where it is another."""
        old = (HERE / self.page).read_text(encoding="utf-8")
        deliver(HERE / self.page, self.text(read(self.results), old), check=check)


def read(name: str) -> Any:
    """Return the numbers of a file. Raises BenchmarkError: there is none."""
    try:
        return json.loads((HERE / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BenchmarkError(f"there is no {name}: it has the numbers of a complete run") from None


def deliver(page: Path, text: str, *, check: bool) -> None:
    """Write a page. ``check``: raise BenchmarkError where it is another."""
    if not check:
        page.write_text(text, encoding="utf-8")
        print(f"{page} is written")
    elif page.read_text(encoding="utf-8") != text:
        raise BenchmarkError(f"{page} is not what is made of its numbers: measure nothing, and write it, by --judge")


def between(page: str, what: str, lines: Sequence[str]) -> str:
    """Return the page with these lines between the comments that name them. Raises BenchmarkError: there are none."""
    before, first, rest = page.partition(f"<!-- {what} -->")
    _, last, after = rest.partition(f"<!-- end of {what} -->")
    if not first or not last:
        raise BenchmarkError(f"the page has no place for {what}")
    return "\n".join([before + first, "", *lines, "", last + after])
