"""Address settings as YAML objects have them: ``match``, and settings with the names of the operator's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from redelivery.policies.brokers.artemis.decisive import CAMEL_SETTINGS
from redelivery.policies.brokers.artemis.names import CAMEL_NAMES, CONCERNS
from redelivery.policies.brokers.artemis.reader import is_match
from redelivery.policies.brokers.artemis.rules import AddressEntry
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS, Wildcards
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.yaml_tree import TEMPLATE, is_template
from redelivery.policies.kinds import Names

_SHOWN: Final = 60  # characters of a value


def entry_of(
    match: Json | None,
    settings: Json,
    report: ReadingReport,
    *,
    wildcards: Wildcards = DEFAULT_WILDCARDS,
    names: Names = CAMEL_NAMES,
    checked: Callable[[str, Json], str | None] = lambda _name, _value: None,
    unknown: Callable[[str], str | None] = lambda _name: None,
) -> AddressEntry | None:
    """Return the settings of an object for a match; None where they are for none, which is a problem of the ``report``.

    ``checked``: says what is wrong with the type of a value, None: nothing. ``unknown``: says what is wrong with a
    name, beside what a similar one would say.
    """
    if match is None or not isinstance(match.value, str):
        shown = (
            "no match (an unquoted # begins a comment)" if match is None else f"match={shown_value(match)}: not a str"
        )
        report.problem(f"{shown}: write it in quotes", (match or settings).place)
        return None
    if not is_match(match.value, report, match.place, wildcards, "artemis"):
        return None
    texts = []
    for name, value in settings.items():
        what = unknown(name) or (checked(name, value) if name in names else None)
        if what is None and isinstance(value.value, str) and name in names and is_template(value.value):
            what = f"{name} is {TEMPLATE}"
        if what is not None:
            report.problem(what, value.place)
        elif value.value is not None and name != "match":
            texts.append((name, value.text if name in names else "", value.place))
    unread = ((name, value.text, value.place) for name, value in settings.items() if value.value is not None)
    report.skip_decisive(CAMEL_SETTINGS, unread, part=settings.place)
    found = report.settings(names, texts, "an addressSetting", concerns=CONCERNS)
    made = report.checked(lambda: AddressSettings(**found.fields), settings.place)
    return None if made is None else AddressEntry(match.value, made, settings.place, found.places)


def shown_value(value: Json) -> str:
    """Return a value as an error shows it."""
    shown: Any = value.value
    if isinstance(shown, (dict, list)):
        return "an object" if isinstance(shown, dict) else "a list"
    return repr(shown)[:_SHOWN]
