"""Reads what an application's properties say of its client's redelivery, and names what else decides about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from redelivery.policies.activemq.redelivery_names import BEAN as POLICY
from redelivery.policies.brokers.clients.spring_boot.keys import BoundKey, counting, keys_of
from redelivery.policies.brokers.clients.url.reader import NO_OPTIONS, read_options
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.checks import read_flag
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.places import Setting
from redelivery.policies.files.properties import Property
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

_ACTIVEMQ: Final = "spring.activemq."
_ARTEMIS: Final = "spring.artemis."
_URL: Final = "spring.activemq.brokerurl"
_NON_BLOCKING: Final = "spring.activemq.nonblockingredelivery"
_ACKNOWLEDGES: Final = "it decides if a message whose listener fails is redelivered at all"
_DECIDING: Final = {
    "spring.config.import": "it can have other properties of the client",
    "spring.jms.listener.acknowledgemode": _ACKNOWLEDGES,
    "spring.jms.listener.session.": _ACKNOWLEDGES,
    "spring.jms.template.timetolive": "messages expire after it",
    "spring.jms.": "",
}
"""The beginnings of names -> how that decides."""
_WORDS: Final = {"on": "true", "yes": "true", "1": "true", "off": "false", "no": "false", "0": "false"}


def is_spring_boot(root: object, _file: str) -> bool:
    """Say whether a file has properties of a client."""
    if not isinstance(root, (Json, list)):
        return False
    return any(each.name.startswith((_ACTIVEMQ, _ARTEMIS)) for document in keys_of(root) for each in document)


def read_spring_boot(root: Json | Sequence[Property], report: ReadingReport) -> ClientRules:
    """Read the rules of the client; those of a profile where `report.part` names one."""
    keys = counting(keys_of(root), report)
    of_activemq = [each for name, each in keys.items() if name.startswith(_ACTIVEMQ)]
    of_artemis = [each for name, each in keys.items() if name.startswith(_ARTEMIS)]
    for name, each in keys.items():
        why = next((said for start, said in _DECIDING.items() if name.startswith(start)), None)
        if why is not None:
            report.skip(each.written, each.place, why)
    if of_activemq and of_artemis:
        where = f"spring.artemis ({of_artemis[0].place}): the client that is on the class path counts; leave one out"
        report.problem(f"spring.activemq and {where}", of_activemq[0].place)
    elif of_artemis:
        return ClientRules(returning=True)
    for each in of_activemq:
        _check(each, report)
    return _activemq(keys, report)


def _check(key: BoundKey, report: ReadingReport) -> None:
    """Refuse what Spring Boot does not have: a policy is in the URL."""
    rest = key.name.removeprefix(_ACTIVEMQ)
    known = {name.lower(): name for name in POLICY}
    if key.name not in (_URL, _NON_BLOCKING) and ("redeliver" in rest or rest.rpartition(".")[2] in known):
        option = known.get(rest.rpartition(".")[2], "…")
        what = f"Spring Boot has no {key.written}: write jms.redeliveryPolicy.{option} into spring.activemq.broker-url"
        report.problem(what, key.place)


def _activemq(keys: dict[str, BoundKey], report: ReadingReport) -> ClientRules:
    url, flag = keys.get(_URL), keys.get(_NON_BLOCKING)
    options = NO_OPTIONS if url is None else read_options(url.text, report, url.place)
    values: dict[str, Any] = {}
    settings: list[Setting] = []
    if url is not None:
        made = report.checked(lambda: RedeliveryPolicy.from_activemq(options.redelivery), url.place)
        values["policy"] = made or RedeliveryPolicy()
        settings += [Setting(name, text, url.written, url.place) for name, text in options.redelivery.items()]
        if options.prefetch:
            values["prefetch"] = report.checked(lambda: PrefetchPolicy.from_activemq(options.prefetch), url.place)
    blocking: list[Setting] = []
    for text, key in ((options.non_blocking, url), (flag.text if flag else None, flag)):  # the property is set last
        if text is None or key is None:
            continue
        plain = report.text(text, key.place)
        spelled = None if plain is None else _WORDS.get(plain.strip().lower(), plain.strip())
        found = None if spelled is None else report.read(read_flag, "nonBlockingRedelivery", spelled, key.place)
        if found is not None:
            values["non_blocking"] = found
            blocking = [Setting("nonBlockingRedelivery", str(found).lower(), key.written, key.place)]
    return ClientRules(settings=tuple(settings), of_all=tuple(blocking), **values)
