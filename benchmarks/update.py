"""Cases that were run again in the place of those of a complete run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks import cases as cases_of
from benchmarks.cases import Case
from benchmarks.results import BenchmarkError, Comparison, Curve, Measure, Profile, Results, Stored, Timing

Row = TypeVar("Row")

DATE: Final = "date"  # the only fact of a machine in which two runs may differ


def read(path: Path) -> Results:
    """What `report.write_json` wrote. Raises BenchmarkError: there is no such file, or one of another release."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Results(
            machine=data["machine"],
            settings=data["settings"],
            comparisons=tuple(_comparison(each) for each in data["comparisons"]),
            measures=tuple(Measure(**each) for each in data["measures"]),
            profiles=tuple(_profile(each) for each in data["profiles"]),
            notes=tuple(data["notes"]),
            failures=tuple(data["failures"]),
            curves=tuple(_curve(each) for each in data.get("curves", ())),
            stored=tuple(_stored(each) for each in data.get("stored", ())),
            ran=tuple(data.get("ran", ())),
            again=data.get("again", {}),
        )
    except FileNotFoundError:
        raise BenchmarkError(f"there is no {path}: --update needs the JSON of a complete run") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BenchmarkError(f"{path} is not the JSON of a complete run of this release: {error!r}") from error


def merged(old: Results, new: Results, order: Iterable[str]) -> Results:
    """The old results with those that the new run has begun again replaced.

    Args:
        order: the names of all cases; what else is in the old results was given up.
    """
    places = {name: at for at, name in enumerate(order)}
    ran = frozenset(new.ran)

    def rows(kept: Iterable[Row], came: Iterable[Row], name: Callable[[Row], str]) -> tuple[Row, ...]:
        found = [*(each for each in kept if name(each) in places and name(each) not in ran), *came]
        return tuple(sorted(found, key=lambda each: places[name(each)]))

    def values(kept: Iterable[Row], came: Collection[Row], key: Callable[[Row], str]) -> tuple[Row, ...]:
        newer = {key(each): each for each in came}
        return (*(newer.pop(key(each), each) for each in kept), *newer.values())

    names = {(each.place_name, each.title): _name(each) for each in (*old.comparisons, *new.comparisons)}
    found = {f"Without {name.split('/')[1]}:" for name in ran if "/" in name}
    notes = [each for each in old.notes if not each.startswith(tuple(found))]
    return Results(
        machine=old.machine,
        settings=old.settings,
        comparisons=rows(old.comparisons, new.comparisons, _name),
        measures=values(old.measures, new.measures, lambda each: each.key),
        profiles=rows(old.profiles, new.profiles, lambda each: names.get((each.place_name, each.title), "")),
        notes=tuple(dict.fromkeys((*notes, *new.notes))),
        failures=rows(old.failures, new.failures, lambda each: each.partition(" ")[0]),
        curves=values(old.curves, new.curves, lambda each: each.key),
        stored=values(old.stored, new.stored, lambda each: f"{each.protocol}/{each.title}"),
        ran=old.ran,
        again={**old.again, **dict.fromkeys(new.ran, new.machine[DATE])},
    )


def judged(results: Results, cases: Mapping[str, Iterable[Case]]) -> Results:
    """The same numbers by the targets of these cases, by protocol, where others were in force when they were taken."""
    contenders = {(protocol, case.key): case.contenders for protocol, found in cases.items() for case in found}
    return replace(
        results,
        comparisons=tuple(
            cases_of.judged(each, contenders.get((each.place.partition("/")[0], each.key), ()))
            for each in results.comparisons
        ),
    )


def check(old: Results, machine: Mapping[str, str], settings: Mapping[str, float]) -> None:
    """Raises BenchmarkError: what is measured here and in this way does not belong on one page with it."""
    now = {**machine, **{name: f"{value:g}" for name, value in settings.items()}}
    then = {**old.machine, **{name: f"{value:g}" for name, value in old.settings.items()}}
    for fact in sorted((then.keys() & now.keys()) - {DATE}):
        if then[fact] != now[fact]:
            raise BenchmarkError(
                f"the complete run was with {fact} {then[fact]}, this one is with {now[fact]}: "
                "their numbers do not belong on one page"
            )


def _name(comparison: Comparison) -> str:
    return f"{comparison.place}/{comparison.key}"


def _comparison(data: Mapping[str, Any]) -> Comparison:
    fields = {name: value for name, value in data.items() if name != "ratios"}
    others = tuple(Timing(**each) for each in data["others"])
    unmeasured = tuple(data.get("unmeasured", ()))
    return Comparison(**{**fields, "mine": Timing(**data["mine"]), "others": others, "unmeasured": unmeasured})


def _profile(data: Mapping[str, Any]) -> Profile:
    return replace(Profile(**data), functions=tuple((name, share) for name, share in data["functions"]))


def _stored(data: Mapping[str, Any]) -> Stored:
    return replace(Stored(**data), ratios=tuple(data["ratios"]))


def _curve(data: Mapping[str, Any]) -> Curve:
    return replace(Curve(**data), points=tuple((x, y) for x, y in data["points"]))
