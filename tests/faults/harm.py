"""What is done to a program's connections: one function for each row of the table."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from tests.conformance.pairs import Pair
from tests.examples.tls_front import make_certificates
from tests.faults import refusals
from tests.faults.proxy import Cut, Proxy
from tests.faults.work import Work

from redelivery.testing.brokers.real import RealBroker

OUTAGE: Final = 0.4  # seconds
HOST: Final = "broker.test"  # which is looked up by `Bench.look_up`
TRANSFER: Final = b"\x00\x53\x14"  # AMQP's descriptors: transfer, discharge, disposition
DISCHARGE: Final = b"\x00\x53\x32"
DISPOSITION: Final = b"\x00\x53\x15"
_TORN: Final = 12  # bytes of a frame
FRAMES: Final[Mapping[str, Mapping[str, Cut]]] = {
    "stomp": {
        "a send": Cut(b"SEND\ndestination:"),
        "the answer to a send": Cut(b"RECEIPT\n", "down", after=b"SEND\ndestination:"),
        "a delivery": Cut(b"MESSAGE\n", "down"),
        "an acknowledgement": Cut(b"ACK\n"),
        "a commit": Cut(b"COMMIT\n"),
        "the answer to a commit": Cut(b"RECEIPT\n", "down", after=b"COMMIT\n"),
        "the first frame": Cut(b"CONNECT"),  # and CONNECTED
        "a consumer": Cut(b"SUBSCRIBE\n"),
        "the answer to a consumer": Cut(b"RECEIPT\n", "down", after=b"SUBSCRIBE\n"),
        "the end of a consumer": Cut(b"UNSUBSCRIBE\n"),
        "a transaction": Cut(b"BEGIN\n"),
        "a rollback": Cut(b"ABORT\n"),
        "the rest of a send": Cut(b"SEND\ndestination:", within=_TORN),
        "the rest of a delivery": Cut(b"MESSAGE\n", "down", within=_TORN),
    },
    "amqp": {
        "a send": Cut(TRANSFER),
        "the answer to a send": Cut(DISPOSITION, "down", after=TRANSFER),
        "a delivery": Cut(TRANSFER, "down"),
        "an acknowledgement": Cut(DISPOSITION),
        "a commit": Cut(DISCHARGE),
        "the answer to a commit": Cut(DISPOSITION, "down", after=DISCHARGE),
        "the first frame": Cut(b"\x00\x53\x10"),  # open
        "a consumer": Cut(b"\x00\x53\x12"),  # attach
        "the answer to a consumer": Cut(b"\x00\x53\x12", "down", after=b"\x00\x53\x12"),
        "the end of a consumer": Cut(b"\x00\x53\x16"),  # detach
        "a transaction": Cut(b"\x00\x53\x31"),  # declare
        "a rollback": Cut(DISCHARGE, after=b"\x00\x53\x31"),  # or the commit, which is the same frame
        "the rest of a send": Cut(TRANSFER, within=_TORN),
        "the rest of a delivery": Cut(TRANSFER, "down", within=_TORN),
    },
}
ANEW: Final = ("the first frame", "a consumer", "the answer to a consumer")  # a connection that has come sends them
RESTLESS: Final = ("the end of a consumer", "a rollback")  # the program does so now and then


class Bench:
    """Two ways to a broker, each of which harm can be done to, and a URL that names both."""

    def __init__(self, pair: Pair, opened: ExitStack, broker: RealBroker | None = None) -> None:
        self.pair, self.broker = pair, broker
        at = urlsplit(pair.url)
        assert at.hostname is not None
        assert at.port is not None
        self.proxies = [opened.enter_context(Proxy(at.hostname, at.port)) for _ in range(2)]
        self.unknown = threading.Event()  # nobody knows `HOST`
        self._login = f"{at.username}:{at.password}@" if at.username else ""
        self._really = socket.getaddrinfo

    def url(self, *hosts: str, encrypted: bool = False) -> str:
        """Of the first way, by other names for its host; without any, of both."""
        scheme = self.pair.kind.protocol
        if encrypted:
            scheme = {"stomp": "stomp+ssl", "amqp": "amqps"}[scheme]
        places = [(host, self.proxies[0]) for host in hosts] or [("127.0.0.1", each) for each in self.proxies]
        urls = [f"{scheme}://{self._login}{host}:{proxy.port}" for host, proxy in places]
        return f"failover:({','.join(urls)})?maxReconnectDelay=100"

    def look_up(self, host: Any, *args: Any, **kwargs: Any) -> Any:
        """In place of `socket.getaddrinfo`."""
        if host != HOST:
            return self._really(host, *args, **kwargs)
        if self.unknown.is_set():
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._really("127.0.0.1", *args, **kwargs)

    def happened(self) -> bool:
        """Whether either way has been cut."""
        return any(proxy.happened.is_set() for proxy in self.proxies)

    def hang_up(self) -> None:
        for proxy in self.proxies:
            proxy.refuse(True)
            proxy.refuse(False)


Harm = Callable[[Bench, Work], None]


def cut(frame: str, bench: Bench, work: Work) -> None:
    """Three times."""
    for _ in range(3):
        work.goes_on(5)
        for proxy in bench.proxies:
            proxy.cut(FRAMES[bench.pair.kind.protocol][frame])
        if frame in ANEW:
            bench.hang_up()
        while not bench.happened():
            work.goes_on(1)


def stall(bench: Bench, work: Work) -> None:
    """Nothing passes, and then everything."""
    for proxy in bench.proxies:
        proxy.stall(OUTAGE)
    sleep(OUTAGE)
    work.goes_on()


def slow(bench: Bench, work: Work) -> None:
    """Each packet takes its time."""
    for proxy in bench.proxies:
        proxy.pause = 0.02
    sleep(2 * OUTAGE)
    for proxy in bench.proxies:
        proxy.pause = 0.0
    work.goes_on()


def half_open(bench: Bench, work: Work) -> None:
    """Nothing passes any more, and nobody closes anything: heart-beats notice it."""
    before = work.reconnected
    for proxy in bench.proxies:
        proxy.forget()
    while work.reconnected == before:
        sleep(0.05)
    work.goes_on()


def refused(bench: Bench, work: Work) -> None:
    for proxy in bench.proxies:
        proxy.refuse(True)
    sleep(OUTAGE)
    for proxy in bench.proxies:
        proxy.refuse(False)
    work.goes_on()


def in_turn(bench: Bench, work: Work) -> None:
    """One server of the list after the other is gone."""
    for _ in range(2):
        for proxy in bench.proxies:
            proxy.refuse(True)
            work.goes_on()
            proxy.refuse(False)


def unknown(bench: Bench, work: Work) -> None:
    bench.unknown.set()
    bench.hang_up()
    sleep(OUTAGE)
    bench.unknown.clear()
    work.goes_on()


def expired(folder: Path, bench: Bench, work: Work) -> None:
    """The server's certificate, until there is another one."""
    good = bench.proxies[0].tls
    bench.proxies[0].tls = server_context(folder, "expired")
    bench.hang_up()
    sleep(OUTAGE)
    bench.proxies[0].tls = good
    work.goes_on()


def server_context(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / "server.key")
    return context


def certificates(folder: Path) -> None:
    """Those of `make_certificates`, and one for the server that has expired."""
    make_certificates(folder)
    signed = ("-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "server.ext")
    openssl = shutil.which("openssl")
    assert openssl is not None
    command = [openssl, "x509", "-req", *signed, "-days", "-1", "-out", "expired.pem"]
    done = subprocess.run(command, check=False, capture_output=True, cwd=folder, timeout=150)  # noqa: S603  # of this test
    if done.returncode:
        pytest.skip("this openssl makes no certificate that has expired")


HARMS: Final[Mapping[str, Harm]] = {
    **{f"cut before {frame}": partial(cut, frame) for frame in FRAMES["stomp"]},
    "nothing passes for 0.4 s": stall,
    "each packet takes 20 ms": slow,
    "half open": half_open,
    "refused for 0.4 s": refused,
    "both servers of the list gone in turn": in_turn,
    **refusals.HARMS,
}
