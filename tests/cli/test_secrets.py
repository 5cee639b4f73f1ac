"""A password that somebody has planted is in nothing that a command prints, logs, raises or writes, whatever fails."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from tests.run.commands import CliRunner
from typer.main import get_command

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app
from redelivery.testing.brokers.real import RealBroker

SECRETS = ("hunter2-s3cret", "p@ss/w?rd#s3cret", "s3cret%€\x1b")
LONG = pytest.mark.long_form
RABBITS = ("rabbitmq", "rabbitmq4")  # let who was refused wait
each_secret = pytest.mark.parametrize(
    "secret",
    [SECRETS[1], *(pytest.param(each, marks=LONG) for each in (SECRETS[0], SECRETS[2]))],
    ids=["odd", "plain", "control"],
)
SHOWN = re.compile("s3cret|hunter2")
COMMANDS: dict[str, tuple[str, ...]] = {
    "send": ("q", "body"),
    "receive": ("q", "--timeout", "0"),
    "browse": ("q",),
    "tail": ("topic://t", "--where", "this is no selector"),
    "unsubscribe": ("s", "--yes"),
    "dlq queues": (),
    "dlq ls": ("q",),
    "dlq show": ("q",),
    "dlq groups": ("q",),
    "dlq replay": ("q", "--yes"),
    "dlq edit": ("q", "--limit", "1", "--set", "priority=1", "--yes"),
    "dlq move": ("q", "--to", "r", "--yes"),
    "dlq purge": ("q", "--yes"),
    "dlq export": ("q",),
    "dlq import": ("q", "{folder}/letters"),
    "dlq verify": ("{folder}/receipt",),
    "dlq undo": ("{folder}/receipt", "--yes"),
    "dlq resume": ("{folder}/receipt", "--yes"),
    "doctor": ("--watch", "0"),
    "demo": ("--json",),
    "run": ("nosuch:app",),
    "top": ("--once",),
}
WITHOUT_A_BROKER = {"policy", "broker", "dlq resolved", "console"}  # console: tests/web


def leaves(command: Any, name: str = "") -> Iterator[str]:
    for title, each in getattr(command, "commands", {}).items():
        whole = f"{name} {title}".strip()
        yield from leaves(each, whole) if hasattr(each, "commands") and title != "policy" else (whole,)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "letters").write_text('{"body": "x", "body_type": "text"}\n')
    head = {"v": 1}
    (tmp_path / "receipt").write_text(f"{head}\n")
    return tmp_path


@pytest.fixture(scope="module")
def plain() -> Iterator[int]:
    """The port of a broker without TLS, which knows no login."""
    with EmbeddedBroker(f"secrets-{uuid4().hex}", stomp_port=0) as broker:
        broker.send("q", "x")
        yield int(broker.stomp_url.rpartition(":")[2])


@pytest.fixture(scope="module")
def rude() -> Iterator[int]:
    """The port of a server that says back what it was sent, in an ERROR of STOMP, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    peer.settimeout(2)
                    said = peer.recv(65536).replace(b"\0", b"")
                    peer.sendall(b"ERROR\nmessage:who are you\n\n" + said + b"\0")

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        ended.set()
        socket.create_connection(server.getsockname()).close()
        thread.join(10)


def everything(done: Any, caplog: pytest.LogCaptureFixture) -> str:
    """All that somebody could read of a command."""
    raised = "" if done.exc_info is None else "".join(traceback.format_exception(*done.exc_info))
    said = "\n".join((done.output, raised, caplog.text))
    caplog.clear()
    return said


def test_all_commands_are_among_them() -> None:
    found = set(leaves(get_command(app)))
    assert found - WITHOUT_A_BROKER == set(COMMANDS)


def at_once(secret: str) -> Iterator[str]:
    """URLs of which the wrong is seen soon, with a password in each."""
    at = f"user:{quote(secret, safe='')}@127.0.0.1"
    yield f"stomp://{at}:1"  # nobody is there
    yield f"stomp://{at}:1?nosuch=1"
    yield f"stomp://{at}:notaport"
    yield f"failover:(stomp://{at}:1,stomp://{at}:x)"
    yield f"nosuch://{at}:1"
    yield f"stomp://user:{secret}@127.0.0.1:1"  # not percent-encoded


