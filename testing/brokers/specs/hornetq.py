"""HornetQ as the tests want it: there is no distribution to be had, so its jars, started by HornetQ.java beside this.

Anonymous clients may do everything. HornetQ's STOMP knows no queue that was not made before; the launcher makes a
queue when it is first named. Its AMQP cannot acknowledge, and is there to be refused.

| queue | is |
|---|---|
| `full.#` | refuses a send as soon as it holds 64 KiB (address-full-policy FAIL) |
| `expiring.#` | sends what expires there to `ExpiryQueue`, within a second |
| `allowed.#` | the only queues that the user `restricted` (password `restricted`) may send to; he may read all |
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from redelivery.testing.brokers.sources import MavenJars
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site

_LAUNCHER = Path(__file__).with_name("HornetQ.java")


def configure(site: Site) -> None:
    """Put the launcher beside the store; its arguments are the configuration."""
    site.write(_LAUNCHER.name, _LAUNCHER.read_text(encoding="utf-8"))


def command(site: Site) -> Sequence[str]:
    """The launcher, compiled before it starts."""
    classes = site.folder / "classes"
    compiler = ["javac", "-cp", f"{site.home}/*", "-d", str(classes), str(site.folder / _LAUNCHER.name)]
    broker = [
        "java",
        "-Xmx1g",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "-cp",
        f"{classes}:{site.home}/*",
        "org.hornetq.core.protocol.stomp.HornetQ",
        site.host,
        str(site.ports["stomp"]),
        str(site.ports["amqp"]),
        str(site.data),
    ]
    return ["sh", "-c", f"{shlex.join(compiler)} && exec {shlex.join(broker)}"]


SPEC = BrokerSpec(
    name="hornetq",
    title="HornetQ 2.4.9",
    tried=("2.4.9",),
    source=MavenJars(
        "hornetq-2.4.9.Final",
        [f"org.hornetq:hornetq-{part}:2.4.9.Final" for part in ("server", "stomp-protocol", "amqp-protocol")],
        tools=("java", "javac"),
    ),
    image=Image("eclipse-temurin:17", has_broker=False),  # a JDK: it compiles the launcher
    ports={"stomp": 61613, "amqp": 5672},
    configure=configure,
    command=command,
    ready="HQ221007",
)
