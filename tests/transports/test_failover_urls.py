"""``failover:`` URLs as ActiveMQ writes them: the list, whose options are whose, and no password in any text."""

from __future__ import annotations

import traceback
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import ConfigError
from redelivery.policies.connection_url import parse_connection_url
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.failover import parse_failover_url


@pytest.mark.parametrize(
    ("url", "urls"),
    [
        ("failover:(stomp://a:61613,amqp://b:5672)", ["stomp://a:61613", "amqp://b:5672"]),
        ("failover://(stomp://a:61613,amqp://b:5672)", ["stomp://a:61613", "amqp://b:5672"]),
        ("FAILOVER:(STOMP+SSL://a)", ["STOMP+SSL://a"]),
        ("failover:stomp://a:61613,amqps://b:5671", ["stomp://a:61613", "amqps://b:5671"]),
        ("failover://stomp://a:61613,stomp://b:61613", ["stomp://a:61613", "stomp://b:61613"]),
        ("failover:stomp://a", ["stomp://a"]),
        # the queries of the list's URLs are theirs
        ("failover:(stomp://a?x=1&y=2,amqp://b:5672?x=y)", ["stomp://a?x=1&y=2", "amqp://b:5672?x=y"]),
        ("failover:stomp://a?x=1,stomp://b?x=2", ["stomp://a?x=1", "stomp://b?x=2"]),
        # commas within parentheses separate nothing
        ("failover:(stomp://a?x=(1,2),stomp://b)", ["stomp://a?x=(1,2)", "stomp://b"]),
        ("failover:stomp://a?x=(1,(2,3)),stomp://b", ["stomp://a?x=(1,(2,3))", "stomp://b"]),
        ("failover:(stomp://u:p(w)@a,stomp://b)", ["stomp://u:p(w)@a", "stomp://b"]),
        ("failover:(stomp://[::1]:61613,amqp://[fe80::1%25eth0])", ["stomp://[::1]:61613", "amqp://[fe80::1%25eth0]"]),
        # as in Java: a comma at the end adds nothing, and a URL that stands there twice is one
        ("failover:(stomp://a,stomp://b,)", ["stomp://a", "stomp://b"]),
        ("failover:(stomp://a,stomp://b,stomp://a)", ["stomp://a", "stomp://b"]),
        ("failover:(stomp://a)?", ["stomp://a"]),
    ],
)
def test_the_list_is_split_as_activemq_does(url: str, urls: list[str]) -> None:
    parsed = parse_failover_url(url)
    assert list(parsed.urls) == urls
    assert parsed.reconnect == ReconnectPolicy()


@pytest.mark.parametrize(
    ("query", "policy"),
    [
        ("initialReconnectDelay=100", ReconnectPolicy(initial_delay=0.1)),
        ("maxReconnectDelay=5000", ReconnectPolicy(maximum_delay=5)),
        ("useExponentialBackOff=false", ReconnectPolicy(use_exponential_back_off=False)),
        ("reconnectDelayExponent=1.5", ReconnectPolicy(multiplier=1.5)),
        ("backOffMultiplier=1.5", ReconnectPolicy(multiplier=1.5)),
        ("maxReconnectAttempts=0", ReconnectPolicy(maximum_attempts=0)),
        ("startupMaxReconnectAttempts=3", ReconnectPolicy(startup_maximum_attempts=3)),
        ("warnAfterReconnectAttempts=1", ReconnectPolicy(warn_after_attempts=1)),
        ("timeout=3000", ReconnectPolicy(timeout=3)),
        ("randomize=false", ReconnectPolicy(randomize=False)),
        ("priorityBackup=true", ReconnectPolicy(priority_backup=True)),
        ("rand%6Fmize=fals%65", ReconnectPolicy(randomize=False)),
        ("timeout=3000&randomize=false", ReconnectPolicy(timeout=3, randomize=False)),
    ],
)
def test_the_options_of_the_whole_are_the_reconnect_policy(query: str, policy: ReconnectPolicy) -> None:
    parsed = parse_failover_url(f"failover:(stomp://a,stomp://b)?{query}")
    assert parsed.reconnect == policy
    assert parsed.urls == ("stomp://a", "stomp://b")


def test_jms_and_nested_options_of_the_whole_are_added_to_each_url() -> None:
    parsed = parse_failover_url(
        "failover:(stomp://a,amqp://b:5672?x=y,stomp://c?)?jms.clientID=me%26you&timeout=5&nested.q=a%20b"
    )
    for url, params in zip(parsed.urls, ({}, {"x": "y"}, {}), strict=True):
        inner = parse_connection_url(url)
        assert inner.client_id == "me&you"
        assert inner.params == {**params, "q": "a b"}
    assert [parse_connection_url(url).host for url in parsed.urls] == ["a", "b", "c"]


