"""Every public name: what stands in `__all__` of the modules that users import, and what those calls give them."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

# Page of docs/reference -> its title, first words, and of which modules it has which names; None: all that are left.
PAGES: Final[dict[str, tuple[str, str, tuple[tuple[str, tuple[str, ...] | None], ...]]]] = {
    "client": (
        "Connections, sessions, consumers, producers",
        "The API for threads. [asyncio](aio.md) has the same names. The options are in [one table](options.md).",
        (
            (
                "redelivery",
                (
                    "connect",
                    "ConnectionFactory",
                    "Connection",
                    "Session",
                    "Consumer",
                    "Producer",
                    "Publisher",
                    "QueueBrowser",
                    "AckMode",
                    "Health",
                    "ConnectionMetaData",
                    "Capabilities",
                ),
            ),
        ),
    ),
    "messages": (
        "Messages, destinations, dead letters",
        "What is sent and received.",
        (
            (
                "redelivery",
                (
                    "Message",
                    "Byte",
                    "Short",
                    "Long",
                    "Float",
                    "Destination",
                    "Queue",
                    "Topic",
                    "TemporaryQueue",
                    "TemporaryTopic",
                    "DeadLetterInfo",
                    "Passport",
                ),
            ),
        ),
    ),
    "workers": (
        "Workers",
        "Listener containers and applications of them: the [guide](../guide/workers.md) says how they work.",
        (("redelivery", ("App", "ListenerContainer", "Retry", "DeadLetter", "Drop")),),
    ),
    "policies": (
        "Policies",
        "Immutable values, which decide and do nothing else. The "
        "[guide](../guide/redelivery.md) says what they are for.",
        (
            (
                "redelivery",
                (
                    "RedeliveryPolicy",
                    "RedeliveryPolicyMap",
                    "ReconnectPolicy",
                    "PrefetchPolicy",
                    "AddressSettings",
                    "AddressSettingsMap",
                    "DeadLetterStrategy",
                    "BrokerDeadLetterStrategy",
                    "SharedDeadLetterStrategy",
                    "IndividualDeadLetterStrategy",
                    "DiscardingDeadLetterStrategy",
                    "DeadLetterStrategyMap",
                ),
            ),
            ("redelivery.policies", None),
            ("redelivery.policies.brokers.policies", ("BrokerPolicies",)),
        ),
    ),
    "errors": (
        "Errors, by their classes",
        "[Errors](../guide/errors.md) of the guide says when each is raised and what to do.",
        (("redelivery", None),),
    ),
    "events": (
        "Events",
        "What an `observer` is given. The [guide](../guide/programs.md#events) has an example.",
        (("redelivery.events", None),),
    ),
    "aio": (
        "asyncio",
        "The same names as for threads, with the same meaning: what speaks to the broker is awaited. "
        "The [guide](../guide/asyncio.md) says how.",
        (("redelivery.aio", None),),
    ),
    "broker": (
        "The embedded broker, and tests",
        "A broker in the process, and the [pytest plug-in](../guide/testing.md), whose "
        " fixtures are there by themselves.",
        (
            ("redelivery.broker", None),
            ("redelivery.testing", None),
            ("redelivery.testing.fixtures", ("redelivery_broker", "redelivery_durable_broker")),
        ),
    ),
    "integrations": (
        "OpenTelemetry, the console, Spark, brokers' files",
        "Each needs the extra that its page of the guide names: [observing](../guide/observing.md), "
        "[the console](../guide/console.md), [Spark](../spark.md), [configuration](../guide/configuration.md).",
        (
            ("redelivery.otel", None),
            ("redelivery.prometheus", None),
            ("redelivery.web", None),
            ("redelivery.spark.listener", ("PrometheusListener",)),
            ("pyspark_redelivery", ("DefaultSource",)),
            ("redelivery.operate.explain", ("explain", "Explained")),
            ("redelivery.operate.convert", ("convert", "Conversion")),
        ),
    ),
}

GIVEN: Final = ("redelivery.policies.brokers.policies", "redelivery.testing.fixtures")
# made by a call, which their docstring need not say
MADE: Final = ("Connection", "Session", "Publisher", "ListenerContainer", "FastForward", "TelemetryObserver")
SPARK: Final = "integrations"  # the page that needs pyspark


@dataclass(frozen=True)
class Name:
    """One public name: where it is imported from, and what it is."""

    module: str
    name: str
    value: Any

    @property
    def heading(self) -> str:
        """As its page calls it: ``aio.connect``; what a call gives, and nobody imports, by its name alone."""
        if self.module in ("redelivery", *GIVEN):
            return self.name
        short = self.module.removeprefix("redelivery.")
        return f"{self.module if '.' in short else short}.{self.name}"


@cache
def bases() -> frozenset[str]:
    """The public classes from which others inherit; these are not described twice."""
    return frozenset({"MessageEvent", "JMSError", "DeadLetterStrategy", "Destination"})


@cache
def public(module: str) -> tuple[str, ...]:
    """The names of its `__all__`, or none."""
    return tuple(getattr(importlib.import_module(module), "__all__", ()))


def names_of(page: str) -> Iterator[Name]:
    """The names of one page, in their order there."""
    for module, chosen in PAGES[page][2]:
        elsewhere = {
            name for _, _, parts in PAGES.values() for where, names in parts if where == module for name in names or ()
        }
        for name in chosen or [each for each in public(module) if each not in elsewhere]:
            yield Name(module, name, getattr(importlib.import_module(module), name))


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public attributes of a class that are ours, but for fields and what a public base has."""
    seen: set[str] = set()
    fields = getattr(kind, "__dataclass_fields__", {})
    others = {name for base in kind.__mro__ if not base.__module__.startswith("redelivery") for name in vars(base)}
    for base in kind.__mro__:
        if base is not kind and base.__name__ in bases():
            continue
        if not base.__module__.startswith("redelivery"):
            continue
        for name in vars(base):
            if name.startswith("_") or name in {*seen, *fields, *others}:
                continue
            seen.add(name)
            value = inspect.getattr_static(kind, name)
            if "for the library" in (getattr(value, "__doc__", None) or "").lower():
                continue  # what one room needs of another
            if isinstance(value, (property, classmethod, staticmethod)) or inspect.isfunction(value):
                yield name, value


def function_of(value: Any) -> Any:
    """The function behind a property or a class method."""
    if isinstance(value, property):
        return value.fget
    return value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def values_of(kind: type) -> list[str]:
    """The members of an enumeration."""
    return [f"`{each.name}`" for each in kind] if issubclass(kind, Enum) else []


def is_made(kind: type) -> bool:
    """Say whether an application never makes one itself: what it is made of is not public."""
    named = re.search(r"\b[Mm]ade by `", kind.__doc__ or "") is not None
    return named or issubclass(kind, BaseException) or kind.__name__ in MADE
