"""Connection URLs: parts, ActiveMQ's jms.* options, and no password in any text."""

from __future__ import annotations

import traceback
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import ConfigError
from redelivery.policies.connection_url import parse_connection_url
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port"),
    [
        ("vm://test", "vm", "test", None),
        ("vm://My.Broker", "vm", "My.Broker", None),
        ("stomp://localhost:61613", "stomp", "localhost", 61613),
        ("stomp://localhost", "stomp", "localhost", None),
        ("STOMP+SSL://broker.example.org:61614/", "stomp+ssl", "broker.example.org", 61614),
        ("AMQP+ssl://b-1.mq.us-east-2.amazonaws.com:5671", "amqps", "b-1.mq.us-east-2.amazonaws.com", 5671),
        ("stomp://[::1]:61613", "stomp", "::1", 61613),
        ("amqp://[fe80::1%25eth0]", "amqp", "fe80::1%eth0", None),
        ("amqps://b%C3%BCro:5671?", "amqps", "büro", 5671),
        ("stomp://user:pw@host:1", "stomp", "host", 1),
    ],
)
def test_places(url: str, scheme: str, host: str, port: int | None) -> None:
    parsed = parse_connection_url(url)
    assert (parsed.scheme, parsed.host, parsed.port) == (scheme, host, port)


@pytest.mark.parametrize(
    ("url", "username", "password"),
    [
        ("stomp://host", None, None),
        ("stomp://anna@host", "anna", None),
        ("stomp://anna:@host", "anna", ""),
        ("stomp://anna:s3cret@host", "anna", "s3cret"),
        ("stomp://anna:a%40b%3A%2F%3F%25@host", "anna", "a@b:/?%"),
        ("stomp://anna%40example.org:x:y@host", "anna@example.org", "x:y"),
        ("stomp://host?jms.userName=anna&jms.password=s3cret", "anna", "s3cret"),
        ("stomp://host?jms.userName=a@b&jms.password=a%26b+c", "a@b", "a&b+c"),
        ("stomp://anna@host?jms.password=s3cret", "anna", "s3cret"),
    ],
)
def test_credentials(url: str, username: str | None, password: str | None) -> None:
    parsed = parse_connection_url(url)
    assert (parsed.username, parsed.password) == (username, password)


def test_jms_options() -> None:
    parsed = parse_connection_url(
        "stomp://host:61613?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.redeliveryDelay=50"
        "&jms.prefetchPolicy.queuePrefetch=1&jms.nonBlockingRedelivery=true&jms.clientID=me&heartbeat=5&x%20y=%C3%A9"
    )
    assert parsed.redelivery_policy == RedeliveryPolicy(maximum_redeliveries=2, redelivery_delay=0.05)
    assert parsed.prefetch == PrefetchPolicy(queue=1)
    assert parsed.non_blocking_redelivery is True
    assert parsed.client_id == "me"
    assert parsed.params == {"heartbeat": "5", "x y": "é"}
    frozen: Any = parsed.params
    with pytest.raises(TypeError):
        frozen["other"] = "1"