def test_urls_may_differ_in_their_login_only() -> None:
    parsed = parse_failover_url("failover:(stomp://u:p@a,stomp://b?jms.userName=v&jms.password=q)?jms.clientID=me")
    logins = [(each.username, each.password) for each in map(parse_connection_url, parsed.urls)]
    assert logins == [("u", "p"), ("v", "q")]


@pytest.mark.parametrize(
    ("query", "priority"),
    [
        ("", ["stomp://a:1"]),
        ("?priorityBackup=true", ["stomp://a:1"]),
        ("?priorityBackup=true&priorityURIs=stomp://c:3", ["stomp://u:p@c:3?x=1"]),  # by its place, as in Java
        ("?priorityURIs=STOMP://C:3,stomp://B:2&priorityBackup=true", ["stomp://b:2", "stomp://u:p@c:3?x=1"]),
        ("?priorityBackup=true&priorityURIs=stomp%3A%2F%2Fc%3A3", ["stomp://u:p@c:3?x=1"]),
    ],
)
def test_the_priority_urls_are_those_named_or_the_first(query: str, priority: list[str]) -> None:
    parsed = parse_failover_url(f"failover:(stomp://a:1,stomp://b:2,stomp://u:p@c:3?x=1){query}")
    assert list(parsed.priority) == priority


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "it must be a str, not a NoneType"),
        ("stomp://a", "it begins with failover:, like 'failover:(stomp://a:61613,stomp://b:61613)'"),
        *[
            (url, "its list is empty: write URLs into it, like 'failover:(stomp://a:61613,stomp://b:61613)'")
            for url in ("failover:", "failover://", "failover:()", "failover:()?timeout=1")
        ],
        (
            "failover:(stomp://a, stomp://b)",
            "it has a space or a control character; leave it out, or percent-encode it",
        ),
        (
            "failover:(stomp://a,\nstomp://b)",
            "it has a space or a control character; leave it out, or percent-encode it",
        ),
        ("failover:(stomp://a)?x=#", "a '#' must be written %23"),
        (
            "failover:(stomp://a,stomp://u:pw@b:7",
            "its 1 '(' and 0 ')' do not match (stomp://a…,stomp://u…); within a URL they are written %28 and %29",
        ),
        (
            "failover:stomp://a,stomp://b)",
            "its 0 '(' and 1 ')' do not match (stomp://a…,stomp://b…); within a URL they are written %28 and %29",
        ),
        (
            "failover:stomp://a)x=(1",
            "its 1 '(' and 1 ')' do not match (stomp://a…); within a URL they are written %28 and %29",
        ),
        (
            "failover:(stomp://a)/path?timeout=1",
            "after the ')' that ends the list (stomp://a…) there may only be '?' and options; "
            "within a URL a ')' is written %29",
        ),
        (
            "failover:(stomp://a,failover:(stomp://b,stomp://c))",
            "URL 2 of 2: failover:(stomp://b…,stomp://c…) cannot stand within failover: write all URLs into one list",
        ),
        (
            "failover:(static://(stomp://b))",
            "URL 1 of 1 (static://…): static:(stomp://b…) cannot stand within failover: write all URLs into one list",
        ),
        ("failover:(stomp://a,,stomp://b)", "URL 2 of 3: it is empty: is there a ',' too many?"),
        (
            "failover:(stomp://a,b:61613)",
            "URL 2 of 2: it has no scheme; write it like stomp://host:61613, or %2C for a ',' that is part of a "
            "password before it",
        ),
        (
            "failover:(stomp://a,stomp://u:pw@b:port)",
            "URL 2 of 2 (stomp://u…): stomp URL: the port must be an integer from 1 to 65535",
        ),
        (
            "failover:(stomp://a?jms.nope=1)",
            "URL 1 of 1 (stomp://a…): unknown option 'jms.nope' of a connection URL; known are "
            "jms.nonBlockingRedelivery, jms.clientID, jms.userName, jms.password, "
            "jms.redeliveryPolicy.*, jms.prefetchPolicy.*",
        ),
        (
            "failover:(stomp://a,vm://x)",
            "URL 2 of 2 (vm://x): a vm:// broker cannot be returned to, as its messages end with it: "
            "connect to it without failover:",
        ),
        (
            "failover:(stomps://u:pw@a)",
            "URL 1 of 1 (stomps://u:****@a): stomps:// is not known; did you mean stomp+ssl://?",
        ),
        (
            "failover:(stomp://a,tcp://b:61616)",
            "URL 2 of 2 (tcp://b:61616): tcp:// is OpenWire, which only ActiveMQ's own clients speak; "
            "the same broker's STOMP is stomp://host:61613",
        ),
        (
            "failover:stomp://a,stomp://b?maxReconnectAttempts=3",
            "URL 2 of 2 (stomp://b?maxReconnectAttempts=3): maxReconnectAttempts is an option of the whole: "
            "write failover:(…)?maxReconnectAttempts=…",
        ),
        ("failover:(stomp://a)?timeout", "'timeout' in the connection URL is not of the form name=value"),
        ("failover:(stomp://a)?timeout=1&timeout=2", "'timeout' occurs twice in the connection URL"),
        ("failover:(stomp://a)?timeout=soon", f"timeout='soon' must be an integer from -1 to {2**63 - 1}"),
        (
            "failover:(stomp://a)?backOffMultiplier=2&reconnectDelayExponent=2",
            "reconnectDelayExponent and backOffMultiplier are the same option: leave one of them out",
        ),
        (
            "failover:(stomp://a)?maxReconnectDelay=5",
            "initial_delay=0.01 is longer than maximum_delay=0.005 (in a URL initialReconnectDelay and "
            "maxReconnectDelay): change one of them, or use no exponential back-off",
        ),
        (
            "failover:(stomp://a)?backup=true",
            "backup does not exist here: no spare connections are kept; every URL of the list is tried when the "
            "connection is lost. Remove backup",
        ),
        (
            "failover:(stomp://a)?failover.randomize=true",
            "unknown option 'failover.randomize'; did you mean 'randomize'?",
        ),
        ("failover:(stomp://a)?priorityUris=stomp://a", "unknown option 'priorityUris'; did you mean 'priorityURIs'?"),
        (
            "failover:(stomp://a)?wireFormat=x",
            "unknown option 'wireFormat'; known are initialReconnectDelay, maxReconnectDelay, useExponentialBackOff, "
            "reconnectDelayExponent, backOffMultiplier, maxReconnectAttempts, startupMaxReconnectAttempts, "
            "warnAfterReconnectAttempts, timeout, randomize, priorityBackup, priorityURIs, jms.*, nested.*",
        ),
        (
            "failover:(stomp://u:pw@a?x=1)?nested.x=2",
            "with the jms.* and nested.* options of the whole, URL 1 of 1 (stomp://u…): "
            "'x' occurs twice in the connection URL",
        ),
        (
            "failover:(stomp://a)?jms.clientID=",
            "with the jms.* and nested.* options of the whole, URL 1 of 1 (stomp://a…): "
            "jms.clientID='': use a str that is not empty",
        ),
        (
            "failover:(stomp://a?jms.clientID=me,stomp://b)",
            "URL 2 of 2 (stomp://b) has other jms.* options than the first one; "
            "only the login may differ: write the others once, as failover:(…)?jms.…",
        ),
        (
            "failover:(stomp://a)?priorityURIs=stomp://a",
            "priorityURIs has no effect without priorityBackup=true: add it, or leave priorityURIs out",
        ),
        (
            "failover:(stomp://a)?priorityBackup=true&priorityURIs=stomp://a,stomp://u:pw@b:2",
            "priorityURIs: stomp://u:****@b:2 is not in the list: write the URL as it stands there",
        ),
        (
            "failover:(stomp://a)?priorityBackup=true&priorityURIs=a",
            "priorityURIs: URL 1 of 1: a connection URL begins with a scheme, like 'vm://name' or 'stomp://host:61613'",
        ),
    ],
)
def test_what_is_wrong_is_named(url: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_failover_url(url)
    assert str(caught.value) == f"failover URL: {said}"
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("failover://(stomp://a,stomp://b?x=1)?timeout=1", "failover:(stomp://a,stomp://b?x=1)?timeout=1"),
        ("failover:stomp://u:s3cret@a,stomp://v@b", "failover:(stomp://u:****@a,stomp://v@b)"),
        (
            "failover:(stomp://a?jms.password=s3cret)?nested.passcode=s3cret&jms.userName=u",
            "failover:(stomp://a?jms.password=****)?nested.passcode=****&jms.userName=u",
        ),
        (
            "failover:(stomp://u:s3cret@a)?priorityURIs=stomp://u:s3cret@a&priorityBackup=true",
            "failover:(stomp://u:****@a)?priorityBackup=true&priorityURIs=stomp://u:****@a",
        ),
    ],
)
def test_passwords_are_masked(url: str, masked: str) -> None:
    parsed = parse_failover_url(url)
    assert parsed.masked == str(parsed) == masked
    assert repr(parsed) == f"FailoverURL({masked!r})"


