"""Qpid Broker-J as the tests want it: one JSON file, a store on disk (BDB), queues made when they are first used.

| queue | is |
|---|---|
| `full.…` | refuses a send as soon as it holds 64 KiB (overflow policy REJECT) |
| `denied.…` | what the user `restricted` (password `restricted`) may not send to |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from redelivery.testing.brokers.sources import MavenArchive
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site

_RULES = """\
CONFIG DEFAULTALLOW=true
ACL DENY restricted PUBLISH EXCHANGE ROUTINGKEY="denied.*"
ACL ALLOW ALL ALL
"""


def _queues(pattern: str, **attributes: object) -> dict[str, Any]:
    when = {"createdOnPublish": "true", "createdOnConsume": "true"}
    return {"pattern": pattern, **when, "nodeType": "queue", "attributes": attributes}


def configure(site: Site) -> None:
    """Write broker.json, which the broker reads at its first start and keeps its own copy of."""
    rules = site.folder / "rules.acl"
    rules.write_text(_RULES, encoding="utf-8")
    queues = [
        _queues(r"full\..*", overflowPolicy="REJECT", maximumQueueDepthBytes=65536),
        _queues(".*"),
    ]
    users = [{"name": name, "type": "managed", "password": name} for name in ("guest", "restricted")]
    broker = {
        "name": "qpid",
        "modelVersion": "9.0",
        "authenticationproviders": [
            {"name": "users", "type": "Plain", "secureOnlyMechanisms": "[]", "users": users},
        ],
        "accesscontrolproviders": [{"name": "rules", "type": "AclFile", "path": str(rules), "priority": 1}],
        "ports": [
            {
                "name": "AMQP",
                "type": "AMQP",
                "port": site.ports["amqp"],
                "bindingAddress": site.host,
                "authenticationProvider": "users",
                "protocols": ["AMQP_1_0"],
                "virtualhostaliases": [  # whatever a client calls it; the usual aliases ask DNS for that
                    {"name": "default", "type": "defaultAlias"},
                    {"name": "any", "type": "patternMatchingAlias", "pattern": ".*", "virtualHostNode": "default"},
                ],
            }
        ],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": "JSON",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps({"type": "BDB", "nodeAutoCreationPolicies": queues}),
            }
        ],
    }
    site.write("broker.json", json.dumps(broker, indent=2))


def command(site: Site) -> Sequence[str]:
    """The command that Broker-J's script `qpid-server` runs."""
    return [
        "java",
        "-Xmx512m",
        "-XX:MaxDirectMemorySize=1536m",
        f"-DQPID_HOME={site.home}",
        f"-DQPID_WORK={site.data}",
        "-Dvirtualhost.housekeepingCheckPeriod=500",  # ms between two looks at what has expired, and not 30 s
        "-cp",
        f"{site.home / 'lib'}/*",
        "org.apache.qpid.server.Main",
        "-icp",
        str(site.folder / "broker.json"),
    ]


SPEC = BrokerSpec(
    name="qpid",
    title="Qpid Broker-J 9.2.1",
    tried=("9.2.1",),
    source=MavenArchive("org.apache.qpid:apache-qpid-broker-j:9.2.1:tar.gz:bin", "qpid-broker/9.2.1"),
    image=Image("eclipse-temurin:17-jre", has_broker=False),
    ports={"amqp": 5672},
    configure=configure,
    command=command,
    login="guest:guest",
    ready="BRK-1004",  # until then the answer to a client is that the virtual host is not active
)
