"""Regular expressions of files: those that could take for ever are refused, and those of real files are not."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from tests.policies.readers.documents import classic, read

import redelivery
from redelivery.policies.files.expressions import bounded_expression


@pytest.mark.parametrize(
    "text",
    [
        *(
            "(a+)+",
            "(a*)*x",
            "([\\w.]+)+!",
            "(a|aa)+$",
            "(.*)*",
            "(a|b*)*x",
            "((a+))+b",
            "(?:a?){40}a{40}",
            "x(a+a+)+y",
        ),
        *("(\\w+\\s?)*$", "(?=(a+)+b)", "(|a)+"),
    ],
)
def test_what_could_take_for_ever_is_refused(text: str) -> None:
    with pytest.raises(redelivery.ConfigError, match="could take for ever"):
        bounded_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".*", "^q\\.", ".*[0-9]{3}", "orders|returns", "(orders|returns)\\..*", "^(?!amq\\.).*", "(\\w+\\.)+x"),
        *("^ha\\.", "auto\\..*", "(ab)+", "(a|b)*", "(\\.[a-z]+)*", "a{2,4}", "[^.]+\\.dlq$", "(?i)dlq.*", "(?:a+)"),
        *("(foo\\d+)+", "(/[^/]+)*$"),
    ],
)
def test_what_files_have_is_read(text: str) -> None:
    bounded_expression(text)


@pytest.mark.parametrize(
    ("text", "says"), [("a" * 501, "500 are read at most"), ("(" * 249 + "a" + ")*" * 125, "not a reg")]
)
def test_a_long_or_broken_one_is_refused(text: str, says: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=says):
        bounded_expression(text)


def test_deciding_takes_no_time_itself() -> None:
    began = time.monotonic()
    deep = "".join(f"({chr(0x4E00 + n)}[{chr(0x5000 + n)}-{chr(0x5100 + n)}]*" for n in range(40)) + ")*" * 40
    with contextlib.suppress(redelivery.ConfigError):
        bounded_expression(deep)
    assert time.monotonic() - began < 5


def test_readers_refuse_them_with_their_place() -> None:
    bad = "([a-z.]+)+!"
    policy = {"policies": [{"name": "x", "pattern": bad, "definition": {}}]}
    creation = {"nodeAutoCreationPolicies": [{"pattern": bad, "nodeType": "queue"}], "queues": []}
    for document in (policy, creation):
        with pytest.raises(redelivery.ConfigError, match=r"file\.xml:1:\d+: .*could take for ever"):
            read(json.dumps(document))
    with pytest.raises(redelivery.ConfigError, match="could take for ever"):
        classic(f'<plugins><discardingDLQBrokerPlugin dropAll="false" dropOnly="{bad}"/></plugins>')