SECRET = "gEh31m"  # noqa: S105 - a made-up one, to look for


@pytest.mark.parametrize(
    "url",
    [
        f"failover:(stomp://a,stomp://u:{SECRET}@h:bad)",
        f"failover:(stomp://a,stomp://u:{SECRET}@h",
        f"failover:(stomp://u:{SECRET}@h)x",
        f"failover:(stomp://u:{SECRET}@h)?nope=1",
        f"failover:(stomp://u:{SECRET}@h)?jms.nope=1",
        f"failover:(stomp://u:{SECRET}@h)?jms.userName=v",
        f"failover:(stomp://u:{SECRET}@h,vm://x)",
        f"failover:(vm://u:{SECRET}@h?jms.clientID=x)",
        f"failover:(tcp://u:{SECRET}@h)",
        f"failover:(stomp://h?jms.password={SECRET}&jms.password={SECRET})",
        f"failover:(stomp://h)?jms.password={SECRET}%zz",
        f"failover:(stomp://h)?nested.jms.password={SECRET}&jms.password={SECRET}",
        f"failover:(stomp://h?jms.clientID=x,stomp://u:{SECRET}@h)",
        f"failover:(failover:(stomp://u:{SECRET}@h))",
        f"failover:(stomp://u:{SECRET}@h)?priorityBackup=true&priorityURIs=stomp://u:{SECRET}@i",
        f"failover:(stomp://u:{SECRET}@h)?priorityBackup=true&priorityURIs=stomp://u:{SECRET}@h:bad",
        f"failover:(u:{SECRET}@h)",
        # not encoded, so that the list ends or is divided within it
        f"failover:(stomp://u:{SECRET},x@h)",
        f"failover:(stomp://u:x,{SECRET}@h)",
        f"failover:(stomp://u:x,{SECRET},y@h)",
        f"failover:(stomp://u:1,{SECRET}@h",
        f"failover:(stomp://u:x){SECRET}@h)",
        f"failover:(stomp://u:{SECRET})x@h)",
        f"failover:(stomp://u:{SECRET}(x@h)",
        f"failover:stomp://u:x(,{SECRET}@h",
        f"failover:(stomp://u:x?{SECRET}@h)",
        f"failover:(stomp://u:{SECRET}/x@h)",
        f"failover:(stomp://u:{SECRET}#x@h)",
        f"failover:(stomp://u:{SECRET} x@h)",
    ],
)
def test_errors_never_show_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_failover_url(url)
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))
    context = caught.value.__context__
    while context is not None:
        assert SECRET not in str(context)
        context = context.__context__


