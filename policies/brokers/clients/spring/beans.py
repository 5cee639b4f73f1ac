"""Beans and their properties, in the order in which Spring sets them.

That decides which one of a URL's options and a policy counts. Elements are set as they stand; attributes (those of the
namespaces ``p`` and ``c``, and those of ActiveMQ's own elements) in the order of their names: children come before the
attributes of a ``bean``, and after those of ActiveMQ's elements (seen with Spring 5.3 and XBean 4.24).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from redelivery.policies.brokers.clients.spring.names import Kind, kind_of_class, kind_of_element
from redelivery.policies.files.places import Place
from redelivery.policies.files.xml import Element

_ACTIVEMQ: Final = "activemq"  # in the namespace of its elements
_LISTS: Final = ("list", "set", "array")
_ARGUMENTS: Final = ("constructor-arg", "argument")
_MOST: Final = 50  # parents, and references, one after the other
_OF_BEANS: Final = frozenset(
    {
        *(
            "id",
            "name",
            "class",
            "parent",
            "scope",
            "abstract",
            "lazy-init",
            "autowire",
            "autowire-candidate",
            "primary",
        ),
        *("depends-on", "init-method", "destroy-method", "factory-method", "factory-bean", "factory-ref", "activation"),
        *("primary", "singleton", "xmlns", "schemaLocation", "dependency-check", "lazy", "availability", "type"),
    }
)
_REF: Final = "-ref"


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a property: a str, the beans in it, or the name of one."""

    place: Place
    text: str | None = None
    ref: str | None = None
    inside: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Bean:
    """``arguments``: of its constructor; ``properties``: in the order in which they are set."""

    kind: Kind
    type: str
    place: Place
    arguments: tuple[Value, ...]
    properties: tuple[tuple[str, Value], ...]


class Beans:
    """The beans of a document, by name. ``used``: the ids of the elements of those that a property was set to."""

    def __init__(self, root: Element) -> None:
        self._named: dict[str, Element] = {}
        self.used: set[int] = set()
        for each in root.walk():
            names = [each.attributes.get("id", ""), *_split(each.attributes.get("name", "") if _is_bean(each) else "")]
            for name in filter(None, names):
                self._named.setdefault(name, each)
            if each.name == "alias" and each.attributes.get("name") in self._named:
                self._named.setdefault(each.attributes.get("alias", ""), self._named[each.attributes["name"]])

    def bean(self, element: Element) -> Bean:
        """Return the bean of an element, with what it has of its parents."""
        kind, arguments, properties = _kind(element), list[Value](), dict[str, Value]()
        made = element.attributes.get("class", "") or element.name
        line = [element]
        while (parent := self._named.get(line[-1].attributes.get("parent", ""))) is not None and len(line) < _MOST:
            line.append(parent)
        self.used.update(id(each) for each in line[1:])
        for each in reversed(line):
            if "class" in each.attributes:
                kind, made = _kind(each), each.attributes["class"]
            arguments = list(_arguments(each)) or arguments
            for name, value in _properties(each):
                properties[name] = value
        return Bean(kind, made, element.place, tuple(arguments), tuple(properties.items()))

    def inside(self, value: Value) -> Iterator[Element | str]:
        """Iterate over the elements of the beans that a value has or names; the name where there is no such bean."""
        todo: list[Element | str] = list(value.inside) if value.ref is None else [value.ref]
        left = _MOST * _MOST
        while todo and left:
            left -= 1
            each = todo.pop(0)
            if isinstance(each, str):
                found = self._named.get(each)
                if found is None:
                    yield each
                else:
                    todo.insert(0, found)
            elif each.name in _LISTS:
                todo = [*each.children, *todo]
            elif each.name == "ref":
                names = (each.attributes.get(name) for name in ("bean", "local", "component-id"))
                todo.insert(0, next(filter(None, names), ""))
            elif _is_bean(each):
                self.used.add(id(each))
                yield each


def candidates(root: Element) -> Iterator[tuple[str, Element]]:
    """Iterate over the beans, each with its name: that of the bean around it, if it has none."""
    todo = [("", "", root)]
    while todo:
        name, profile, each = todo.pop()
        if _is_bean(each):
            name = each.attributes.get("id") or next(iter(_split(each.attributes.get("name", ""))), name)
            if each.attributes.get("abstract") != "true":
                yield f"{profile}/{name}" if profile else name, each
        elif each.name == "beans":
            profile = each.attributes.get("profile", profile)
        todo += [(name, profile, child) for child in reversed(each.children)]


def _split(names: str) -> list[str]:
    return names.replace(",", " ").replace(";", " ").split()


def _is_bean(element: Element) -> bool:
    return element.name == "bean" or (_is_activemqs(element) and _kind(element) != "other" and _has_own(element))


def _is_activemqs(element: Element) -> bool:
    return element.name != "bean" and _ACTIVEMQ in element.namespace


def _has_own(element: Element) -> bool:
    """Say whether an element is a bean, and not the property of the same name around one."""
    return bool(element.attributes) or not any(each.name in (element.name, "bean", "ref") for each in element.children)


def _kind(element: Element) -> Kind:
    return (
        kind_of_element(element.name) if _is_activemqs(element) else kind_of_class(element.attributes.get("class", ""))
    )


def _arguments(element: Element) -> Iterator[Value]:
    given = [
        (each.attributes.get("index", ""), each) for each in element.all(*_ARGUMENTS) if "name" not in each.attributes
    ]
    for _, each in sorted(given, key=lambda one: int(one[0]) if one[0].isdigit() and len(one[0]) < 5 else 0):
        yield _value(each)


def _properties(element: Element) -> Iterator[tuple[str, Value]]:
    of_activemq = _is_activemqs(element)
    attributes = (
        (name.removesuffix(_REF), _of_attribute(text, element.at(name), of_activemq, is_ref=name.endswith(_REF)))
        for name, text in sorted(element.attributes.items())
        if name not in _OF_BEANS
    )
    if of_activemq:
        yield from attributes
    for child in element.children:
        if child.name == "property" or (child.name in _ARGUMENTS and "name" in child.attributes):
            yield child.attributes.get("name", ""), _value(child)
        elif of_activemq and child.name not in _ARGUMENTS:
            yield child.name, Value(child.place, inside=(child,)) if child.attributes else _value(child)
    if not of_activemq:
        yield from attributes


def _of_attribute(text: str, place: Place, of_activemq: bool, *, is_ref: bool) -> Value:
    if is_ref or (of_activemq and text.startswith("#") and not text.startswith("#{")):
        return Value(place, ref=text.removeprefix("#"))
    return Value(place, text=text.strip())


def _value(element: Element) -> Value:
    for name in ("ref", "bean"):
        if name in element.attributes:
            return Value(element.at(name), ref=element.attributes[name])
    if "value" in element.attributes:
        return Value(element.at("value"), text=element.attributes["value"].strip())
    plain = element.first("value")
    if plain is not None:
        return Value(plain.place, text=plain.text)
    return Value(element.place, text=None if element.children else element.text, inside=element.children)
