"""The real brokers that tests can run against: one entry of `SPECS` for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redelivery.testing import activemq


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """How one broker is found, configured and started.

    ``artifact``: Maven coordinates of its distribution, a tar.gz whose single folder is ``folder``.
    ``image`` and ``container_ports``: the same as a container image; ports by protocol, of every protocol that is used.
    ``configure``: writes the configuration into a folder and returns its files, by the path they have in the image;
    it is given the address to listen on and the port of each protocol.
    ``command``: what starts the distribution: its home, the folder of the configuration, and a folder for its data.
    """

    name: str
    title: str
    artifact: str
    folder: str
    image: str
    container_ports: Mapping[str, int]
    configure: Callable[[Path, str, Mapping[str, int]], Mapping[str, Path]]
    command: Callable[[Path, Path, Path], Sequence[str]]


SPECS: Mapping[str, BrokerSpec] = {
    "activemq": BrokerSpec(
        name="activemq",
        title="ActiveMQ Classic 5.18.3",
        artifact="org.apache.activemq:apache-activemq:5.18.3:tar.gz:bin",
        folder="apache-activemq-5.18.3",
        image="apache/activemq-classic:5.18.3",
        container_ports={"stomp": 61613, "amqp": 5672, "openwire": 61616},
        configure=activemq.configure,
        command=activemq.command,
    ),
}
