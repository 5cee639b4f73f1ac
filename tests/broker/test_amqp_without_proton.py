"""Without the extra `amqp` everything else works, and the AMQP port says what is missing."""

from __future__ import annotations

import subprocess
import sys

from redelivery.model.version import lacks_proton

HOW = lacks_proton(ModuleNotFoundError(name="proton")) or ""
_HIDDEN = """
import sys
for name in ("proton", "cproton", "cproton_ffi"):
    sys.modules[name] = None
"""


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=150)  # noqa: S603  # our own code
    return run.stdout


def test_the_port_says_how_to_get_it() -> None:
    code = """
from redelivery import ConfigError
from redelivery.broker import EmbeddedBroker
with EmbeddedBroker("here", stomp_port=0) as broker:
    assert broker.stomp_url
try:
    EmbeddedBroker("there", amqp_port=0)
except ConfigError as error:
    print(error)
"""
    assert python(_HIDDEN + code) == f"amqp_port: the embedded broker needs {HOW}\n"


def test_proton_is_imported_by_the_port_only() -> None:
    code = """
import sys
from redelivery.broker import EmbeddedBroker
with EmbeddedBroker("here", stomp_port=0):
    codec = "redelivery.transports.amqp.codec"  # reads what RabbitMQ hands on over STOMP, and needs no proton
    amqp = {name for name in sys.modules if "transports.amqp." in name and not name.startswith(codec)}
    print(sorted(amqp | {name for name in sys.modules if "proton" in name}))
"""
    assert python(code).strip() == "[]"
