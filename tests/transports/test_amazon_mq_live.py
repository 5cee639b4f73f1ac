"""What docs/brokers/amazon-mq.md says of Amazon MQ for ActiveMQ, on a pair of Classic brokers as it is run there.

Each port has TLS, everybody logs in, and of two brokers with one store the standby opens no port. The brokers are
ours: nothing here was tried on the real service.
"""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import run
from tests.conformance import blocking
from tests.examples.snippets import sections
from tests.transports import amazon
from tests.transports.amazon import PASSWORD, USER, Pair

import redelivery
from redelivery import ConnectError, InDoubtError, SecurityError, TransactionRolledBackError
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.specs import activemq

pytestmark = [pytest.mark.together("Amazon MQ"), pytest.mark.in_turns("connect", "scheme")]

SCHEMES = ("stomp+ssl", "amqp+ssl", "amqps")
WAIT = 60.0  # seconds for what comes, on a machine that others use, too
LOGIN: dict[str, Any] = {"username": USER, "password": PASSWORD}
Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return amazon.certificates(tmp_path_factory.mktemp("amazon"))


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[Pair]:
    amazon.check_there(activemq.SPEC)
    with ExitStack() as opened:
        yield Pair(folder, opened)


@pytest.fixture
def tls(folder: Path) -> ssl.SSLContext:
    return amazon.trusting(folder)


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=["threads", "asyncio"])
def connect(request: pytest.FixtureRequest, opened: ExitStack) -> Connect:
    return connects(request.param, opened)


def connects(shell: str, opened: ExitStack) -> Connect:
    if shell == "threads":
        return lambda url, **options: opened.enter_context(redelivery.connect(url, **options))
    loop = blocking.Loop()
    opened.callback(loop.end)
    return lambda url, **options: opened.enter_context(blocking.connect(loop, url, **options))


@pytest.fixture
def silent(opened: ExitStack) -> int:
    """A port that answers nothing, not even a connection, as behind a security group that has no rule for it."""
    listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    for _ in range(2):  # what waits to be accepted is full: the system drops the next
        more = opened.enter_context(socket.socket())
        more.setblocking(False)
        more.connect_ex(listener.getsockname())
    return int(listener.getsockname()[1])


def check_scheme(scheme: str) -> None:
    if scheme.startswith("amqp"):
        pytest.importorskip("proton")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_form_of_an_endpoint_connects(pair: Pair, tls: ssl.SSLContext, connect: Connect, scheme: str) -> None:
    check_scheme(scheme)
    queue = f"amazon.{uuid4().hex}"
    active = pair.urls(scheme)[0].replace("://", f"://{USER}:{PASSWORD}@")
    for url, options in ((active, {}), (pair.urls(scheme)[0], LOGIN), (pair.failover(scheme), LOGIN)):
        connection = connect(url, tls=tls, **options)
        session = connection.session()
        session.producer(queue).send(url)
        assert session.consumer(queue).receive(timeout=WAIT).body == url
        connection.close()


