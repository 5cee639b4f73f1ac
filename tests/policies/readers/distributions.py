"""The configuration files that the real brokers bring along, in their distributions."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from redelivery.testing.brokers.specs import activemq, artemis, qpid

SPECS: Final = (activemq.SPEC, artemis.SPEC, qpid.SPEC)  # HornetQ's jars and RabbitMQ's package have none
_IN_JARS: Final = (
    ("artemis", "artemis-cli-*.jar", "org/apache/activemq/artemis/cli/commands/etc/broker.xml"),  # a template
    ("qpid", "qpid-broker-core-*.jar", "initial-config.json"),
)


def files_of(broker: str, home: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each; ``home``: the folder of its distribution."""
    for folder in ("conf", "examples/conf"):
        for path in sorted((home / folder).glob("activemq*.xml")):
            yield path.name, path.read_bytes()
    for of, jars, name in _IN_JARS:
        if of == broker:
            (jar,) = (home / "lib").glob(jars)
            with zipfile.ZipFile(jar) as packed:
                yield name.rpartition("/")[2], packed.read(name)


def number_of_files() -> int:
    """How many there are; fetches what is not there."""
    return sum(len(list(files_of(spec.name, spec.source.fetch()))) for spec in SPECS)
