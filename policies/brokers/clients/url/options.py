"""The ``jms.*`` options of a connection URL as a file of a client has it, often with placeholders in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from redelivery.policies.brokers.clients.url.reader import query_of
from redelivery.policies.connection_url import NON_BLOCKING, PREFETCH, REDELIVERY, options_of, parse_query
from redelivery.policies.files.places import Place
from redelivery.policies.files.report import ReadingReport

_JMS: Final = "jms."
_PLACEHOLDER: Final = "${"


@dataclass(frozen=True, slots=True)
class UrlOptions:
    """``redelivery``, ``prefetch``: by ActiveMQ's names; ``non_blocking``: None where the URL does not say."""

    redelivery: Mapping[str, str]
    prefetch: Mapping[str, str]
    non_blocking: str | None = None


NO_OPTIONS: Final = UrlOptions({}, {})


def read_options(url: str, report: ReadingReport, place: Place) -> UrlOptions:
    """Read the options of a URL; those of one that is a placeholder without a value are skipped."""
    text = report.resolved(url, unknown=True)
    if _PLACEHOLDER in text and "?" not in text:
        report.skip(f"the options of the URL {url}", place, "they can have a redelivery policy")
        return NO_OPTIONS
    if _JMS not in text:
        return NO_OPTIONS
    options = report.checked(lambda: parse_query(query_of(text)), place) or {}
    for name, value in options.items():
        if name.startswith(_JMS) and _PLACEHOLDER in value:
            report.text(f"{name}={value}", place)  # says which one has no value
    known = {name: value for name, value in options.items() if _PLACEHOLDER not in value}
    return UrlOptions(options_of(known, REDELIVERY), options_of(known, PREFETCH), known.get(NON_BLOCKING))
