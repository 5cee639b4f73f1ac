"""SASL mechanisms: which one is chosen, what it says, and that the broker must know the password too."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Any

import pytest
from proton import symbol
from tests.transports.amqp_frames import SASL_HEADER
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client

import redelivery
from redelivery import ReconnectPolicy
from redelivery.model.errors import ConnectError, ProtocolError, SecurityError, UnsupportedError
from redelivery.transports.amqp.connection.scram import Scram

LOGIN: dict[str, Any] = {"username": "ann", "password": "s3cr3tpw"}


@pytest.mark.parametrize(
    ("offered", "options", "chosen"),
    [
        (("PLAIN", "ANONYMOUS"), {}, "ANONYMOUS"),
        (("EXTERNAL", "PLAIN", "ANONYMOUS"), {}, "ANONYMOUS"),
        (("ANONYMOUS", "AMQPLAIN", "PLAIN"), LOGIN, "PLAIN"),
        (("CRAM-MD5", "PLAIN"), LOGIN, "PLAIN"),
        (("EXTERNAL", "PLAIN"), {"params": {"amqp.saslMechanisms": "EXTERNAL"}}, "EXTERNAL"),
        (("EXTERNAL", "PLAIN"), {**LOGIN, "params": {"amqp.saslMechanisms": "external,plain"}}, "EXTERNAL"),
        (("PLAIN",), {**LOGIN, "params": {"amqp.saslMechanisms": "SCRAM-SHA-256, PLAIN"}}, "PLAIN"),
    ],
)
def test_the_best_of_what_both_have_is_chosen(offered: tuple[str, ...], options: dict[str, Any], chosen: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(mechanisms=offered)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port, **options):
        assert peer.peers[0].taken[0]["mechanism"] == chosen


def test_one_mechanism_needs_no_array() -> None:
    def script(end: PeerEnd) -> None:
        end.header(SASL_HEADER)
        end.send("sasl-mechanisms", mechanisms=symbol("ANONYMOUS"))
        end.take("sasl-init")
        end.send("sasl-outcome", code=0)
        end.header()
        end.take("open")
        end.send("open", container_id="peer")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        assert client.transport.peer.dialect == "unknown"


@pytest.mark.parametrize(
    ("offered", "options", "named"),
    [
        (("PLAIN",), {}, "offers the SASL mechanisms PLAIN; we would take ANONYMOUS; it may want a username"),
        (
            ("ANONYMOUS",),
            LOGIN,
            "offers the SASL mechanisms ANONYMOUS; we would take SCRAM-SHA-256, SCRAM-SHA-1, PLAIN",
        ),
        (("GSSAPI", "X" * 5000), LOGIN, "GSSAPI"),
    ],
)
def test_nothing_in_common_is_reported_with_both_lists(
    offered: tuple[str, ...], options: dict[str, Any], named: str
) -> None:
    def script(end: PeerEnd) -> None:
        end.sasl(*offered)

    with ScriptedPeer(script) as peer, pytest.raises(SecurityError, match=named) as caught:
        Client(peer.port, **options)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("code", "named"), [(1, "username, the password or the certificate"), (2, "SASL outcome 2"), (3, "SASL outcome 3")]
)
def test_a_refused_login_is_a_security_error(code: int, named: str) -> None:
    def script(end: PeerEnd) -> None:
        end.sasl("PLAIN", outcome=code)

    with ScriptedPeer(script) as peer, pytest.raises(SecurityError, match=named) as caught:
        Client(peer.port, **LOGIN)
    assert LOGIN["password"] not in str(caught.value)


def test_a_broker_that_cannot_check_it_just_now_is_asked_again() -> None:
    codes = iter((4, 4, 0))

    def script(end: PeerEnd) -> None:
        code = next(codes)
        if code:
            end.sasl("PLAIN", outcome=code)
            return
        end.log_in(mechanisms=("PLAIN",))
        end.goodbye()

    with ScriptedPeer(script) as peer:
        url = f"amqp://ann:s3cr3tpw@127.0.0.1:{peer.port}"
        with pytest.raises(ConnectError, match="SASL outcome 4, sys-temp"):
            redelivery.connect(url)
        redelivery.connect(url, reconnect=ReconnectPolicy(initial_delay=0.001)).close()
    assert next(codes, None) is None


def test_a_mechanism_that_is_not_supported_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"'GSSAPI' is not supported; those are SCRAM-SHA-256, .*EXTERNAL"):
        Client(1, params={"amqp.saslMechanisms": "GSSAPI"})


class ScramBroker:
    """RFC 5802 as a server, by the book."""

    def __init__(self, digest: str, password: str, iterations: int = 4096) -> None:
        self.digest = digest
        self.salt = b"salt-of-the-earth"
        self.iterations = iterations
        self.salted = hashlib.pbkdf2_hmac(digest, password.encode(), self.salt, iterations)

    def challenge(self, first: bytes) -> bytes:
        self.bare = first.removeprefix(b"n,,")
        nonce = self.bare.rpartition(b"r=")[2] + b"theirs"
        self.first = b"r=%b,s=%b,i=%d" % (nonce, b64encode(self.salt), self.iterations)
        return self.first

    def knows(self, response: bytes) -> bool:
        final, _, proof = response.rpartition(b",p=")
        self.signed = b",".join((self.bare, self.first, final))
        stored = hashlib.new(self.digest, self._hmac(self.salted, b"Client Key")).digest()
        signature = self._hmac(stored, self.signed)
        key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        return hashlib.new(self.digest, key).digest() == stored

    def last(self) -> bytes:
        return b"v=" + b64encode(self._hmac(self._hmac(self.salted, b"Server Key"), self.signed))

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.digest)


def scram(
    end: PeerEnd, broker: ScramBroker, mechanism: str, last: bytes | None = None, own_challenge: bool = False
) -> None:
    """The broker's side; ``last`` is what it says instead of its proof."""
    end.header(SASL_HEADER)
    end.send("sasl-mechanisms", mechanisms=symbol(mechanism))
    init = end.take("sasl-init")
    assert init["mechanism"] == mechanism
    end.send("sasl-challenge", challenge=broker.challenge(init["response"]))
    if not broker.knows(end.take("sasl-response")["response"]):
        end.send("sasl-outcome", code=1)
        return
    proof = broker.last() if last is None else last
    if own_challenge:
        end.send("sasl-challenge", challenge=proof)
        assert end.take("sasl-response")["response"] == b""
        proof = b""
    end.send("sasl-outcome", code=0, data=proof or None)


