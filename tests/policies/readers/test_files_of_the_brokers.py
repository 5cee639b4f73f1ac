"""The files that the real brokers bring along are read without a problem, and explained."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.policies.readers.distributions import SPECS, files_of

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.spec import BrokerSpec

EXPLAINED = {
    "activemq": {("ActiveMQ Classic", 1, "ActiveMQ.DLQ"), ("ActiveMQ Classic", 1, "DLQ.orders")},
    "artemis": {("Artemis", 10, "DLQ")},
    "qpid": {("Qpid Broker-J", None, None)},
}
FEWEST = {"activemq": 15, "artemis": 1, "qpid": 1}


@pytest.mark.long_form
@pytest.mark.timeout(150)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_each_is_read_and_explained_and_the_embedded_broker_starts_with_it(spec: BrokerSpec, tmp_path: Path) -> None:
    missing = spec.source.missing(to_run=False)
    if missing is not None:
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    explained = set()
    files = list(files_of(spec.name, spec.source.fetch()))
    for number, (name, content) in enumerate(files):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        path.write_bytes(content)
        rules = redelivery.policies.read(path).explain("orders")  # a problem of the file would raise
        explained.add((rules.broker, rules.maximum, rules.dead_letter))
        with EmbeddedBroker("own", config=path) as broker:
            assert broker.core.config.rules is not None
    assert len(files) >= FEWEST[spec.name]
    assert explained == EXPLAINED[spec.name]
