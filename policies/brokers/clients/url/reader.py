"""Reads the ``jms.*`` options of a connection URL of ActiveMQ's Java client, with ``failover:`` and without."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.policies.activemq.composite_url import shown_list, split_composite
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.checks import read_flag
from redelivery.policies.connection_url import NON_BLOCKING, PREFETCH, REDELIVERY, options_of, parse_query, url_head
from redelivery.policies.files.places import Decisive, Place, Setting, decisive
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

_URL: Final = re.compile(r"failover:|[a-zA-Z][a-zA-Z0-9+.-]+:(//|\()", re.IGNORECASE)

UNREAD: Final[Mapping[str, Decisive]] = {
    "jms.checkForDuplicates": decisive("a message of an id that came before is delivered again", "false"),
    "jms.consumerExpiryCheckEnabled": decisive("the client delivers what expired on the way to it", "false"),
    "jms.transactedIndividualAck": decisive("each message of a transaction is acknowledged by itself", "true"),
    "jms.optimizeAcknowledge": decisive("what is acknowledged can be redelivered after a crash", "true"),
    "jms.disableTimeStampsByDefault": decisive(
        "what has no time stamp does not expire as its time to live says", "true"
    ),
}
_JMS: Final = "jms."
_PLACEHOLDER: Final = "${"


def is_url(text: object) -> bool:
    """Say whether it is a URL, and not the path of a file."""
    return isinstance(text, str) and _URL.match(text) is not None


def shown_url(url: str) -> str:
    """Return what errors call it: nothing of it that could be a password."""
    scheme, _, rest = url.partition("(")
    return f"{scheme}({shown_list(rest.partition(')')[0])})" if rest and "//" not in scheme else url_head(url)


def read_client_url(url: str, report: ReadingReport) -> ClientRules:
    """Read the rules of a URL. What is wrong, or skipped, is in the report; no value of another option is shown."""
    place = Place(shown_url(url))
    options = report.checked(lambda: parse_query(query_of(url)), place) or {}
    settings = []
    for name, value in options.items():
        if name.startswith(REDELIVERY) or name == NON_BLOCKING:
            settings.append(Setting(name, value, "the URL", place))
        elif not name.startswith(PREFETCH):
            why = UNREAD[name].why_of(value) if name in UNREAD else ""
            report.skip(f"{name} = {value}" if why else name, place, why)
    flag = options.get(NON_BLOCKING)
    policy = report.checked(
        lambda: RedeliveryPolicy.from_activemq(options_of(options, REDELIVERY), prefix=REDELIVERY), place
    )
    values: dict[str, Any] = {} if policy is None else {"policy": policy}
    prefetch = options_of(options, PREFETCH)
    if prefetch:
        values["prefetch"] = report.checked(lambda: PrefetchPolicy.from_activemq(prefetch, prefix=PREFETCH), place)
    if flag is not None:
        values["non_blocking"] = report.read(read_flag, NON_BLOCKING, flag, place)
    return ClientRules(settings=tuple(settings), **values)


def query_of(url: str) -> str:
    """Return what stands after the ``?`` of a URL, or of the list of a ``failover:(…)``.

    Raises:
        ConfigError: it is not a URL.
    """
    if "(" not in url.partition("?")[0]:
        return url.partition("?")[2]
    scheme, colon, _ = url.partition(":")
    if not colon or "(" in scheme:
        raise ConfigError("not a URL: it begins with a scheme, like tcp://host:61616 or failover:(…)")
    prefix = f"{scheme}:".lower()
    try:
        return split_composite(url, prefix)[1]
    except ConfigError as error:
        raise ConfigError(f"{prefix} URL: {error}") from error


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
