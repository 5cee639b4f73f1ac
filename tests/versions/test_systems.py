"""macOS and Windows, as far as Linux can show: what these lack is guarded, and the rest works without it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.versions.systems import MODULES, uses
from tests.versions.taken import CLIENTS, on_windows

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.name for path in (ROOT / "src" / "redelivery").iterdir() if (ROOT / path.name).is_dir())
FILES = sorted([*(ROOT / "src").glob("*/*.py"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))])

# Used without a guard beside it: what refuses before it is reached.
BEHIND = {
    "cli/watching/screen.py": "`redelivery top` prints lines on Windows",
    "testing/brokers/supervise.py": "NativeBroker.start() refuses on Windows",
}


# As above, on macOS.
BEHIND_ON_MACOS = {
    "spark/log/claims.py": "where it cannot be read, a claim has no number of the system's start",
    "testing/brokers/native.py": "taken where it is a folder",
}


@cache
def found(*, linux_only: bool) -> dict[str, list[str]]:
    unguarded = {}
    for path in FILES:
        names = sorted({name for _, name in uses(path.read_text(encoding="utf-8"), linux_only=linux_only)})
        if names:
            unguarded[str(path.relative_to(ROOT))] = names
    return unguarded


@pytest.mark.parametrize(("linux_only", "behind"), [(False, BEHIND), (True, BEHIND_ON_MACOS)], ids=["windows", "macos"])
def test_what_another_system_lacks_is_guarded(linux_only: bool, behind: dict[str, str]) -> None:
    unguarded = found(linux_only=linux_only)
    assert {path: names for path, names in unguarded.items() if path not in behind} == {}
    assert sorted(unguarded) == sorted(behind)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import fcntl", ["fcntl"]),
        ("from termios import tcgetattr", ["termios"]),
        ("if sys.platform != 'win32':\n    import fcntl", []),
        ("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None", []),
        ("try:\n    import fcntl\nexcept ValueError:\n    fcntl = None", ["fcntl"]),
        ("os.fork()", ["os.fork"]),
        ("if hasattr(os, 'fork'):\n    os.fork()", []),
        ("def f():\n    if sys.platform == 'win32':\n        raise OSError\n    os.fork()", []),
        ("def f():\n    os.fork()\n    if sys.platform == 'win32':\n        raise OSError", ["os.fork"]),
        ("def f():\n    assert sys.platform != 'win32'\ndef g():\n    os.fork()", ["os.fork"]),
        ("with suppress(AttributeError):\n    os.fork()", []),
        ("getattr(select, 'poll', None)", []),
        ("Popen(['x'], preexec_fn=f)", ["Popen(preexec_fn=)"]),
        ("loop.add_signal_handler(2, end)", ["loop.add_signal_handler"]),
        ("signal.SIGTERM, os.kill, socket.socketpair()", []),
    ],
)
def test_a_use_without_a_guard_is_found(source: str, names: list[str]) -> None:
    assert [name for _, name in uses(source)] == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("open('/proc/self/status')", ["/proc/self/status"]),
        ("try:\n    open('/proc/self/status')\nexcept OSError:\n    pass", []),
        ("socket.TCP_USER_TIMEOUT", ["socket.TCP_USER_TIMEOUT"]),
        ("os.fork()", []),
    ],
)
def test_a_use_of_linux_alone_is_found(source: str, names: list[str]) -> None:
    assert [name for _, name in uses(source, linux_only=True)] == names


SESSION = """
import asyncio, redelivery, redelivery.aio
from importlib.util import find_spec
from redelivery import ConfigError
from redelivery.broker import EmbeddedBroker

broker = EmbeddedBroker("here", stomp_port=0, amqp_port=0 if find_spec("proton") else None)
broker.start()
policy = redelivery.RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0)

def sessions(url):
    with redelivery.connect(url, redelivery_policy=policy) as connection:
        with connection.session("transacted") as session:
            session.producer("orders").send("the moon")
            session.commit()
            consumer = session.consumer("orders")
            for count in (1, 2):
                message = consumer.receive(timeout=60)
                assert (message.body, message.delivery_count) == ("the moon", count)
                session.rollback()
        with connection.session() as session:
            assert session.consumer("ActiveMQ.DLQ").receive(timeout=60).body == "the moon"

async def tasks(url):
    async with redelivery.aio.connect(url) as connection, connection.session() as session:
        await (await session.producer("orders")).send("the sun")
        return (await (await session.consumer("orders")).receive(timeout=60)).body

for url in filter(None, (broker.vm_url, broker.stomp_url, find_spec("proton") and broker.amqp_url)):
    sessions(url)
    assert asyncio.run(tasks(url)) == "the sun"
for call, kind in (
    (lambda: redelivery.connect("stomp://127.0.0.1:1"), redelivery.ConnectError),
    (lambda: EmbeddedBroker("kept", store="store.db").start(), ConfigError),
):
    try:
        call()
    except kind as error:
        print(error)
broker.close()
"""
MODULES_OF_OURS = sorted(
    ".".join(("redelivery", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in FILES
    if not path.is_relative_to(ROOT / "src")
)
IMPORTS = f"""
import importlib
for name in {MODULES_OF_OURS!r}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {("redelivery", *sorted(MODULES))!r}:
            raise
print("imported")
"""


def test_everything_is_imported_without_what_windows_lacks(tmp_path: Path) -> None:
    assert on_windows(IMPORTS, tmp_path) == ["imported"]


def test_sessions_work_without_what_windows_lacks_and_the_rest_is_refused_in_one_line(tmp_path: Path) -> None:
    refused, store = on_windows(SESSION, tmp_path, CLIENTS)
    assert refused.startswith("127.0.0.1:1: ")
    assert "Connection refused" in refused
    assert store == (
        "store='store.db' cannot be opened: a store needs POSIX's file locks, which Windows lacks;"
        " without store= messages are in memory"
    )
