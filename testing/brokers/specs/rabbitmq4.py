"""RabbitMQ 4 as the tests want it: AMQP 1.0 of its core, rabbitmq_stomp, its management over HTTP; all log in as guest.

Its queues `full.…` and `denied.…` are as those of RabbitMQ 3 (`redelivery.testing.brokers.specs.rabbitmq`). Natively it
is the system's where that is of this version (Debian 13 has 4.0), and else comes from the packages of a newer Debian
(`redelivery.testing.brokers.debian`): 4.0 from Debian 13, or, with ``REDELIVERY_RABBITMQ4=4.3``, what Debian's unstable
suite has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

from redelivery.testing.brokers.debian import DebianPackages
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site
from redelivery.testing.brokers.specs import rabbitmq

_SUITES: Final = {"4.0": "trixie", "4.3": "sid"}
_VERSION: Final = os.environ.get("REDELIVERY_RABBITMQ4") or "4.0"
if _VERSION not in _SUITES:
    raise ValueError(f"REDELIVERY_RABBITMQ4={_VERSION!r} is none of {', '.join(_SUITES)}")
_ERLANG: Final = (
    *("base", "asn1", "crypto", "eldap", "inets", "mnesia", "os-mon", "parsetools", "public-key"),
    *("runtime-tools", "ssl", "syntax-tools", "tools", "xmerl"),
)
_LIBRARIES: Final = ("libc6", "libgcc-s1", "libstdc++6", "libtinfo6", "libzstd1", "libssl3t64", "zlib1g")
_SYSTEM: Final = rabbitmq.system(f"{_VERSION}.")


def command(site: Site) -> Sequence[str]:
    """As RabbitMQ 3's, with the programs of its folder; the system's, where those are it."""
    if not (site.home / "usr").is_dir():
        return rabbitmq.command(site)
    (server,) = (site.home / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin")
    return rabbitmq.script(site, f"{site.home}/usr/lib/erlang/bin:{server}")


SPEC = BrokerSpec(
    name="rabbitmq4",
    title=f"RabbitMQ {_VERSION}",
    tried=("4.0.5", "4.3.6"),
    source=_SYSTEM
    if _SYSTEM.missing() is None
    else DebianPackages(
        folder=f"rabbitmq-{_VERSION}-of-{_SUITES[_VERSION]}",
        suite=_SUITES[_VERSION],
        packages=("rabbitmq-server", *(f"erlang-{each}" for each in _ERLANG), *_LIBRARIES),
        programs=("usr/lib/erlang/erts-*/bin", "usr/lib/erlang/lib/*/priv/bin"),
        scripts=("usr/lib/erlang/bin/erl", "usr/lib/erlang/erts-*/bin/erl"),
        prefix="/usr/lib/erlang",
    ),
    image=Image(
        f"rabbitmq:{_VERSION}-management",
        {"rabbitmq.conf": "/etc/rabbitmq/rabbitmq.conf", "enabled_plugins": "/etc/rabbitmq/enabled_plugins"},
    ),
    ports={"stomp": 61613, "amqp": 5672, "http": 15672},
    configure=partial(rabbitmq.configure, plugins=("rabbitmq_stomp", "rabbitmq_management")),
    command=command,
    more_ports=("epmd", "erlang"),
    login="guest:guest",
    ready=" completed with ",
)
