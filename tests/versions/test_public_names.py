"""A public name lives two minor versions after its warning: the lists of earlier versions are compared with this one.

`names/0.1.0.txt` is the list at the last commit with that number; a release adds its own. A name that is to go is
written into `names/deprecated.txt` with the version that first warns; it stays as an alias that warns.
"""

from __future__ import annotations

import pytest
from tests.versions.public import LISTS, MODULES, aliases, members, number, public_names, warns, wrong

from redelivery.model.version import VERSION

EARLIER = sorted((path.stem for path in LISTS.glob("[0-9]*.txt")), key=number)


def lines(name: str) -> list[str]:
    return [line for line in (LISTS / f"{name}.txt").read_text(encoding="utf-8").splitlines() if line[:1] not in "#"]


TOO_EARLY = "m.b is gone too early: it has warned since 0.2.0 and lives 2 minor versions"
DEPRECATED = dict(line.rsplit(" ", 1) for line in lines("deprecated"))


@pytest.mark.parametrize("version", EARLIER)
def test_no_name_of_an_earlier_version_is_gone_without_its_warning(version: str) -> None:
    if number(version) > number(VERSION):
        pytest.fail(f"{version} is later than {VERSION}")
    names = lines(version)
    now = {*public_names(), *aliases(names)}
    assert wrong(names, now, DEPRECATED, VERSION, [name for name in aliases(DEPRECATED) if warns(name)]) == []


def test_each_deprecated_name_was_public_once() -> None:
    known = {name for version in EARLIER for name in lines(version)}
    assert [name for name in DEPRECATED if name not in known] == []


def test_the_lists_have_what_a_user_writes() -> None:
    names = set(lines("0.1.0"))
    for name in (
        "redelivery.connect(reconnect)",
        "redelivery.Session.commit",
        "redelivery.aio.Consumer.receive(timeout)",
        "redelivery.RedeliveryPolicy(maximum_redeliveries)",
        "redelivery.DeadLetterInfo.origin",
        "redelivery.events.Reconnected",
        "redelivery.broker.EmbeddedBroker.queue_depth",
        "$ redelivery dlq replay --canary",
    ):
        assert name in names
    assert all(any(name.startswith(f"{module}.") for name in names) for module in MODULES)


@pytest.mark.parametrize(
    ("now", "deprecated", "version", "warned", "said"),
    [
        (["m.a", "m.b"], {}, "0.2.0", [], []),
        (["m.a"], {}, "0.2.0", [], ["m.b is gone without a DeprecationWarning"]),
        (["m.a", "m.b"], {"m.b": "0.2.0"}, "0.2.0", ["m.b"], []),
        (["m.a", "m.b"], {"m.b": "0.2.0"}, "0.2.0", [], ["m.b is deprecated, but its use gives no DeprecationWarning"]),
        (["m.a"], {"m.b": "0.2.0"}, "0.3.4", [], [TOO_EARLY]),
        (["m.a"], {"m.b": "0.2.0"}, "0.4.0", [], []),
        (["m.a"], {"m.b": "0.9.0"}, "1.0.0", [], []),
    ],
)  # fmt: skip
def test_what_breaks_the_promise_is_found(
    now: list[str], deprecated: dict[str, str], version: str, warned: list[str], said: list[str]
) -> None:
    assert wrong(["m.a", "m.b"], now, deprecated, version, warned) == said


def test_members_are_what_we_wrote() -> None:
    from redelivery import AckMode, JMSError

    assert "TRANSACTED" in members(AckMode)
    assert "with_traceback" not in members(JMSError)
