"""Use an installed redelivery: each public module, two protocols, a rollback, the command line and the console.

Run by scripts/dist in an empty environment, with `-I`, outside of the sources; arguments: the extras that are there.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import redelivery
from redelivery.broker import EmbeddedBroker

extras = {name for name in sys.argv[1:] if name}
home = Path(redelivery.__file__).parent
assert home.is_relative_to(sys.prefix), f"not the installed package: {home}"
for name in ("aio", "broker", "events", "operate", "policies", "testing"):
    importlib.import_module(f"redelivery.{name}")
for name in ("py.typed", "web/templates/base.html", "web/static/htmx.min.js", "testing/brokers/specs/HornetQ.java"):
    assert (home / name).is_file(), name
for name in redelivery.__all__:
    getattr(redelivery, name)

wire = sys.platform != "win32"  # docs/versions.md
with EmbeddedBroker("smoke", stomp_port=0, amqp_port=0 if "amqp" in extras else None) as broker:
    for url in (broker.vm_url, *([broker.stomp_url] if wire else ()), *([broker.amqp_url] if "amqp" in extras else ())):
        with redelivery.connect(url) as connection, connection.session("transacted") as session:
            session.producer("orders").send("the moon")
            session.commit()
            consumer = session.consumer("orders")
            assert consumer.receive(timeout=30).body == "the moon"
            session.rollback()
            again = consumer.receive(timeout=30)
            assert (again.body, again.delivery_count) == ("the moon", 2)
            session.commit()


def command(*arguments: str, code: int = 0) -> str:
    program = [sys.executable, "-m", "redelivery", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)  # noqa: S603  # our own program
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


version = distribution("redelivery").version
assert command("--version").strip() == f"redelivery {version}" == f"redelivery {redelivery.__version__}"
if "cli" in extras or "console" in extras:
    assert "dlq" in command("--help")
    assert "redelivery" in command("demo", "--json")
else:
    assert "pip install" in command("--help", code=1)
if "console" in extras:
    from redelivery.web.rendering import _environment

    for name in (home / "web/templates").iterdir():
        _environment.get_template(name.name)
print("redelivery", version, "works", *sorted(extras))
