"""The client of brokers' management over HTTP: addresses, and peers that are not what they should be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

import redelivery
from redelivery import ConfigError, ConnectError, JMSError, ProtocolError, RequestTimeoutError, SecurityError
from redelivery.client.options import merge_options
from redelivery.model.errors import InvalidDestinationError
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.http import JsonClient
from redelivery.transports.management.rabbitmq import RabbitApi

SECRET = "secret"  # noqa: S105  # of nobody


def address(url: str, broker: str = "stomp://shop:secret@broker", **options: float) -> ManagementAddress:
    found = merge_options(broker, management=url, request_timeout=options.get("timeout", 2)).management
    assert found is not None
    return found


def test_the_parts_of_a_url() -> None:
    found = address("https://ad%40min:p%2Fw@[::1]:15671/rabbit/", "stomp://broker/prod")
    assert (found.scheme, found.host, found.port, found.path) == ("https", "::1", 15671, "/rabbit")
    assert (found.username, found.password, found.vhost) == ("ad@min", "p/w", "prod")
    assert found.masked == "https://ad%40min:****@[::1]:15671/rabbit"


def test_a_login_that_it_does_not_name_is_the_connections() -> None:
    found = address("http://broker:15672")
    assert (found.username, found.password) == ("shop", "secret")
    assert address("http://broker:15672", "stomp://broker").username is None
    assert address("https://other:15671", "stomp+ssl://shop:secret@broker").password == SECRET
    assert address("http://localhost:15672", "amqps://shop:secret@broker").password == SECRET


def test_a_password_that_is_encrypted_elsewhere_is_not_sent_in_the_clear() -> None:
    with pytest.raises(ConfigError, match="unencrypted: write https://") as error:
        address("http://other:15672", "stomp+ssl://shop:secret@broker")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("stomp://guest:guest@host:61613", "stomp:// is the broker's messaging, not its management: write http://"),
        ("host:15672", "it begins with neither"),
        ("", "it begins with neither"),
        ("http://", "the host is missing"),
        ("http://host:0", "the port must be an integer"),
        ("http://host:port", "the port must be an integer"),
        ("http://guest:gu/est@host:15672", "'/' in the password"),
        ("http://guest:gu?est@host:15672", "'\\?' in the password"),
        ("http://guest:gu#est@host:15672", "a '#' must be written %23"),
        ("http://host:15672/a b", "percent-encoded"),
        ("http://host:15672/#/queues", "leave out what begins with '/#'"),
        ("http://host:15672/\r\nX: y", "percent-encoded"),
        (15672, "must be a str, not a int"),
    ],
)
def test_what_is_no_url_of_a_management(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        redelivery.ConnectionFactory("stomp://broker", management=url)
    assert "est" not in str(error.value).replace("guest:guest", "")
    with pytest.raises(ConfigError, match=said):
        redelivery.aio.ConnectionFactory("amqp://broker", management=url)


def test_the_embedded_broker_has_none() -> None:
    with pytest.raises(ConfigError, match="a vm:// broker has no management over HTTP"):
        redelivery.connect("vm://x", management="http://host:15672")


def test_nothing_shows_the_password() -> None:
    found = address("http://guest:hidden@broker:15672")
    assert "hidden" not in repr(found) + str(found)
    options = merge_options("stomp://broker", management="http://guest:hidden@broker:15672")
    assert "hidden" not in repr(options)
    with pytest.raises(ConnectError) as error:
        JsonClient(address("http://guest:hidden@127.0.0.1:1")).ask("GET", "/")
    assert "hidden" not in str(error.value)
    assert "http://guest:****@127.0.0.1:1" in str(error.value)


@contextmanager
def peer(*pieces: bytes, stays: bool = False) -> Iterator[tuple[str, list[bytes]]]:
    """A peer that reads a request and answers so."""
    asked: list[bytes] = []
    done = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                data = b""
                while b"\r\n\r\n" not in data or (b"PUT" in data and not data.endswith(b"}")):
                    data += link.recv(65536)
                asked.append(data)
                for each in pieces:
                    link.sendall(each)
                    if done.wait(0.02):
                        return
                if stays:
                    done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://guest:hidden@127.0.0.1:{server.getsockname()[1]}", asked
        done.set()
        thread.join(10)


def answer(status: str, body: bytes, kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def test_a_request_as_it_is_written() -> None:
    with peer(answer("200 OK", b'{"a": "\xc3\xbc"}')) as (url, asked):
        assert JsonClient(address(url + "/prefix")).call("PUT", "/api/x%2Fy", {"durable": True}) == {"a": "ü"}
    head, _, body = asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /prefix/api/x%2Fy HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Basic Z3Vlc3Q6aGlkZGVu" in head
    assert body == b'{"durable": true}'


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            answer("401 Unauthorized", b'{"error":"not_authorised","reason":"Login failed"}'),
            SecurityError,
            "Login fail",
        ),
        (answer("401 Unauthorized", b"<html>", "text/html"), SecurityError, "Unauthorized"),
        (answer("403 Forbidden", b'{"reason":"no"}'), SecurityError, "no"),
        (answer("404 Not Found", b'{"error":"Object Not Found"}'), InvalidDestinationError, "Object Not Found"),
        (answer("400 Bad Request", b'{"error":"bad_request","reason":"what is\\n that"}'), JMSError, "what is that"),
        (answer("500 Oh", b'{"error":"internal"}'), JMSError, r"internal \(500\)"),
        (
            answer("404 Not Found", b"<html>", "text/html"),
            ProtocolError,
            "no management API.*sends text/html, not JSON",
        ),
        (answer("200 OK", b"hello", "text/plain"), ProtocolError, "no management API of a broker: it sends text/plain"),
        (answer("301 Moved", b"", more="Location: https://other/\r\n"), ProtocolError, "refers to 'https://other/'"),
        (b"AMQP\x03\x01\x00\x00", ProtocolError, "speaks AMQP, not HTTP: its management has a port of its own"),
        (b"ERROR\nmessage:no\n\n\0", ProtocolError, "speaks STOMP, not HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x16\r\n", ProtocolError, "no management API|speaks TLS"),
        (b"", ProtocolError, "is no management API"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", ProtocolError, "is no management API"),
        (b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000, ProtocolError, "is no management API"),
        (answer("200 OK", b"[" * 100_000), ProtocolError, "no management API of a broker"),
    ],
)
def test_what_a_peer_says_instead(said: bytes, kind: type[JMSError], words: str) -> None:
    with peer(said) as (url, _), pytest.raises(kind, match=words) as error:
        JsonClient(address(url)).call("GET", "/api/overview", doing="asking")
    assert type(error.value) is kind
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("pieces", [(), tuple(b"a" for _ in range(300)), (b"HTTP/1.1 200 OK\r\n", *[b"A: b\r\n"] * 90)])
def test_a_peer_that_is_silent_or_slow_is_waited_for_so_long_and_no_longer(pieces: tuple[bytes, ...]) -> None:
    with (
        peer(*pieces, stays=True) as (url, _),
        pytest.raises(RequestTimeoutError, match=r"did not answer within 0\.2 s"),
    ):
        JsonClient(address(url, timeout=0.2)).ask("GET", "/")


def test_the_path_may_end_with_the_apis_own() -> None:
    with peer(answer("200 OK", b'{"rabbitmq_version": "4.0.5"}')) as (url, asked):
        assert RabbitApi(address(url + "/prefix/api/")).overview()["rabbitmq_version"] == "4.0.5"
    assert asked[0].startswith(b"GET /prefix/api/overview HTTP/1.1\r\n")


def test_another_programs_json_is_not_taken_for_the_brokers() -> None:
    not_his = pytest.raises(ProtocolError, match="is not RabbitMQ's management")
    with peer(answer("200 OK", b'{"status": "up"}')) as (url, _), not_his:
        RabbitApi(address(url)).overview()
    with peer(answer("200 OK", b"[]")) as (url, _), not_his:
        list(RabbitApi(address(url)).queues())
