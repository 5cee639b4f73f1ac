"""The broker that the tests of Artemis' addresses share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.promises.real.addressed import Artemis, file
from tests.promises.real.started import ARTEMIS, running

from redelivery.testing.brokers.spec import Site


@pytest.fixture(scope="package")
def addressed() -> Iterator[Artemis]:
    texts: list[str] = []

    def text(site: Site) -> str:
        texts.append(file(site))
        return texts[-1]

    with running(ARTEMIS, text) as started, closing(Artemis(started.host, dict(started.ports), texts[-1])) as found:
        yield found


@pytest.fixture
def broker(addressed: Artemis) -> Artemis:
    """The broker, without what other tests have left."""
    addressed.empty()
    return addressed
