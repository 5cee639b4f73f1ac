"""RabbitMQ as the tests want it: STOMP, AMQP 1.0 and its management over HTTP; everybody logs in as guest.

| queue | is |
|---|---|
| `full.…` | refuses a send as soon as it holds 64 KiB (overflow reject-publish) |
| any of the virtual host `second` | is not that of the same name elsewhere; the user `second` may use it alone |
| `denied.…` | what the user `restricted` (password `restricted`) may not make, and so not send to over STOMP |

Natively it is a node of its own, with a port mapper (epmd) of its own that ends with it.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from string import Template

from redelivery.testing.brokers.sources import SystemPackage
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site

_SECOND = "second"
_PLUG_INS = ("rabbitmq_stomp", "rabbitmq_amqp1_0", "rabbitmq_management")
_CONFIGURATION = """\
listeners.tcp.1 = $host:$amqp
stomp.listeners.tcp.1 = $host:$stomp
management.tcp.port = $http
management.tcp.ip = $host
loopback_users = none
load_definitions = $folder/definitions.json
log.console.level = warning
"""

# Debian's /usr/sbin/rabbitmq-server would become another user; the programs behind it do not.
_START = Template("""\
export PATH="$programs:$$PATH"
export HOME='$data' ERL_EPMD_PORT=$epmd ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_DIST_PORT=$erlang
export RABBITMQ_NODENAME=redelivery@localhost RABBITMQ_CONF_ENV_FILE='$folder/none.conf'
export RABBITMQ_CONFIG_FILE='$folder/rabbitmq.conf' RABBITMQ_ENABLED_PLUGINS_FILE='$folder/enabled_plugins'
export RABBITMQ_MNESIA_BASE='$data' RABBITMQ_LOG_BASE='$data' RABBITMQ_LOGS=-
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
mkdir -p '$data'
epmd &
exec rabbitmq-server
""")


def _user(name: str, configure: str, vhost: str = "/") -> tuple[dict[str, str], dict[str, str]]:
    salt = b"salt"
    hashed = b64encode(salt + hashlib.sha256(salt + name.encode()).digest()).decode()
    algorithm = "rabbit_password_hashing_sha256"
    tags = "administrator" if name == "guest" else ""
    user = {"name": name, "password_hash": hashed, "hashing_algorithm": algorithm, "tags": tags}
    return user, {"user": name, "vhost": vhost, "configure": configure, "write": ".*", "read": ".*"}


def configure(site: Site, *, plugins: Sequence[str] = _PLUG_INS) -> None:
    """Write rabbitmq.conf and what it names; the users and policies are definitions that are loaded at each start."""
    users, permissions = zip(
        _user("guest", ".*"),
        _user("restricted", r"^(?!denied\.).*"),
        _user("second", ".*", _SECOND),
        strict=True,
    )
    _, of_guest = _user("guest", ".*", _SECOND)
    full = {"max-length-bytes": 65536, "overflow": "reject-publish"}
    definitions = {
        "users": users,
        "vhosts": [{"name": "/"}, {"name": _SECOND}],
        "permissions": [*permissions, of_guest],
        "policies": [
            {
                "vhost": "/",
                "name": "full",
                "pattern": r"^full\.",
                "apply-to": "queues",
                "definition": full,
                "priority": 1,
            }
        ],
    }
    values = {**site.ports, "host": site.host, "folder": site.folder, "data": site.data}
    site.write("definitions.json", json.dumps(definitions))
    site.write("rabbitmq.conf", Template(_CONFIGURATION).substitute(values))
    site.write("enabled_plugins", f"[{','.join(plugins)}].\n")


def command(site: Site) -> Sequence[str]:
    """The package's own program, not its wrapper."""
    return script(site, "/usr/lib/rabbitmq/bin")


def script(site: Site, programs: str) -> Sequence[str]:
    """Set the node's environment, and start what is in these folders; it keeps its messages in the site's data."""
    values = {**site.ports, "folder": site.folder, "data": site.data, "programs": programs}
    site.write("start.sh", _START.substitute(values))
    return ["sh", str(site.folder / "start.sh")]


def system(version: str) -> SystemPackage:
    """The system's own RabbitMQ, if its version begins so: that of Debian 13 is a 4."""
    programs = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")
    return SystemPackage(programs, "rabbitmq-server", version=version, folders="/usr/lib/rabbitmq/lib/rabbitmq_server-")


SPEC = BrokerSpec(
    name="rabbitmq",
    title="RabbitMQ 3.10",
    tried=("3.10.8",),
    source=system("3."),
    image=Image(
        "rabbitmq:3.10-management",
        {"rabbitmq.conf": "/etc/rabbitmq/rabbitmq.conf", "enabled_plugins": "/etc/rabbitmq/enabled_plugins"},
    ),
    ports={"stomp": 61613, "amqp": 5672, "http": 15672},
    configure=configure,
    command=command,
    more_ports=("epmd", "erlang"),
    login="guest:guest",
    ready=" completed with ",  # " plugins.": until then a client may be cut off, though the ports listen
)
