"""Links that the peer ends while the connection lives: listeners and producers get another one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf

import pytest
from tests.client.gated import QUICK
from tests.client.shell import SOON, Background, eventually
from tests.client.stingy import Stingy
from tests.client.test_no_credit import BY_RECONNECT, WAYS, Send
from tests.conformance.blocking import Shell
from tests.transports.scripted import BrokerEnd, ScriptedBroker

import redelivery
from redelivery import Connection, JMSError, Message, ReconnectPolicy, TransactionRolledBackError
from redelivery.client.containers import base
from redelivery.client.operations.listen import Comeback

WORDS = "Idle timeout: 00:10:00"


def attached(peer: Stingy, times: int) -> None:
    eventually(lambda: len(peer.receivers) == times)


@pytest.mark.parametrize("mode", ["auto", "client", "individual", "transacted"])
def test_a_listener_is_attached_again(shell: Shell, mode: str) -> None:
    heard: list[object] = []
    problems: list[JMSError] = []
    with Stingy() as peer, shell.connect(peer.url, reconnect=QUICK, exception_listener=problems.append) as there:
        there.session(mode).consumer("orders").listen(lambda message: heard.append(message.body))
        for times in range(1, 4):
            attached(peer, times)
            peer.bring(b"%d" % times)
            eventually(lambda times=times: len(heard) == times)  # type: ignore[misc]  # bound at once
            if mode == "auto":  # an acknowledgement that meets the end is a problem of its own
                eventually(lambda times=times: peer.settled == times)  # type: ignore[misc]  # bound at once
            peer.end_links(peer.receivers[-1:])
        attached(peer, 4)
        assert not there.wait(0.05)
    assert heard == [b"1", b"2", b"3"]
    assert [WORDS in str(each) for each in problems] == [True] * 3


def test_what_the_listener_holds_of_the_old_link_is_the_peer_s_again() -> None:
    outcomes: list[BaseException | None] = []
    ended, ends = threading.Event(), threading.Event()
    with Stingy() as peer, redelivery.connect(peer.url, reconnect=QUICK) as there:
        session = there.session("transacted")

        def work(_: Message) -> None:
            if not outcomes:
                ends.set()
                assert ended.wait(SOON)
                eventually(lambda: consumer._core.inbox.news)
            try:
                session.commit()
                outcomes.append(None)
            except JMSError as error:
                outcomes.append(error)

        consumer = session.consumer("orders")
        consumer.listen(work)
        attached(peer, 1)
        peer.bring(b"1")
        assert ends.wait(SOON)
        peer.end_links(peer.receivers[-1:])
        ended.set()
        attached(peer, 2)
        peer.bring(b"1 again")
        eventually(lambda: len(outcomes) == 2)
    assert isinstance(outcomes[0], TransactionRolledBackError)
    assert outcomes[1] is None


def test_without_a_policy_wait_raises_what_the_peer_said(background: Background, shell: Shell) -> None:
    with Stingy() as peer, shell.connect(peer.url, exception_listener=lambda _: None) as there:
        there.session().consumer("orders").listen(lambda _: None)
        waiting = background.start(there.wait)
        attached(peer, 1)
        peer.end_links(peer.receivers[-1:])
        with pytest.raises(JMSError, match=WORDS):
            waiting()
        with pytest.raises(JMSError, match=WORDS):
            there.wait(0)
        assert there.connected


def test_a_listener_that_no_attempt_brings_back_ends_the_wait(background: Background) -> None:
    policy = ReconnectPolicy(initial_delay=0.01, maximum_attempts=2)
    with Stingy() as peer, redelivery.connect(peer.url, reconnect=policy, exception_listener=lambda _: None) as there:
        there.session().consumer("orders").listen(lambda _: None)
        waiting = background.start(there.wait)
        attached(peer, 1)
        peer.refuses = True
        peer.end_links(peer.receivers)
        with pytest.raises(JMSError, match="no such queue"):
            waiting()
        assert peer.refused == 2


def test_a_listener_that_is_removed_or_closed_meanwhile_is_not_attached() -> None:
    policy = ReconnectPolicy(initial_delay=0.2, jitter=0)
    with Stingy() as peer, redelivery.connect(peer.url, reconnect=policy, exception_listener=lambda _: None) as there:
        first, second = (there.session().consumer("orders") for _ in range(2))
        for each in (first, second):
            each.listen(lambda _: None)
        attached(peer, 2)
        peer.end_links(peer.receivers)
        eventually(lambda: first.closed and second.closed)
        first.listen(None)
        second.close()
        assert not there.wait(0.4)
        assert peer.receivers == []


def test_the_delays_begin_anew_only_after_a_link_that_has_lived() -> None:
    comeback = Comeback(ReconnectPolicy(initial_delay=1, maximum_delay=100, jitter=0), 0.0)
    waits, now = [], 0.0
    for lives in (0.0, 0.5, 1.75, 3.75, 7.75, 0.0):
        assert comeback.ended(now)
        waits.append(comeback.due - now)
        comeback.attached(now := comeback.due)
        assert comeback.due == inf
        now += lives
    assert waits == [1, 2, 4, 8, 16, 32]
    assert comeback.ended(now + 30)
    assert comeback.due - now - 30 == 1
    comeback.ended(now := comeback.due)  # it was refused
    assert comeback.due - now == 2


def test_rabbitmq_s_word_for_a_deleted_queue_over_stomp_brings_another_subscribe() -> None:
    heard: list[object] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server="RabbitMQ/3.10.8")
        first = end.subscribed()
        end.send("ERROR", b"cancelled", message="Server cancelled subscription", subscription=first)
        again = end.subscribed()
        assert again != first
        end.message(again, 1, b"after", content_type="text/plain")
        end.goodbye()

    with ScriptedBroker(script) as broker:
        url = f"stomp://127.0.0.1:{broker.port}"
        with redelivery.connect(url, reconnect=QUICK, close_timeout=2, exception_listener=lambda _: None) as there:
            there.session().consumer("orders").listen(lambda message: heard.append(message.body))
            eventually(lambda: heard)
    assert heard == ["after"]


def test_a_container_is_not_healthy_meanwhile(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PAUSE", 0.5)
    with (
        Stingy() as peer,
        shell.connect(peer.url, exception_listener=lambda _: None) as there,
        there.listener_container("orders", lambda _: None) as container,
    ):
        attached(peer, 1)
        assert container.healthy
        peer.end_links(peer.receivers[-1:])
        eventually(lambda: not container.healthy)
        attached(peer, 2)
        eventually(lambda: container.healthy)


@BY_RECONNECT
@pytest.mark.parametrize("relay", [False, True], ids=["named", "relay"])
@pytest.mark.parametrize("way", WAYS)
def test_a_producer_whose_idle_link_was_ended_sends_by_another(
    shell: Shell, way: Callable[[Connection], Send], relay: bool, reconnect: ReconnectPolicy | None
) -> None:
    with Stingy(credit=100, relay=relay) as peer, shell.connect(peer.url, reconnect=reconnect) as there:
        send = way(there)
        for each in range(3):
            send(f"{each}")
            eventually(lambda each=each: len(peer.bodies) == each + 1)  # type: ignore[misc]  # bound at once
            peer.end_links()
            threading.Event().wait(0.05)  # it is idle
        assert len(peer.ends) == 1
    assert peer.bodies == ["0", "1", "2"]


@BY_RECONNECT
def test_a_transaction_begins_anew_after_an_idle_link_was_ended(
    shell: Shell, reconnect: ReconnectPolicy | None
) -> None:
    with Stingy(credit=100) as peer, shell.connect(peer.url, reconnect=reconnect) as there:
        session = there.session("transacted")
        producer = session.producer("orders")
        for each in range(3):
            producer.send(f"{each}")
            session.commit()
            peer.end_links()
            peer.end_links(peer.coordinators)
            threading.Event().wait(0.05)
    assert peer.bodies == ["0", "1", "2"]
