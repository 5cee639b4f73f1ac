"""From nothing to the peer's open: every way in which it can fail is an error that says so, in time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from proton import symbol
from tests.transports.amqp_frames import HEADER, SASL_HEADER, frame_bytes
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client

from redelivery.model.errors import ConfigError, ConnectError, ProtocolError, SecurityError, UnsupportedError

LOGIN: dict[str, Any] = {"username": "ann", "password": "s3cr3tpw"}


def test_the_peer_is_named_and_the_login_sent() -> None:
    with ScriptedPeer(PeerEnd.greet) as peer, Client(peer.port, client_id="c1", **LOGIN) as client:
        reported = client.transport.peer
        init, frame = peer.peers[0].taken
        assert (reported.provider_name, reported.provider_version, reported.protocol) == (
            "ActiveMQ",
            "5.18.3",
            "AMQP 1.0",
        )
        assert reported.dialect == "activemq"
        assert reported.capabilities.native_poison
        assert (init["mechanism"], init["response"]) == ("PLAIN", b"\0ann\0s3cr3tpw")
        assert (frame["container_id"], frame["hostname"]) == ("c1", "127.0.0.1")
        assert frame["max_frame_size"] == 1 << 20


def test_options_of_the_url_reach_the_peer() -> None:
    params = {"amqp.vhost": "prod", "amqp.maxFrameSize": "65536", "amqp.idleTimeout": "60000"}
    with ScriptedPeer(PeerEnd.greet) as peer, Client(peer.port, params=params):
        init, frame = peer.peers[0].taken
        assert (init["hostname"], frame["hostname"]) == ("prod", "prod")
        assert (frame["max_frame_size"], frame["idle_time_out"]) == (65536, 30000)


def test_a_connection_without_a_client_id_has_a_container_id_of_its_own() -> None:
    with ScriptedPeer(PeerEnd.greet) as peer, Client(peer.port), Client(peer.port):
        ids = [each.taken[1]["container_id"] for each in peer.peers]
        assert len(set(ids)) == 2
        assert all(ids)


def test_a_broker_whose_amqp_cannot_settle_is_refused_and_the_connection_closed() -> None:
    closed = threading.Event()

    def script(end: PeerEnd) -> None:
        end.greet()
        closed.set()

    with ScriptedPeer(script) as peer:
        with pytest.raises(UnsupportedError, match="use its STOMP"):
            Client(peer.port, dialect="hornetq!")
        assert closed.wait(2)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"scheme": "stomp"}, "stomp:// is not AMQP"),
        ({"params": {"amqp.maxFrameSize": "511"}}, "amqp.maxFrameSize='511' must be an integer from 512"),
        ({"params": {"amqp.maxFrameSize": "9999999999"}}, "amqp.maxFrameSize="),
        ({"params": {"amqp.idleTimeout": "-1"}}, "amqp.idleTimeout='-1'"),
        ({"params": {"amqp.idleTimeout": "9" * 5000}}, "amqp.idleTimeout="),
        (
            {"params": {"transport.trustAll": "true"}},
            "unknown option 'transport.trustAll' of amqp://; known are amqp.vhost",
        ),
        ({"params": {"amqp.saslMechanisms": "PLAIN"}}, "PLAIN needs a username"),
        ({"username": "ann", "password": "s3cret\0"}, "NUL"),
    ],
)
def test_options_that_cannot_be_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        Client(1, **options)
    assert "s3cret" not in str(caught.value)


_WITHOUT_PROTON = """
import sys
for name in ("proton", "cproton", "cproton_ffi"):
    sys.modules[name] = None
import redelivery
try:
    redelivery.connect("amqp://localhost:1")
except redelivery.ConfigError as error:
    print(error)
