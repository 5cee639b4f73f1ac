"""Reads every configuration of a folder as each command does: for files that were collected elsewhere.

``REDELIVERY_CORPUS=folder pytest tests/policies/readers/test_corpus.py -s`` prints what was refused or not read, and
with ``SILENT`` the lines that seem to decide something, and are neither shown nor said.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from redelivery import ConfigError
from redelivery.model.destinations import Destination
from redelivery.operate import as_json, plot
from redelivery.operate.convert import TARGETS, convert
from redelivery.operate.diff import diff
from redelivery.operate.doctor.doctor import examine_file
from redelivery.operate.simulate import simulate
from redelivery.operate.table import table
from redelivery.policies import read
from redelivery.policies.brokers.formats import FORMATS, URL, read_content
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.destinations.examples import examples_of

FOLDER: Final = os.environ.get("REDELIVERY_CORPUS")
SLOWEST: Final = 60.0  # seconds for all of one file
_MOST: Final = 8  # destinations of a file
_MARKS: Final = ("edeliver", "ead-letter", "eadLetter", "xpir", "DLQ", "dlq")  # of what decides

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(3600)]


def use(policies: BrokerPolicies) -> Counter[str]:
    """Do with a file all that can be done with it; returns how much of it was not read."""
    examples = [each for title in policies.rules.names() for each in examples_of(title, ())][:_MOST]
    asked: list[Destination | str] = [*examples, "any.queue", "topic://any.topic"]
    for destination in asked:
        rules = policies.explain(destination)
        assert rules.broker in str(rules)
        as_json.explanation(rules)
        plot.as_text(simulate(policies, destination))
    assert diff(policies, policies) == ()
    as_json.everything(policies)
    table(policies).as_markdown()
    examine_file(policies)
    for to in TARGETS:
        try:
            made = convert(policies, to)
        except ConfigError:  # a value that the other format cannot hold
            if to == policies.format:
                raise
            continue
        lines = [each.line for each in policies.not_read]
        assert to == "json" or set(lines) <= set(made.lost), "what is not read is lost"
        if to in FORMATS and to != URL:
            again = read_content(made.text.encode(), f"converted to {to}", format=to)
            assert to != policies.format or again.rules == policies.rules
    return Counter(each.name.partition(" =")[0] for each in policies.not_read)


def silent(path: Path, policies: BrokerPolicies) -> list[str]:
    """The lines of XML that name what decides, and that are neither shown nor said anywhere."""
    shown = str(as_json.everything(policies))
    problems = [str(each.place.line) for each in policies.unread]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = line.strip()
        decides = any(mark in text for mark in _MARKS) and not text.startswith("<!--")
        if decides and f":{number}:" not in shown and str(number) not in problems:
            found.append(f"{path}:{number}: {text[:100]}")
    return found


@pytest.mark.skipif(FOLDER is None, reason="REDELIVERY_CORPUS names no folder of configurations")
def test_each_file_of_a_folder_is_read_explained_converted_and_compared() -> None:
    files = sorted(each for each in Path(str(FOLDER)).rglob("*") if each.is_file())
    crashed, refused, unread, formats = list[str](), list[str](), Counter[str](), Counter[str]()
    quiet = list[str]()
    for path in files:
        began = time.monotonic()
        try:
            policies = read(path)
        except ConfigError as error:
            refused.append(str(error).partition("\n")[0])
            continue
        formats[policies.format] += 1
        try:
            unread += use(policies)
            quiet += silent(path, policies)
        except Exception as error:  # noqa: BLE001  # each file has its turn, and all are named in the end
            crashed.append(f"{path}: {type(error).__name__}: {error}")
        if time.monotonic() - began > SLOWEST:
            crashed.append(f"{path}: took {time.monotonic() - began:.0f} s")
    print(f"\n{len(files)} files: {dict(formats)}; refused {len(refused)}; crashed {len(crashed)}")
    print("not read:", dict(unread))
    print(*refused, *(f"SILENT {each}" for each in quiet), sep="\n")
    assert crashed == [], "\n".join(crashed)
