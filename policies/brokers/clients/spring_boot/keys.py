"""An application's properties: those of its documents that count, under the names that Spring Boot takes for one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.places import Place
from redelivery.policies.files.properties import Properties, Property
from redelivery.policies.files.report import ReadingReport

_PROFILES: Final = ("spring.config.activate.onprofile", "spring.profiles")
_EXPRESSION: Final = re.compile(r"[&()]")


@dataclass(frozen=True, slots=True)
class BoundKey:
    """A property: ``name`` in the one spelling here, ``written`` as the file has it."""

    name: str
    written: str
    text: str
    place: Place


def keys_of(root: Json | Sequence[Property]) -> list[list[BoundKey]]:
    """List the properties of each document of a file; of lists, and of what has no value, there are none."""
    if not isinstance(root, Json):
        breaks = root.breaks if isinstance(root, Properties) else []
        documents: list[list[BoundKey]] = [[] for _ in range(len(breaks) + 1)]
        for each in root:
            at = sum(1 for line in breaks if line < each.place.line)
            documents[at].append(BoundKey(_plain(each.key), each.key, each.value, each.place))
        return documents
    return [list(_flat(each, "")) for each in (root if isinstance(root.value, list) else (root,))]


def counting(documents: list[list[BoundKey]], report: ReadingReport) -> dict[str, BoundKey]:
    """Return the properties that count: of the documents without a profile, then of those of the profile `report.part`.

    A later document's counts before an earlier one's.
    """
    found: dict[str, BoundKey] = {}
    profiles = dict.fromkeys(name for each in documents for name in _names(_profile(each)))
    if profiles:
        report.chose = True
        if report.part is not None and report.part not in profiles:
            place = next(each.place for each in map(_profile, documents) if each)
            report.problem(f"there is no profile {report.part!r}: {', '.join(profiles)}", place)
    for each in documents:
        profile = _profile(each)
        if profile is not None and _EXPRESSION.search(profile.text):
            report.problem(f"the profiles {profile.text!r} are not evaluated", profile.place)
        elif profile is not None and not _is_active(profile, report.part):
            has_client = any(key.name.startswith(("spring.activemq.", "spring.artemis.")) for key in each)
            file, first = profile.place.file, next(iter(_names(profile)), "")
            why = f"its properties of the client count where it is active, as in {file}#{first}" if has_client else ""
            report.skip(f"the profile {profile.text}", profile.place, why)
        else:
            found |= _once(each, report)
    return found


def _once(document: list[BoundKey], report: ReadingReport) -> dict[str, BoundKey]:
    found: dict[str, BoundKey] = {}
    for each in document:
        if each.name in found and each.name.startswith(("spring.activemq", "spring.artemis")):
            report.problem(f"{each.written} stands twice, first at {found[each.name].place}", each.place)
        found[each.name] = each
    return found


def _profile(document: list[BoundKey]) -> BoundKey | None:
    return next((each for each in document if each.name in _PROFILES), None)


def _names(profile: BoundKey | None) -> list[str]:
    return (
        [] if profile is None else [name.strip(" !") for name in re.split(r"[,|&()]", profile.text) if name.strip(" !")]
    )


def _is_active(profile: BoundKey, part: str | None) -> bool:
    """Say whether one of the alternatives is meant: ``prod``, or ``!prod`` where that is not."""
    wanted = [name.strip() for name in re.split(r"[,|]", profile.text)]
    return any(part != name[1:].strip() if name.startswith("!") else part == name for name in wanted)


def _flat(value: Json, before: str) -> Iterator[BoundKey]:
    if isinstance(value.value, dict):
        for name, each in value.items():
            yield from _flat(each, f"{before}.{name}" if before else name)
    elif not isinstance(value.value, list) and value.value is not None:
        yield BoundKey(_plain(before), before, value.text, value.place)


def _plain(name: str) -> str:
    """Return the one spelling of ``broker-url``, ``brokerUrl`` and ``broker_url``."""
    return name.lower().replace("-", "").replace("_", "")
