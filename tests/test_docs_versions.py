"""The versions that README and guide name are those that the tests run: of testing/brokers/specs."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from tests.conformance.pairs import KINDS

import redelivery
from redelivery.testing.brokers.real import RealBroker
from redelivery.testing.brokers.specs import SPECS

ROOT = Path(__file__).parents[1]
SAYS_ANOTHER = {"hornetq": "2.5.0.SNAPSHOT"}  # which its jars of 2.4.9 were built with


def product(name: str) -> str:
    return SPECS[name].title.rpartition(" ")[0]


def brokers(protocol: str) -> dict[str, list[str]]:
    """The versions of each product that a pair of the conformance suite has over that protocol."""
    found: dict[str, list[str]] = {}
    for name, spec in SPECS.items():
        if any(kind.protocol == protocol and kind.broker == name for kind in KINDS.values()):
            found.setdefault(product(name), []).extend(spec.tried)
    return found


def listed(versions: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(versions[:-1]), versions[-1])))


def phrase(protocol: str) -> str:
    """As README has it: ActiveMQ Classic 5.18.3 and 6.3.1, …"""
    return ", ".join(f"{name} {listed(versions)}" for name, versions in brokers(protocol).items())


def table() -> str:
    """As the guide has it."""
    products = dict.fromkeys(product(name) for name in SPECS)
    rows = (
        f"| {name} | {' | '.join(listed(brokers(protocol).get(name, ['no'])) for protocol in ('stomp', 'amqp'))} |"
        for name in products
    )
    return "\n".join(("| broker | over STOMP | over AMQP 1.0 |", "|---|---|---|", *rows, ""))


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_the_readme_names_the_versions_that_are_run(protocol: str) -> None:
    title = {"stomp": "STOMP 1.2 and 1.1", "amqp": "AMQP 1.0"}[protocol]
    assert f"| {title} on {phrase(protocol)}; TLS" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["guide/brokers.md", "versions.md"])
def test_the_pages_have_the_table_of_versions(page: str) -> None:
    assert f"\n\n{table()}\n" in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_what_is_supported_are_the_pythons_that_are_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r"Python :: 3\.\d+$", each)]
    assert f"| Python | {', '.join(pythons)} (CPython)" in (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert tuple(pythons) == runpy.run_path(str(ROOT / "scripts" / "pythons.py"))["PYTHONS"]
    assert project["requires-python"] == f">={pythons[0]}"


def test_those_who_set_up_the_tests_read_the_same_versions() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name, spec in SPECS.items():
        version = spec.title.rpartition(" ")[2]
        assert spec.tried
        assert any(each.startswith(version) for each in spec.tried)
        assert f"| {product(name).replace('ActiveMQ Artemis', 'Artemis')} {version}" in text, spec.title


@pytest.mark.parametrize("broker", SPECS)
def test_a_real_broker_says_that_it_is_of_that_version(broker: str, request: pytest.FixtureRequest) -> None:
    real: RealBroker = request.getfixturevalue(f"redelivery_{broker}")
    url = real.amqp_url if broker == "qpid" else real.stomp_url
    with redelivery.connect(url) as connection:
        said = connection.metadata.provider_version
    assert said.startswith(SAYS_ANOTHER.get(broker) or real.title.rpartition(" ")[2])
