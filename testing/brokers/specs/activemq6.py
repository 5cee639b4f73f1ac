"""ActiveMQ Classic 6 as the tests want it: Classic's configuration, the same as 5.18's, and its command line.

Its whole distribution is not always to be had, so it is assembled from its jars: the broker, what listens and what
stores, its reader of the configuration, and XStream and Jettison, without which its STOMP has no ``transformation``.
Its anonymous clients, users and destinations are those of `redelivery.testing.brokers.specs.activemq`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redelivery.testing.brokers.sources import MavenJars
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site
from redelivery.testing.brokers.specs import activemq

_VERSION: Final = "6.3.1"
_PARTS: Final = ("broker", "kahadb-store", "stomp", "amqp", "jaas", "spring", "console")
# As its own distribution has them, but for the logger.
_MORE: Final = (
    "org.springframework:spring-context:7.0.8",
    "com.thoughtworks.xstream:xstream:1.4.21",
    "org.codehaus.jettison:jettison:1.5.7",
    "org.slf4j:slf4j-simple:2.0.18",
)


def command(site: Site) -> Sequence[str]:
    """The command that starts Classic 6; its messages (KahaDB) are in the site's data, its log is its output."""
    return [
        "java",
        "-Xmx2g",
        f"-Dactivemq.home={site.home}",
        f"-Dactivemq.base={site.home}",
        f"-Dactivemq.data={site.data}",
        "-cp",
        f"{site.home}/*",
        "org.apache.activemq.console.command.ShellCommand",
        "start",
        f"xbean:file:{site.folder / 'activemq.xml'}",
    ]


SPEC = BrokerSpec(
    name="activemq6",
    title=f"ActiveMQ Classic {_VERSION}",
    tried=(_VERSION,),
    source=MavenJars(
        f"activemq-{_VERSION}", [*(f"org.apache.activemq:activemq-{each}:{_VERSION}" for each in _PARTS), *_MORE]
    ),
    image=Image("eclipse-temurin:17", has_broker=False),
    ports={"stomp": 61613, "amqp": 5672, "openwire": 61616},
    configure=activemq.configure,
    command=command,
    ready=") started",  # after its name and id
)