@given(st.text(alphabet=st.sampled_from("failover:stmp/()?,&=@[]%.ab1 #ä")) | st.text())
def test_any_text_parses_or_is_refused_with_a_config_error(text: str) -> None:
    for url in (text, f"failover:{text}", f"failover:({text})", f"failover:(stomp://a)?{text}"):
        try:
            parsed = parse_failover_url(url)
        except ConfigError:
            continue
        assert parsed.urls
        assert set(parsed.priority) <= set(parsed.urls)
        assert all(parse_connection_url(inner) for inner in parsed.urls)


hosts = st.from_regex(r"[a-z][a-z0-9]{0,8}(\.[a-z]{2,4})?", fullmatch=True)
passwords = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
endpoints = st.tuples(st.sampled_from(["stomp", "stomp+ssl", "amqp", "amqps"]), hosts, passwords, st.integers(1, 65535))


@given(
    st.lists(endpoints, min_size=1, max_size=5, unique_by=lambda each: each[1]),
    st.integers(0, 20_000),
    st.booleans(),
    st.sampled_from(["failover:({})?{}", "failover://({})?{}", "failover:({},)?{}"]),
)
def test_what_was_written_is_what_is_read(
    endpoints: list[tuple[str, str, str, int]], delay_ms: int, randomize: bool, form: str
) -> None:
    urls = [f"{scheme}://u:{quote(secret, safe='')}@{host}:{port}" for scheme, host, secret, port in endpoints]
    query = f"initialReconnectDelay={delay_ms}&randomize={str(randomize).lower()}"
    parsed = parse_failover_url(form.format(",".join(urls), query))
    assert list(parsed.urls) == urls
    assert parsed.reconnect == ReconnectPolicy(initial_delay=delay_ms / 1000, randomize=randomize)
    assert [parse_connection_url(url).password for url in parsed.urls] == [secret for _, _, secret, _ in endpoints]
    open_urls = [f"{scheme}://{host}:{port}" for scheme, host, _, port in endpoints]
    shown = parse_failover_url(form.format(",".join(open_urls), query))
    assert parse_failover_url(str(shown)) == shown