def test_the_program_of_the_page_runs(
    pair: Pair, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With our endpoints and login for the service's, and our authority among those of the system."""
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    ((block,),) = [section.blocks for section in sections("docs/brokers/amazon-mq.md")]
    code = block.code.replace("shop", USER).replace("s3cret-of-admin", PASSWORD)
    for number, url in enumerate(pair.urls("stomp+ssl"), 1):
        code = code.replace(f"stomp+ssl://{{broker}}-{number}.mq.us-east-2.amazonaws.com:61614", url)
    exec(compile(code, block.page, "exec"), {"__name__": "__main__"})  # noqa: S102  # our own page
    assert block.is_shown(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_wrong_password_is_said_at_once(pair: Pair, tls: ssl.SSLContext, connect: Connect, scheme: str) -> None:
    check_scheme(scheme)
    for options in ({"username": USER, "password": "wrong"}, {}):
        with pytest.raises(SecurityError):
            connect(pair.urls(scheme)[0], tls=tls, **options)
        with pytest.raises(SecurityError, match="no other one answers") as raised:
            connect(pair.failover(scheme), tls=tls, **options)
        assert all(each.rpartition("//")[2] in str(raised.value) for each in pair.urls(scheme))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_certificate_of_an_unknown_authority_is_said_at_once(pair: Pair, connect: Connect, scheme: str) -> None:
    check_scheme(scheme)
    for url in (pair.urls(scheme)[0], pair.failover(scheme)):
        with pytest.raises(ConnectError, match="certificate is not trusted"):
            connect(url, **LOGIN)


def test_an_openwire_endpoint_says_what_to_use(connect: Connect) -> None:
    with pytest.raises(redelivery.ConfigError, match=r"OpenWire.*stomp\+ssl://host:61614"):
        connect("failover:(ssl://b-1-1.mq.us-east-2.amazonaws.com:61617,ssl://b-1-2.mq.us-east-2.amazonaws.com:61617)")


def test_the_command_line_takes_the_pair(pair: Pair, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    url, queue = pair.failover("stomp+ssl"), f"amazon.{uuid4().hex}"
    login = ("--user", USER, "--password-file", str(tmp_path / "password"))
    ca = ("--ca", str(folder / "ca.pem"))
    assert run(url, "send", queue, "x", *login, *ca).stdout == f"1 sent to queue://{queue}\n"
    assert run(url, "dlq", "ls", queue, *login, *ca).stdout
    assert run(url, "receive", queue, *login, *ca).stdout == "x\n"
    assert "not trusted" in run(url, "send", queue, "x", *login, code=1).stderr
    assert "invalid" in run(url, "send", queue, "x", *ca, code=1).stderr


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_port_that_does_not_answer_costs_the_connect_timeout(
    tls: ssl.SSLContext, connect: Connect, silent: int, scheme: str
) -> None:
    check_scheme(scheme)
    url, began = f"{scheme}://127.0.0.1:{silent}", monotonic()
    says = r"did not answer within connect_timeout=0\.3 s: does a firewall drop"
    with pytest.raises(ConnectError, match=says):
        connect(url, tls=tls, connect_timeout=0.3)
    with pytest.raises(ConnectError, match=says):
        connect(f"failover:({url})?startupMaxReconnectAttempts=2&initialReconnectDelay=1", tls=tls, connect_timeout=0.3)
    assert monotonic() - began < 10
    assert "did not answer" in run(f"failover:({url})", "browse", "x", "--connect-timeout", "0.3", code=1).stderr


def test_of_a_list_the_next_one_is_asked_then(opened: ExitStack, connect: Connect, silent: int) -> None:
    broker = opened.enter_context(EmbeddedBroker(f"amazon-{uuid4().hex}", stomp_port=0))
    url = f"failover:(stomp://127.0.0.1:{silent},{broker.stomp_url})?randomize=false"
    connect(url, connect_timeout=0.3).session().producer("orders").send("x")
    assert [each.body for each in broker.messages("orders")] == ["x"]


class Work:
    """A sender and a transacted consumer of one queue; what was confirmed, and what was committed."""

    def __init__(self, connection: Any) -> None:
        self.queue = f"amazon.{uuid4().hex}"
        self.sender, self.receiver = connection.session(), connection.session("transacted")
        self.producer, self.consumer = self.sender.producer(self.queue), self.receiver.consumer(self.queue)
        self.busy = threading.Event()
        self.sent = 0
        self.received: list[str] = []

    def go_on(self, moved: threading.Event) -> None:
        """Until some have been sent on the other broker, and all that was sent is there."""
        left = 20
        for number in itertools.count():
            self.send(str(number))
            self.take(WAIT)
            if number == 20:
                self.busy.set()
            left -= moved.is_set()
            if not left:
                break
        while self.take(1.0):
            pass

    def send(self, body: str) -> None:
        """Sent again where it is not known whether it was."""
        while True:
            try:
                self.producer.send(body)
                self.sent += 1
            except InDoubtError:
                continue
            return

    def take(self, timeout: float) -> bool:
        message = self.consumer.receive(timeout=timeout)
        if message is None:
            return False
        try:
            self.receiver.commit()
        except TransactionRolledBackError:
            return True  # it is redelivered
        except InDoubtError as doubt:
            self.received += [each.body for each in doubt.received]  # it may be redelivered
            return True
        self.received.append(message.body)
        return True

    @property
    def lost(self) -> set[str]:
        return {str(number) for number in range(self.sent)} - set(self.received)


def test_the_standby_takes_over_and_nothing_is_lost(tls: ssl.SSLContext, opened: ExitStack, pair: Pair) -> None:
    proton = ["amqp+ssl"] if has_proton() else []
    shells = [(scheme, shell) for scheme in ("stomp+ssl", *proton) for shell in ("threads", "asyncio")]
    works = [Work(connects(shell, opened)(pair.failover(scheme), tls=tls, **LOGIN)) for scheme, shell in shells]
    moved = threading.Event()
    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(each.go_on, moved) for each in works]
        try:
            assert all(each.busy.wait(WAIT) for each in works)
            pair.fail_over()
        finally:
            moved.set()
        for each in running:
            each.result(WAIT)
    assert [each.lost for each in works] == [set()] * len(works)
    assert all(each.sent > 20 for each in works)


def has_proton() -> bool:
    try:
        import proton  # noqa: F401
    except ImportError:
        return False
    return True
