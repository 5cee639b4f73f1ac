"""The client of Jolokia: what it asks, and what a console's access file, login or another program answers instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from tests.run.console import Answer, Asked, serving

from redelivery import JMSError, ProtocolError, SecurityError
from redelivery.client.options import merge_options
from redelivery.model.errors import InvalidDestinationError
from redelivery.transports.management.jolokia import JolokiaClient, quoted


@contextmanager
def console(answer: Callable[[Mapping[str, str]], Answer], path: str = "") -> Iterator[tuple[JolokiaClient, Asked]]:
    """A console that answers so to the headers of a request."""
    with serving(lambda headers, _: answer(headers)) as (port, asked):
        url = f"http://admin:hidden@127.0.0.1:{port}{path}"
        found = merge_options("stomp://broker", management=url, request_timeout=5).management
        assert found is not None
        yield JolokiaClient(found, "/console/jolokia"), asked


def jolokia(status: int, **more: Any) -> Answer:
    return 200, json.dumps({"status": status, **more}).encode()


@pytest.mark.parametrize("path", ["", "/", "/console", "/console/", "/console/jolokia", "/console/jolokia/"])
def test_a_question_as_it_is_written(path: str) -> None:
    with console(lambda _: jolokia(200, value=[7]), path) as (client, asked):
        assert client.call("a:b=c", "browse(int,int)", 1, 5, doing="looking") == [7]
    ((where, headers, body),) = asked
    assert where == "/console/jolokia/"
    assert body == {"type": "exec", "mbean": "a:b=c", "operation": "browse(int,int)", "arguments": [1, 5]}
    assert headers["Origin"] == f"http://{headers['Host']}"
    assert headers["Authorization"].startswith("Basic ")


def test_a_proxys_path_is_kept() -> None:
    with console(lambda _: jolokia(200, value=[]), "/mq/console/jolokia") as (client, asked):
        assert client.search("a:*", doing="asking") == []
    assert asked[0][0] == "/mq/console/jolokia/"


def test_the_origin_that_is_let_in_is_kept() -> None:
    """As it is installed, Artemis lets in ``localhost``, by whatever name its console is reached."""
    refusal = jolokia(403, error="java.lang.Exception : Origin http://x is not allowed to call this agent")

    def answer(headers: Mapping[str, str]) -> Answer:
        return jolokia(200, value={}) if headers["Origin"] == "http://localhost" else refusal

    with console(answer) as (client, asked):
        client.read("a:b=c", ["Version"], doing="asking")
        client.read("a:b=c", ["Version"], doing="asking")
    assert [headers["Origin"] == "http://localhost" for _, headers, _ in asked] == [False, True, True]
    with console(lambda _: refusal) as (client, _), pytest.raises(SecurityError, match="is not allowed to call this"):
        client.read("a:b=c", ["Version"], doing="asking")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ((401, b"<html>"), SecurityError, r"asking: .*Unauthorized \(401\)"),
        ((401, b'{"status":"401","message":"Unauthorized","servlet":"x"}'), SecurityError, r"Unauthorized \(401\)"),
        ((429, b""), SecurityError, r"lets this login wait, as it failed before.*\(429\)"),
        ((403, b""), SecurityError, r"Forbidden \(403\)"),
        (
            jolokia(403, error="java.lang.SecurityException : Operation gc() forbidden for MBean a:b=c"),
            SecurityError,
            r"says: Operation gc\(\) forbidden for MBean a:b=c \(403\)",
        ),
        (jolokia(500, error="no", error_type="java.lang.SecurityException"), SecurityError, "no"),
        (
            jolokia(404, error="javax.management.InstanceNotFoundException : a:b=c"),
            InvalidDestinationError,
            r"says: a:b=c \(404\)",
        ),
        (jolokia(500, error="javax.a.b.MBeanException : \n oh\n"), JMSError, r"says: oh \(500\)"),
        (jolokia(400), JMSError, r"nothing \(400\)"),
        ((404, b'{"status":"404","message":"Not Found"}'), ProtocolError, "is its path /console/jolokia right"),
        ((404, b""), ProtocolError, "is its path /console/jolokia right"),
        ((404, b"<html>"), ProtocolError, "no management API"),
        ((200, b"[]"), ProtocolError, "is not Jolokia"),
        ((200, b'{"status":"up"}'), ProtocolError, "is not Jolokia"),
        ((200, b""), ProtocolError, "is not Jolokia"),
    ],
)
def test_what_is_answered_instead(said: Answer, kind: type[JMSError], words: str) -> None:
    with console(lambda _: said) as (client, _), pytest.raises(kind, match=words) as error:
        client.call("a:b=c", "gc()", doing="asking")
    assert type(error.value) is kind
    assert "hidden" not in str(error.value)
    assert "\n" not in str(error.value)


def test_names_are_quoted() -> None:
    assert quoted('or"d,e=r:s*?ü\\\n') == '"or\\"d,e=r:s\\*\\?ü\\\\\\n"'