def test_what_the_url_does_not_say_is_none() -> None:
    parsed = parse_connection_url("vm://test")
    assert (parsed.redelivery_policy, parsed.prefetch, parsed.non_blocking_redelivery, parsed.client_id) == (None,) * 4
    assert parsed.params == {}


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("stomp://h?jms.redeliveryPolicy.maximumRedeliveries=-2", "jms.redeliveryPolicy.maximumRedeliveries=-2"),
        (
            "stomp://h?jms.redeliveryPolicy.maxRedeliveries=2",
            "unknown option 'jms.redeliveryPolicy.maxRedeliveries'; did you mean '.*maximumRedeliveries'",
        ),
        ("stomp://h?jms.redeliveryPolicy=2", "unknown option 'jms.redeliveryPolicy' of a connection URL"),
        ("stomp://h?jms.prefetchPolicy.all=x", "jms.prefetchPolicy.all='x'"),
        ("stomp://h?jms.useAsyncSend=true", "unknown option 'jms.useAsyncSend'.*jms.clientID"),
        ("stomp://h?jms.nonBlockingRedelivery=1", "jms.nonBlockingRedelivery='1'"),
        ("stomp://h?jms.clientID=", "jms.clientID=''"),
        ("stomp://h?jms.user=me", "did you mean 'jms.userName'"),
        ("stomp://u:pass/word@h", r"is there a '/' in the password\? Write it %2F, or use password="),
        ("stomp://u:pass?word@h", r"is there a '\?' in the password\? Write it %3F, or use password="),
        ("vm://h/path", r"nothing may follow the broker's name .*\(a '/' elsewhere must be written %2F\)$"),
        ("stomp://h/a/b", r"nothing may follow the host but a virtual host .*\(a '/' in its name is written %2F\)$"),
        ("stomp://h//", "nothing may follow the host but a virtual host"),
        ("stomp://h/%00", "the virtual host has a control character"),
        ("stomp://h/%zz", "virtual host in the connection URL is not percent-encoded"),
        ("stomp://h?heartbeat", "'heartbeat' .*name=value"),
        ("stomp://h?=1", "name=value"),
        ("stomp://h?a=1&&b=2", "name=value"),
        ("stomp://h?a=1&a=2", "'a' occurs twice"),
        ("stomp://h?jms.clientID=a&jms.client%49D=b", "'jms.clientID' occurs twice"),
        ("stomp://anna@h?jms.userName=bert", "user name before '@' and as jms.userName"),
        ("stomp://anna:x@h?jms.password=y", "password before '@' and as"),
        ("stomp://h?a=%zz", "'a' .*percent-encoded"),
        ("stomp://h?a=%ff", "'a' .*percent-encoded"),
        ("stomp://", "host is missing"),
        ("stomp://:61613", "host is missing"),
        ("vm://", "host is missing.*broker's name"),
        ("stomp://@h", "no user name"),
        ("stomp://:pw@h", "no user name"),
        ("stomp://h:0", "port"),
        ("stomp://h:65536", "port"),
        ("stomp://h:", "port"),
        ("stomp://h:http", "port"),
        ("stomp://h:+1", "port"),
        ("stomp://h:٣", "port"),
        ("stomp://::1:61613", "brackets"),
        ("stomp://[::1", "IPv6"),
        ("stomp://[::1]61613", "IPv6"),
        ("stomp://[::zz]:61613", "IPv6"),
        ("stomp://h#f", "%23"),
        ("stomp://h h", "space"),
        ("stomp://h\n", "space or a control"),
        ("stomp://h%0Ah", "character that no host has"),
        ("stomp://h%2Fh", "character that no host has"),
        ("localhost:61613", "scheme"),
        ("1stomp://h", "scheme"),
        ("", "scheme"),
        ("failover:(stomp://a,stomp://b)", "failover"),
        (None, "NoneType"),
        (b"vm://x", "bytes"),
    ],
)
def test_what_is_wrong_is_named(url: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_connection_url(url)


@pytest.mark.parametrize(
    ("path", "vhost"),
    [("", None), ("/", None), ("/prod", "prod"), ("/%2F", "/"), ("/a%2Fb%20c%C3%A9", "a/b cé"), ("/a%40b:c", "a@b:c")],
)
def test_the_path_is_the_virtual_host(path: str, vhost: str | None) -> None:
    for query in ("", "?a=b"):
        parsed = parse_connection_url(f"amqp://u:p@host:1{path}{query}")
        assert (parsed.vhost, parsed.host, parsed.port, parsed.password) == (vhost, "host", 1, "p")
        assert parsed.masked == f"amqp://u:****@host:1{path.rstrip('/')}{query}"


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("stomp://host:1?a=b", "stomp://host:1?a=b"),
        ("stomp://anna@host", "stomp://anna@host"),
        ("stomp://anna:s3cret@host:1", "stomp://anna:****@host:1"),
        ("stomp://anna:@host:1", "stomp://anna:****@host:1"),
        ("vm://x?jms.userName=anna&jms.password=s3cret&a=b", "vm://x?jms.userName=anna&jms.password=****&a=b"),
        ("vm://x?jms.p%61ssword=s3cret", "vm://x?jms.p%61ssword=****"),
        ("vm://x?transport.keyStorePassword=s3cret", "vm://x?transport.keyStorePassword=****"),
        ("vm://x?passcode=s3cret&oauth.token=s3cret", "vm://x?passcode=****&oauth.token=****"),
    ],
)
def test_passwords_are_masked(url: str, masked: str) -> None:
    parsed = parse_connection_url(url)
    assert parsed.masked == str(parsed) == masked
    assert repr(parsed) == f"ConnectionURL({masked!r})"


SECRET = "gEh31m"  # noqa: S105 - a made-up one, to look for


@pytest.mark.parametrize(
    "url",
    [
        f"stomp://anna:{SECRET}@host:bad",
        f"stomp://anna:{SECRET}@",
        f"stomp://anna:{SECRET}%zz@host",
        f"stomp://anna:{SECRET}%ff@host",
        f"stomp://anna:{SECRET}@host/path/x",
        f"stomp://anna:{SECRET}@host?jms.password={SECRET}",
        f"stomp://anna:{SECRET}@host?jms.nope=1",
        f"stomp://anna:{SECRET}@host?a",
        f"stomp://anna:{SECRET} @host",
        f"stomp://anna:{SECRET}@[::zz]",
        f"stomp://host?jms.password={SECRET}&jms.password={SECRET}",
        f"stomp://host?jms.password={SECRET}%",
        f"stomp://host?jms.password={SECRET}#",
        f"anna:{SECRET}@host",
        # not encoded, so that it ends up where the host, the port or an option is looked for
        f"stomp://anna:{SECRET}/x@host",
        f"stomp://anna:{SECRET}?x@host",
        f"stomp://anna:x?{SECRET}@host",
        f"stomp://anna:1?{SECRET}@host",
        f"stomp://anna:{SECRET}#x@host",
        f"stomp://anna:[{SECRET}",
    ],
)
def test_errors_never_show_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_connection_url(url)
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or SECRET not in str(caught.value.__context__)


@given(st.text())
def test_any_text_parses_or_is_refused_with_a_config_error(text: str) -> None:
    for url in (text, f"stomp://{text}", f"stomp://h?{text}", f"stomp://u:{text}@h"):
        try:
            parsed = parse_connection_url(url)
        except ConfigError:
            continue
        assert parsed.host
        assert parse_connection_url(url) == parsed


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_an_encoded_password_arrives_as_it_was(password: str) -> None:
    encoded = quote(password, safe="")
    assert parse_connection_url(f"stomp://u:{encoded}@h").password == password
    assert parse_connection_url(f"stomp://h?jms.password={encoded}").password == password
