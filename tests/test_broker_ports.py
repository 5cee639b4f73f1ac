"""Ports of real brokers: each is one broker's only, and a broker that does not get its ports starts on others."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from urllib.parse import urlsplit

import pytest

from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.ports import NotStartedError, address_in_use, free_ports, wait_for_ports
from redelivery.testing.brokers.real import UnavailableError, required, running
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site
from redelivery.testing.brokers.specs import SPECS

PORTS = [(name, port) for name, spec in SPECS.items() for port in (*spec.ports, *spec.more_ports)]


def test_no_outgoing_connection_gets_the_port_of_a_broker_that_is_down() -> None:
    ports = free_ports(map(str, range(100)))
    assert len(set(ports.values())) == 100
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as opened:
        for _ in range(100):
            sock = opened.enter_context(socket.create_connection(listener.getsockname()))
            assert sock.getsockname()[1] > max(ports.values())


def test_port_on_which_somebody_listens_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr("redelivery.testing.brokers.ports._PORTS", [port])
        with pytest.raises(NotStartedError, match=f"no more ports from {port} to {port} are free"):
            free_ports(["stomp"])
    assert free_ports(["stomp"]) == {"stomp": port}


def test_a_port_is_for_one_process_until_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = free_ports(["stomp"])["stomp"]
    with pytest.raises(NotStartedError):
        _asked_again(monkeypatch, [ours])
    code = f"""
        from redelivery.testing.brokers import ports

        ports._PORTS = [{ours}]
        try:
            ports.free_ports(["stomp"])
        except ports.NotStartedError:
            ports._PORTS = range(20000, 32768)
            print(ports.free_ports(["stomp"])["stomp"], flush=True)
            input()
    """
    command = [sys.executable, "-c", dedent(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:  # noqa: S603  # ours
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        with pytest.raises(NotStartedError):
            _asked_again(monkeypatch, [theirs])
        other.communicate("\n", timeout=10)
    assert _asked_again(monkeypatch, [theirs]) == theirs


def _asked_again(monkeypatch: pytest.MonkeyPatch, ports: list[int]) -> int:
    monkeypatch.setattr("redelivery.testing.brokers.ports._PORTS", ports)
    return free_ports(["stomp"])["stomp"]


def test_waiting_for_ports_ends_with_the_broker_or_the_time() -> None:
    ports = free_ports(["stomp", "amqp"])
    assert len(set(ports.values())) == 2
    with pytest.raises(NotStartedError, match="ended before"):
        wait_for_ports("127.0.0.1", ports, lambda _: True, 1.0, lambda: True)
    with pytest.raises(NotStartedError, match="nobody listened"):
        wait_for_ports("127.0.0.1", ports, lambda _: False, 0.2, lambda: True)


@dataclass(frozen=True)
class Here:
    """A source of what needs nothing but Python."""

    portable: bool = True

    def missing(self, *, to_run: bool = True) -> str | None:
        assert to_run
        return None

    def fetch(self) -> Path:
        return Path("/")


LISTENS = """
import socket, sys, time
try:
    listener = socket.create_server(("127.0.0.1", {port}))
    print("ready", flush=True)
except OSError as error:
    print(error, flush=True)
    {then}
time.sleep(60)
"""


class Thief:
    """Takes a port of the first so many brokers between its choice and their start."""

    def __init__(self, opened: ExitStack, port: str, times: int = 1) -> None:
        self.taken: list[int] = []
        self._opened = opened
        self._port = port
        self._times = times

    def robs(self, spec: BrokerSpec) -> BrokerSpec:
        def configure(site: Site) -> None:
            if len(self.taken) < self._times:
                port = site.ports[self._port]
                self._opened.enter_context(socket.create_server(("127.0.0.1", port)))
                self.taken.append(port)
            spec.configure(site)

        return replace(spec, configure=configure)


def listening(then: str) -> BrokerSpec:
    """A broker that only listens; ``then``: what it does where it cannot."""

    def command(site: Site) -> Sequence[str]:
        return [sys.executable, "-c", LISTENS.format(port=site.ports["stomp"], then=then)]

    return BrokerSpec("late", "Late", Here(), Image("late"), {"stomp": 61613}, lambda _: None, command, "ready")


@pytest.mark.parametrize("then", ["sys.exit(1)", "pass"], ids=["ends", "goes on"])
def test_a_broker_whose_port_is_taken_after_the_choice_starts_on_another(
    monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    with ExitStack() as opened:
        thief = Thief(opened, "stomp")
        monkeypatch.setitem(SPECS, "late", thief.robs(listening(then)))
        with running("late") as broker:
            port = urlsplit(broker.stomp_url).port
            assert port not in thief.taken
            socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_a_broker_whose_ports_are_taken_twice_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as opened:
        thief = Thief(opened, "stomp", times=2)
        monkeypatch.setitem(SPECS, "late", thief.robs(listening("sys.exit(1)")))
        with pytest.raises(UnavailableError, match="Address already in use"), running("late"):
            pass
    assert len(set(thief.taken)) == 2


def test_what_docker_says_of_a_port_that_is_taken_is_understood() -> None:
    for said in (
        "driver failed programming external connectivity: Bind for 127.0.0.1:20001 failed: port is already allocated",
        "failed to bind host port for 127.0.0.1:20001: listen tcp4 127.0.0.1:20001: bind: address already in use",
    ):
        assert address_in_use(said)
    assert not address_in_use("pull access denied for apache/nothing")


@pytest.mark.long_form
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "port"), PORTS)
def test_a_real_broker_whose_port_is_taken_after_the_choice_starts_on_others(
    monkeypatch: pytest.MonkeyPatch, name: str, port: str
) -> None:
    reason = SPECS[name].source.missing()
    if reason is not None:
        pytest.fail(reason) if required(name) else pytest.skip(reason)
    for variable in (f"REDELIVERY_{name.upper()}_URL", "REDELIVERY_BROKER_PROVIDER"):
        monkeypatch.delenv(variable, raising=False)
    with ExitStack() as opened:
        thief = Thief(opened, port)
        monkeypatch.setitem(SPECS, name, thief.robs(SPECS[name]))
        with running(name) as broker:
            assert isinstance(broker.provider, NativeBroker)
            assert len(thief.taken) == 1
            assert thief.taken[0] not in broker.provider.ports.values()
