"""The operator's resources in a file of many documents: those of Kubernetes' lists too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from redelivery.policies.brokers.kubernetes.names import ADDRESS, GROUPS
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.report import ReadingReport

_SHOWN: Final = 100  # characters of a name
_MOST_SHOWN: Final = 5  # kinds


@dataclass(frozen=True, slots=True)
class Resource:
    """A document that has an ``apiVersion`` and a ``kind``; ``spec``: an empty one where it has none."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str
    document: Json

    @property
    def is_broker(self) -> bool:
        """True for a broker of the operator."""
        return GROUPS.get(self.group) == self.kind

    @property
    def is_address(self) -> bool:
        """True for an address of the operator."""
        return self.group in GROUPS and self.kind == ADDRESS

    @property
    def spec(self) -> Json:
        """The ``spec``; an empty one where there is none."""
        return self.document.get("spec") or Json({}, self.document.place)

    @property
    def title(self) -> str:
        """``Deployment orders``."""
        return f"{self.kind} {self.name}".strip()

    def __str__(self) -> str:
        return f"{self.name or '(without a name)'} ({self.document.place})"


def resources(root: Json) -> Iterator[Resource]:
    """Iterate over the resources of the documents, with those in lists; what is none of Kubernetes' is left out."""
    todo = list(root) if isinstance(root.value, list) else [root]
    while todo:
        each = todo.pop(0)
        kind, version, items = word(each, "kind"), word(each, "apiVersion"), each.get("items")
        if kind.endswith("List") and items is not None:
            todo = [*items, *todo]
        elif kind and version:
            group, _, of_group = version.rpartition("/")
            named = each.get("metadata") or Json({}, each.place)
            yield Resource(group, of_group, kind, word(named, "name"), word(named, "namespace"), each)


def word(value: Json, name: str) -> str:
    """Return a member that is a str; empty where there is none."""
    found = value.get(name)
    return found.value if found is not None and isinstance(found.value, str) else ""


def is_kubernetes(root: Json, _file: str) -> bool:
    """Say whether a file has a broker, or an address, of the operator."""
    return any(each.is_broker or each.is_address for each in resources(root))


def shown_kinds(root: Json) -> str:
    """Say what a file without a broker has instead: its kinds, and where the text of another file is in one of them."""
    found = list(resources(root))
    kinds = ", ".join(list(dict.fromkeys(each.kind[:_SHOWN] for each in found))[:_MOST_SHOWN])
    inside = (f"{each.title} has {key}" for each in found for key in _configurations(each))
    where = next(inside, "")
    hint = f" ({where[:_SHOWN]}: write that into a file of its own)" if where else ""
    return f"there is nothing{' among ' if kinds else ''}{kinds}{hint}"


def _configurations(resource: Resource) -> Iterator[str]:
    for section in ("data", "stringData"):
        for key, value in (resource.document.get(section) or Json({}, resource.document.place)).items():
            if key.endswith(".xml") and isinstance(value.value, str):
                yield key


@dataclass(frozen=True, slots=True)
class Found:
    """The broker of a file, None where it has none; the addresses that are made in it; and the secrets beside it."""

    broker: Resource | None
    addresses: tuple[Resource, ...]
    secrets: tuple[Resource, ...]


def find(root: Json, report: ReadingReport) -> Found:
    """Find the broker of a file and what belongs to it.

    Of several brokers `report.part` names one; without it that is a problem. What else is there is skipped.
    """
    brokers, addresses, secrets = [], [], []
    for each in resources(root):
        if each.is_broker:
            brokers.append(each)
        elif each.is_address:
            addresses.append(each)
        elif each.kind == "Secret":
            secrets.append(each)
        else:
            report.skip(each.title, each.document.place)
    names = [each.name for each in brokers]
    titles = [each.name if names.count(each.name) == 1 else f"{each.namespace}/{each.name}" for each in brokers]
    places = [each.document.place for each in brokers]
    broker = report.chosen(list(zip(titles, brokers, places, strict=True)), "brokers")
    of_broker = [each for each in addresses if broker is None or _is_for(each, broker, report)]
    return Found(broker, tuple(of_broker), tuple(secrets))


def _is_for(address: Resource, broker: Resource, report: ReadingReport) -> bool:
    names = [each.value for each in address.spec.get("applyToCrNames") or () if isinstance(each.value, str)]
    elsewhere = address.namespace and broker.namespace and address.namespace != broker.namespace
    if elsewhere or (names and not {broker.name, "*", ""} & set(names)):
        report.skip(f"{address.title}, which is for another broker", address.document.place)
        return False
    return True
