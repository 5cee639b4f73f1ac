"""How a broker is named is the same on every command: certificates, who logs in, which broker it is, its time-out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer
from tests.cli.brokers import run
from tests.examples.tls_front import make_certificates, tls_front
from tests.run.commands import CliRunner

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app
from redelivery.cli.parts.broker import OPTIONS

WITHOUT = {"policy", "broker"}  # they use none, or are one


def commands(group: Any, *names: str) -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        if name in WITHOUT:
            continue
        if hasattr(each, "commands"):
            yield from commands(each, *names, name)
        else:
            yield " ".join((*names, name)), each


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_them(name: str) -> None:
    has = {option for each in COMMANDS[name].params for option in each.opts}
    assert {f"--{each.replace('_', '-')}" for each in ("url", *OPTIONS)} <= has
    assert {"--ca", "--cert", "--key", "--user", "--password-file", "--dialect", "--vhost", "--connect-timeout"} <= has


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"tls-{uuid4().hex}", stomp_port=0) as broker:
        yield broker


def test_a_private_ca_and_a_client_certificate(broker: EmbeddedBroker, certificates: Path) -> None:
    ca = ("--ca", str(certificates / "ca.pem"))
    own = ("--cert", str(certificates / "client.pem"), "--key", str(certificates / "client.key"))
    with tls_front(broker.stomp_url, certificates) as port:
        url = f"stomp+ssl://localhost:{port}"
        assert run(url, "send", "orders", "x", *ca, *own).stdout == "1 sent to queue://orders\n"
        assert "certificate" in run(url, "send", "orders", "x", *own, code=1).stderr.lower()
        assert run(url, "dlq", "ls", "orders", *ca, *own).stdout
        assert "no connection" not in run(url, "doctor", "--watch", "0", *ca, *own).output
        assert run(url, "receive", "orders", *ca, *own).stdout == "x\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--ca", "{folder}/none.pem"), "--ca: {folder}/none.pem has no certificates that can be read"),
        (("--ca", "{folder}/empty"), "--ca: {folder}/empty has no certificates"),
        (("--cert", "{folder}/empty"), "--cert: {folder}/empty: no certificate with its key"),
        (("--key", "{folder}/client.key"), "--key has no effect without --cert"),
        (("--cert", "{folder}/client.pem", "--key", "{folder}/ca.key"), "--cert, --key: "),
        (("--password-file", "{folder}/none"), "--password-file: {folder}/none cannot be read: No such file"),
        (("--password-file", "{folder}/empty"), "--password-file: the first line of {folder}/empty is empty"),
        (("--dialect", "activmq"), "dialect='activmq' is not known"),
        (("--connect-timeout", "0"), "connect_timeout=0"),
        (("--vhost", ""), "vhost=''"),
    ],
    ids=str,
)
def test_what_is_wrong_is_wrong_usage(certificates: Path, arguments: tuple[str, ...], says: str) -> None:
    (certificates / "empty").write_text("", encoding="utf-8")
    given = [each.format(folder=certificates) for each in arguments]
    for command in (("browse", "orders"), ("doctor",)):
        done = run("stomp+ssl://127.0.0.1:9", *command, *given, code=2)
        assert says.format(folder=certificates) in done.stderr


def test_certificates_without_encryption_are_refused(broker: EmbeddedBroker, certificates: Path) -> None:
    for url in (broker.stomp_url, f"failover:({broker.stomp_url})"):
        done = run(url, "browse", "x", "--ca", str(certificates / "ca.pem"), code=2)
        assert "--ca has no effect: stomp:// is not encrypted; write stomp+ssl://" in done.stderr
    done = CliRunner().invoke(app, ["demo", "--ca", "x"])
    assert (done.exit_code, "--ca has no effect without --url" in done.stderr) == (2, True)


def test_who_logs_in_which_broker_it_is_and_how_long_it_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text(" s€cret \r\nnot this", encoding="utf-8")
    given: dict[str, Any] = {}

    def connect(url: str, **options: Any) -> None:
        given.update(options, url=url)
        raise redelivery.ConfigError("no further")

    monkeypatch.setattr(redelivery, "connect", connect)
    options = ("--user", "ada", "--password-file", str(file), "--vhost", "prod", "--dialect", "rabbitmq")
    run("stomp://guest:guest@h", "browse", "x", *options, "--connect-timeout", "3", code=2)
    assert given["url"] == "stomp://guest:guest@h"
    assert (given["username"], given["password"]) == ("ada", " s€cret ")
    assert (given["vhost"], given["dialect"], given["connect_timeout"]) == ("prod", "rabbitmq", 3)
    given.clear()
    run("stomp://h", "browse", "x", code=2)
    assert {"username", "password", "vhost", "dialect", "tls"}.isdisjoint(given)


@pytest.mark.parametrize("command", ["send x y", "browse x", "dlq ls x", "doctor --watch 0"])
def test_a_command_asks_each_broker_of_a_list_once(command: str, broker: EmbeddedBroker) -> None:
    """A program waits for them to come; who has typed a command waits for an answer."""
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as first,
        closing(socket.create_server(("127.0.0.1", 0))) as other,
    ):
        away = [f"stomp://127.0.0.1:{each.getsockname()[1]}" for each in (first, other)]
    done = run(f"failover:({','.join(away)})", *command.split(), code=1)
    assert all(each in done.output for each in away)
    assert "attempt 2" not in done.output
    run(f"failover:({away[0]},{broker.stomp_url})?randomize=false", "send", "x", "y")
    run(f"failover:({away[0]},{away[1]})?startupMaxReconnectAttempts=2&initialReconnectDelay=1", "browse", "x", code=1)


@pytest.mark.parametrize("command", ["send", "receive", "browse", "tail", "dlq ls", "dlq purge"])
def test_a_broker_that_ends_with_the_command_is_refused(command: str, tmp_path: Path) -> None:
    done = run("vm://nope", *command.split(), "x", code=2)
    assert "vm://nope would end with this command, and its messages with it: add a store" in done.stderr
    stored = f"vm://{uuid4().hex}?store={tmp_path}/store.db"
    assert run(stored, "send", "x", "kept").stdout == "1 sent to queue://x\n"
    assert run(stored, "receive", "x").stdout == "kept\n"
