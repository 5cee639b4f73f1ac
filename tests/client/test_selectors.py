"""A selector is checked when its consumer or browser is made, in both shells, and nothing is sent for a bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from tests.client.aio.looped import run
from tests.client.gated import Site
from tests.client.shell import SOON, receive

import redelivery
from redelivery import ConfigError, InvalidSelectorError, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.broker.servers.stomp.session import StompServerSession
from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects import activemq, artemis, detect, embedded, qpid
from redelivery.transports.stomp.channel.subscribing import _check_length


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("selecting", stomp_port=0) as broker:
        yield broker


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What clients have sent over STOMP."""
    sent: list[str] = []
    execute = StompServerSession.execute

    def noted(session: StompServerSession, frame: Any) -> None:
        sent.append(frame.command)
        execute(session, frame)

    monkeypatch.setattr(StompServerSession, "execute", noted)
    return sent


def make(url: str, what: str, selector: Any, **options: Any) -> None:
    with redelivery.connect(url, **options) as connection, connection.session() as session:
        getattr(session, what)("orders", selector=selector)


def make_for_asyncio(url: str, what: str, selector: Any, **options: Any) -> None:
    async def work() -> None:
        async with await redelivery.aio.connect(url, **options) as connection, connection.session() as session:
            await getattr(session, what)("orders", selector=selector)

    run(work())


SHELLS = pytest.mark.parametrize("shell", [make, make_for_asyncio])
KINDS = pytest.mark.parametrize("what", ["consumer", "browser"])
Shell = Callable[..., None]


@SHELLS
@KINDS
def test_a_bad_selector_is_refused_before_anything_is_sent(
    broker: EmbeddedBroker, commands: list[str], shell: Shell, what: str
) -> None:
    with pytest.raises(InvalidSelectorError, match="write = once") as caught:
        shell(broker.stomp_url, what, "a = = b")
    assert caught.value.position == 4
    assert not {"SUBSCRIBE", "ERROR"} & {*commands}
    with pytest.raises(ConfigError, match="selector must be a str, not a int"):
        shell(broker.stomp_url, what, 5)


@SHELLS
@KINDS
def test_a_pattern_that_keeps_classic_busy_is_refused_before_it_is_sent(
    broker: EmbeddedBroker, commands: list[str], shell: Shell, what: str
) -> None:
    """ActiveMQ Classic makes a regular expression of it that tries everything: 2,000 wildcards took it hours."""
    with pytest.raises(UnsupportedError, match=r"33 wildcards %: ActiveMQ .* use at most 32"):
        shell(broker.stomp_url, what, f"b = 1 AND a LIKE '{'%x' * 33}'", dialect="activemq")
    assert "SUBSCRIBE" not in commands


def test_it_is_a_fact_of_all_that_have_classic_s_evaluation_and_not_of_the_embedded_broker() -> None:
    alike = (activemq.STOMP, activemq.AMQP, artemis.STOMP, artemis.AMQP, qpid.AMQP)
    assert {each.capabilities.most_wildcards for each in alike} == {32}
    assert embedded.DIALECT.stomp is not None
    assert embedded.DIALECT.amqp is not None
    for each in (embedded.DIALECT.stomp, embedded.DIALECT.amqp):
        assert each.capabilities.most_wildcards == 0


@SHELLS
@KINDS
def test_where_the_broker_evaluates_none_it_is_refused(
    shell: Shell, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = Capabilities(browse=True)
    monkeypatch.setattr("redelivery.broker.vm.transport.VmTransport.peer", _peer(deaf), raising=False)
    with EmbeddedBroker("deaf") as broker:
        with pytest.raises(UnsupportedError, match="has no selectors"):
            shell(broker.vm_url, what, "a = 1")
        for empty in (None, "", "  \n"):
            shell(broker.vm_url, what, empty)


def _peer(capabilities: Capabilities) -> property:
    """Of a transport: what it fills in, with other capabilities."""

    def get(transport: Any) -> Any:
        return replace(transport.__dict__["peer"], capabilities=capabilities)

    return property(get, lambda transport, peer: transport.__dict__.update(peer=peer))


def test_a_container_refuses_it_before_it_is_started(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url) as connection, pytest.raises(InvalidSelectorError, match="more is needed"):
        connection.listener_container("orders", print, selector="a =")


def test_a_selector_that_is_longer_than_a_header_of_classic_is_refused() -> None:
    longest = activemq.STOMP.max_header
    _check_length("selector", "x" * (longest - len("selector:")), activemq.STOMP)
    for text in ("x" * (longest - len("selector:") + 1), ":" * (longest // 2)):
        with pytest.raises(
            UnsupportedError, match="over STOMP this broker ends the connection at a header of more than"
        ):
            _check_length("selector", text, activemq.STOMP)
    _check_length("selector", "x" * 30_000, artemis.STOMP)


@pytest.mark.parametrize("selects", [True, False])
def test_the_next_broker_is_asked_whether_it_evaluates_them(monkeypatch: pytest.MonkeyPatch, selects: bool) -> None:
    pytest.importorskip("proton")
    if not selects:
        amqp = embedded.DIALECT.amqp
        assert amqp is not None
        deaf = replace(amqp, capabilities=replace(amqp.capabilities, selectors=False))
        dialects = {**detect._DIALECTS, "embedded": replace(embedded.DIALECT, amqp=deaf)}
        monkeypatch.setattr(detect, "_DIALECTS", dialects)
    with ExitStack() as opened:
        first, second = Site("stomp", opened), Site("amqp", opened)
        url = f"failover:({first.url},{second.url})?randomize=false"
        connection = opened.enter_context(redelivery.connect(url))
        consumer = connection.session().consumer("orders", selector="n > 1")
        for number in (1, 2):
            second.broker.send("orders", f"m{number}", properties={"n": number})
        first.gate.shut()
        if selects:
            assert receive(consumer).body == "m2"
        else:
            with pytest.raises(UnsupportedError, match="has no selectors"):
                consumer.receive(timeout=SOON)
            assert [message.body for message in second.broker.messages("orders")] == ["m1", "m2"]