@pytest.mark.parametrize("own_challenge", [False, True])
@pytest.mark.parametrize(("mechanism", "digest"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-1", "sha1")])
def test_scram_logs_in_and_the_password_does_not_travel(mechanism: str, digest: str, own_challenge: bool) -> None:
    def script(end: PeerEnd) -> None:
        scram(end, ScramBroker(digest, LOGIN["password"]), mechanism, own_challenge=own_challenge)
        end.header()
        end.take("open")
        end.send("open", container_id="peer")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port, **LOGIN):
        assert LOGIN["password"].encode() not in b"".join(
            value for frame in peer.peers[0].taken for value in frame.fields.values() if isinstance(value, bytes)
        )


@pytest.mark.parametrize(
    ("password", "last", "named"),
    [
        ("another", None, "refuses the username, the password"),
        (LOGIN["password"], b"v=" + b64encode(bytes(32)), "has not shown that it knows the password"),
        (LOGIN["password"], b"", "has not shown that it knows the password"),
        (LOGIN["password"], b"e=invalid-proof", "refuses the login .SCRAM.: invalid-proof"),
    ],
)
def test_scram_refuses_who_does_not_know_the_password(password: str, last: bytes | None, named: str) -> None:
    def script(end: PeerEnd) -> None:
        scram(end, ScramBroker("sha256", password), "SCRAM-SHA-256", last)
        end.goodbye()

    with ScriptedPeer(script) as peer, pytest.raises(SecurityError, match=named):
        Client(peer.port, **LOGIN)


def test_scram_as_the_example_of_rfc_7677() -> None:
    client = Scram("SCRAM-SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert client.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert client.answer(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    client.end(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_scram_keeps_what_has_a_meaning_in_its_messages_apart() -> None:
    assert Scram("SCRAM-SHA-1", "a=b,c", "x", nonce="N").begin() == b"n,,n=a=3Db=2Cc,r=N"


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=Nx,s=AAAA",
        b"r=Nx,s=!,i=4096",
        b"r=Nx,s=AAAA,i=many",
        b"r=other,s=AAAA,i=4096",
        b"r=Nx,s=AAAA,i=999999999",
        b"r=Nx,s=AAAA,i=0",
        b"\xff\xfe",
    ],
)
def test_scram_refuses_a_challenge_that_is_none(challenge: bytes) -> None:
    client = Scram("SCRAM-SHA-256", "user", "pencil", nonce="N")
    client.begin()
    with pytest.raises(ProtocolError, match="challenge"):
        client.answer(challenge)
