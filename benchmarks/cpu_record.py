"""What `benchmarks.cpu_page` has measured, as docs/cpu.json: so that rows are measured again alone, and judged anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.results import BenchmarkError
from benchmarks.where import Where

DATE = "date"  # the only fact of a machine in which two runs may differ


@dataclass(slots=True)
class Record:
    """``taken``: by case, the µs of each way to run it; ``profiles``: by the title that the page gives them.

    ``again``: the date of the cases that were measured later than the rest.
    """

    machine: Mapping[str, str]
    messages: int
    rounds: int
    taken: dict[str, Mapping[str, float]] = field(default_factory=dict)
    profiles: dict[str, Where] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)

    def check(self, machine: Mapping[str, str], messages: int, rounds: int) -> None:
        """Raises BenchmarkError: what is measured here and in this way does not belong on one page with it."""
        then = {**self.machine, "messages": str(self.messages), "rounds": str(self.rounds)}
        now = {**machine, "messages": str(messages), "rounds": str(rounds)}
        for fact in sorted((then.keys() & now.keys()) - {DATE}):
            if then[fact] != now[fact]:
                raise BenchmarkError(
                    f"the complete run was with {fact} {then[fact]}, this one is with {now[fact]}: "
                    "their numbers do not belong on one page"
                )

    def write(self, path: Path) -> None:
        """For `read`. Raises OSError."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Record:
    """Raises BenchmarkError: there is no such file, or one of another release."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        profiles = {
            title: Where(calls, [tuple(each) for each in functions])
            for title, (calls, functions) in data.pop("profiles").items()
        }
        return Record(**data, profiles=profiles)
    except FileNotFoundError:
        raise BenchmarkError(f"there is no {path}: run `python -m benchmarks.cpu_page` without --only first") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BenchmarkError(f"{path} is not a record of this release: {error!r}") from error