def later(secret: str, plain: int, rude: int) -> Iterator[str]:
    """URLs of which the wrong is seen when there is a connection."""
    at = f"user:{quote(secret, safe='')}@127.0.0.1"
    yield f"stomp+ssl://{at}:{plain}"  # no TLS is
    yield f"stomp://{at}:{rude}"
    yield f"amqp://{at}:{plain}"  # which speaks STOMP
    yield f"failover:(stomp://{at}:1,stomp+ssl://{at}:{plain})?startupMaxReconnectAttempts=1"
    yield f"stomp://{at}:{plain}"  # which takes any


@each_secret
def test_a_password_in_a_url_is_in_nothing(secret: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    urls = list(at_once(secret))
    for at, (name, given) in enumerate(COMMANDS.items(), SECRETS.index(secret)):
        arguments = [*name.split(), *(each.format(folder=folder) for each in given)]
        for url in (urls[at % 3], urls[at % 3 + 3]):  # with all secrets each of them
            done = CliRunner().invoke(app, [*arguments, "--url", url])
            assert done.exit_code in (1, 2), (name, url, done.output)
            assert SHOWN.search(everything(done, caplog)) is None, (name, url, done.output)
    written = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert SHOWN.search("".join(written)) is None


@each_secret
def test_a_password_is_in_nothing_that_a_connection_leads_to(
    secret: str, plain: int, rude: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for url in later(secret, plain, rude):
        for command in (("top", "--once"), ("doctor", "--watch", "0"), ("dlq",), ("browse", "nothing")):
            done = CliRunner(env={"REDELIVERY_URL": url}).invoke(app, [*command, "--connect-timeout", "2"])
            assert SHOWN.search(everything(done, caplog)) is None, (url, done.output)


@each_secret
def test_a_password_elsewhere_is_in_nothing(
    secret: str, plain: int, rude: int, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (folder / "password").write_text(secret)
    management = f"http://user:{quote(secret, safe='')}@127.0.0.1:{rude}"
    for url in (f"stomp://127.0.0.1:{plain}", f"stomp://127.0.0.1:{rude}", "stomp://127.0.0.1:1"):
        for options in (
            ("--user", "ada", "--password-file", str(folder / "password")),
            ("--management", management),
            ("--management", f"{management}/api?x"),
            ("--management", f"http://user:{secret}@127.0.0.1:{rude}"),
            ("--management", management, "--dialect", "rabbitmq"),
            ("--management", management, "--dialect", "artemis"),
            ("--management", management, "--dialect", "activemq"),
        ):
            for command in (("top", "--once"), ("dlq", "queues")):
                done = CliRunner().invoke(app, [*command, "--url", url, *options, "--connect-timeout", "2"])
                assert SHOWN.search(everything(done, caplog)) is None, (url, options, done.output)


@pytest.mark.parametrize("broker", ["activemq", "qpid", *(pytest.param(each, marks=LONG) for each in RABBITS)])
def test_a_password_that_a_broker_refuses_is_in_nothing(
    broker: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    found: RealBroker = request.getfixturevalue(f"redelivery_{broker}")
    for url in (found.urls[each] for each in ("stomp", "amqp") if each in found.urls):
        wrong = re.sub(r"//(.*@)?", "//admin:hunter2-s3cret@", url)
        for command in (("top", "--once"), ("send", "q", "x")):
            done = CliRunner().invoke(app, [*command, "--url", wrong])
            assert done.exit_code == 1, done.output
            assert SHOWN.search(everything(done, caplog)) is None, done.output


def test_no_object_and_no_traceback_shows_a_password(plain: int) -> None:
    url = f"stomp://user:hunter2-s3cret@127.0.0.1:{plain}"
    app_ = redelivery.App(url)
    with redelivery.connect(url, management="http://m:hunter2-s3cret@127.0.0.1:1") as connection:
        said = (repr(connection), connection.url, repr(connection.management), repr(app_), str(vars(redelivery)))
        assert SHOWN.search(" ".join(said)) is None
    encrypted = url.replace("stomp:", "stomp+ssl:")
    with pytest.raises(redelivery.ConnectError) as raised:
        redelivery.connect(encrypted, tls=ssl.create_default_context())
    assert SHOWN.search("".join(traceback.format_exception(raised.value))) is None