"""


def test_without_the_package_it_says_how_to_get_it() -> None:
    run = subprocess.run(  # noqa: S603  # a text of ours
        [sys.executable, "-c", _WITHOUT_PROTON], capture_output=True, text=True, timeout=150, check=True
    )
    assert run.stdout.startswith("amqp:// needs python-qpid-proton, which is not installed; ")
    for command in ("pip install '.[amqp]'", "gcc python3-dev pkg-config", "scripts/proton-wheels", "'.[amqp-binary]'"):
        assert command in run.stdout


@pytest.mark.parametrize(
    ("first_bytes", "named"),
    [
        (b"\x00\x00\x01\x3c\x01ActiveMQ\x00\x00\x00\x0c", "OpenWire"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x16", "TLS"),
        (b"ERROR\nmessage:Unknown STOMP action\n\n\0", "speaks STOMP: use stomp://"),
        (b"CONNECTED\nversion:1.2\n\n\0", "speaks STOMP: use stomp://"),
        (b"AMQP\x00\x00\x09\x01", "speaks AMQP 0-9-1"),
        (b"AMQP\x01\x01\x00\x09", "speaks AMQP 0-9-1"),
        (HEADER, "does not log in by SASL"),
        (SASL_HEADER + b"\x00\x00\x00\x08\x02\x00\x00\x00", "not a SASL frame"),
        (SASL_HEADER + b"\x7f\xff\xff\xff\x02\x01\x00\x00", "not a SASL frame"),
        (SASL_HEADER + b"\x00\x00\x00\x0a\x02\x01\x00\x00\x00\x53", "not a SASL frame"),
        (SASL_HEADER + b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x41\x45", "unexpected in SASL"),
        (SASL_HEADER + b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x42\x45", "unexpected in SASL"),
    ],
)
def test_another_protocol_on_the_port_is_named(first_bytes: bytes, named: str) -> None:
    def script(end: PeerEnd) -> None:
        end.write(first_bytes)
        end.goodbye()

    with ScriptedPeer(script) as peer, pytest.raises(ProtocolError, match=named):
        Client(peer.port)


def nonsense_after_the_login(end: PeerEnd) -> None:
    end.sasl("ANONYMOUS")
    end.header()
    end.write(b"\x00\x00\x00\x0c\x01\x00\x00\x00\x00\x53\x99\x45")
    end.goodbye()


def another_header_after_the_login(end: PeerEnd) -> None:
    end.sasl("ANONYMOUS")
    end.write(b"AMQP\x00\x02\x00\x00")
    end.goodbye()


def a_frame_for_no_channel_with_the_open(end: PeerEnd) -> None:
    end.sasl("ANONYMOUS")
    end.header()
    end.take("open")
    wrong = frame_bytes("disposition", 9, role=True, first=0, settled=True)
    end.write(frame_bytes("open", 0, container_id="peer") + wrong)
    end.goodbye()


@pytest.mark.parametrize(
    "script", [nonsense_after_the_login, another_header_after_the_login, a_frame_for_no_channel_with_the_open]
)
def test_what_breaks_the_protocol_fails_the_opening(script: Callable[[PeerEnd], None]) -> None:
    with ScriptedPeer(script) as peer, pytest.raises(ProtocolError, match="amqp:"):
        Client(peer.port)


def test_an_answer_byte_by_byte_is_an_answer() -> None:
    class Slow(PeerEnd):
        def write(self, data: bytes) -> None:
            for each in data:
                self.sock.sendall(bytes((each,)))

    def script(end: PeerEnd) -> None:
        Slow(end.sock).greet()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        assert client.transport.peer.dialect == "activemq"


def at_once(_: PeerEnd) -> None:
    return


def after_the_choice(end: PeerEnd) -> None:
    end.header(SASL_HEADER)
    end.send("sasl-mechanisms", mechanisms=symbol("PLAIN"))
    end.take("sasl-init")


def after_the_open(end: PeerEnd) -> None:
    end.sasl("PLAIN")
    end.header()
    end.take("open")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (at_once, "instead of answering: is it an AMQP 1.0 port"),
        (after_the_choice, "instead of answering: is it an AMQP 1.0 port"),
        (after_the_open, "after it had taken the login: .* has no permission for its default virtual host"),
    ],
)
def test_a_peer_that_hangs_up_is_an_error_that_says_so(script: Callable[[PeerEnd], None], says: str) -> None:
    with ScriptedPeer(script) as peer, pytest.raises(ConnectError, match=says):
        Client(peer.port, **LOGIN)


@pytest.mark.usefixtures("alone")
def test_a_failed_login_leaves_no_socket_and_no_thread() -> None:
    closed = threading.Event()

    def script(end: PeerEnd) -> None:
        end.sasl("PLAIN", outcome=1)
        end.goodbye()  # until it closes
        closed.set()

    with ScriptedPeer(script) as peer:
        with pytest.raises(SecurityError):
            Client(peer.port, **LOGIN)
        assert closed.wait(2)
        assert not _housekeepers()


def _housekeepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("redelivery-housekeeping")]
