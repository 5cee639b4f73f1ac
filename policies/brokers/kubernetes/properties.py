"""The properties of a broker: those in its resource, those of one pod, and those in secrets beside it.

The operator writes the first two into a secret, ``broker.properties`` and ``broker-0.broker.properties``, and mounts
secrets whose names end in ``-bp``; Artemis applies the files of each in the order of their names, those of a pod last.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias

from redelivery.policies.brokers.artemis.names import CONCERNS
from redelivery.policies.brokers.kubernetes.documents import Resource
from redelivery.policies.brokers.kubernetes.entries import shown_value
from redelivery.policies.brokers.kubernetes.names import VERSIONS, WITH_PROPERTIES
from redelivery.policies.files.json_tree import Json, parse_json
from redelivery.policies.files.places import Place
from redelivery.policies.files.properties import LINE_END, Property, parse_properties
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.yaml_tree import TEMPLATE, is_template

Layer: TypeAlias = Json | list[Property]
"""A file of properties."""

_OF_ONE_POD: Final = re.compile(r"broker-([0-9]+)\.(.*)", re.DOTALL)
_READ_FROM: Final = "-bp"  # the end of the names of such secrets


def property_files(broker: Resource, secrets: Iterable[Resource], report: ReadingReport) -> Iterator[Layer]:
    """Iterate over the files of properties in their order; what cannot be read of what is mounted is skipped."""
    plan = broker.spec.get("deploymentPlan") or Json({}, broker.document.place)
    size = plan.get("size")
    pods = _Pods(report, is_one=size is None or size.value == 1)
    yield from _of_resource(broker, pods, report)
    known = {each.name: each for each in secrets}
    mounts = plan.get("extraMounts") or Json({}, plan.place)
    for each in mounts.get("secrets") or ():
        secret = known.pop(each.value, None) if isinstance(each.value, str) else None
        if secret is not None and secret.name.endswith(_READ_FROM):
            yield from _of_secret(secret, pods, report)
        elif each.value:
            has_properties = isinstance(each.value, str) and each.value.endswith(_READ_FROM)
            why = "Artemis applies the properties in it after those of the resource" if has_properties else ""
            report.skip(f"secret {shown_value(each)} of extraMounts", each.place, why)
    for each in mounts.get("configMaps") or ():
        report.skip(f"configMap {shown_value(each)} of extraMounts", each.place)
    for other in known.values():
        report.skip(other.title, other.document.place)
    for name in ("initImage", "image"):
        found = plan.get(name)
        if found is not None and found.value not in ("", "placeholder"):
            report.skip(f"{name} {shown_value(found)}", found.place, "it can have another broker.xml")


class _Pods:
    """Tells what is for all pods from what is for one: that counts only if it is the only one."""

    def __init__(self, report: ReadingReport, *, is_one: bool) -> None:
        self._report = report
        self._is_one = is_one

    def split(self, name: str, place: Place) -> tuple[str, bool] | None:
        """Return a name without its pod, and whether it had one; None where it is for another pod."""
        found = _OF_ONE_POD.fullmatch(name)
        if found is None:
            return name, False
        if self._is_one and not found[1].strip("0"):
            return found[2], True
        why = f"it counts in pod {found[1]} only" if CONCERNS.search(name) else ""
        self._report.skip(f"{name}, for pod {found[1]} only", place, why)
        return None


def _of_resource(broker: Resource, pods: _Pods, report: ReadingReport) -> Iterator[Layer]:
    section = broker.spec.get("brokerProperties")
    if section is None:
        return
    if broker.version in VERSIONS and broker.version not in WITH_PROPERTIES:
        report.problem(f"{broker.version} has no brokerProperties: Kubernetes drops them", section.place)
    if not isinstance(section.value, list):
        report.problem("brokerProperties is not a list", section.place)
    lines: dict[bool, list[tuple[str, Place]]] = {False: [], True: []}
    for each in section:
        if not isinstance(each.value, str):
            report.problem(f"brokerProperties has {shown_value(each)}, not a str: write it in quotes", each.place)
        elif is_template(each.value):
            report.problem(TEMPLATE, each.place)
        elif (found := pods.split(each.value, each.place)) is not None:
            lines[found[1]].append((found[0], each.place))
    for of_kind in lines.values():
        yield report.checked(partial(_parsed, of_kind), section.place) or []


def _parsed(lines: list[tuple[str, Place]]) -> list[Property]:
    """Return the pairs of the file that the operator makes of these lines, each of which can be several."""
    places = [place for text, place in lines for _ in LINE_END.split(text)]
    pairs = parse_properties("\n".join(text for text, _ in lines), "brokerProperties")
    return [each._replace(place=places[each.place.line - 1]) for each in pairs]


def _of_secret(secret: Resource, pods: _Pods, report: ReadingReport) -> Iterator[Layer]:
    plain = secret.document.get("stringData") or Json({}, secret.document.place)
    files = {**dict(_decoded(secret, report)), **dict(plain.items())}
    found = [(pods.split(key, value.place), value) for key, value in sorted(files.items())]
    for of_pod in (False, True):
        for named, value in found:
            if named is None or named[1] is not of_pod or not isinstance(value.value, str):
                continue
            if named[0].endswith((".json", ".properties")):
                yield report.checked(partial(_file, named[0], value, report), value.place) or []
            else:
                report.skip(f"{named[0]} of {secret.title}", value.place)


def _file(name: str, value: Json, report: ReadingReport) -> Layer:
    if name.endswith(".json"):
        return parse_json(value.value.encode(), value.place.file, report.problem, value.place)
    return _parsed([(value.value, value.place)])


def _decoded(secret: Resource, report: ReadingReport) -> Iterator[tuple[str, Json]]:
    """Iterate over what is written in base 64."""
    for key, value in (secret.document.get("data") or Json({}, secret.document.place)).items():
        try:
            yield key, Json(b64decode(str(value.value), validate=True).decode(), value.place)
        except ValueError:  # UnicodeDecodeError is one
            report.problem(f"{key} is not text in base 64", value.place)
