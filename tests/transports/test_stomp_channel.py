"""What a session's channel writes on a broker that behaves as ActiveMQ does, frame by frame."""

from __future__ import annotations

import threading

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, Script, ScriptedBroker, text

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    RequestTimeoutError,
    ResourceAllocationError,
    SecurityError,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.transports.base import Pending
from redelivery.transports.stomp.frames import Frame

T, C, A, I = AckMode.TRANSACTED, AckMode.CLIENT, AckMode.AUTO, AckMode.INDIVIDUAL  # noqa: E741  # as in a table


def with_messages(number: int, then: Script, server: str = "ActiveMQ/5.18.3") -> Script:
    """Log in, be subscribed to, send that many messages, go on."""

    def script(end: BrokerEnd) -> None:
        end.log_in(server=server)
        subscription = end.subscribed()
        for each in range(1, number + 1):
            end.message(subscription, each)
        then(end)
        end.goodbye()

    return script


def lines(frame: Frame) -> list[str]:
    """The frame in short: its command and what names message and transaction."""
    headers = frame.headers
    return [frame.command, *(headers[name] for name in ("id", "transaction") if name in headers)]


def test_a_subscription_is_client_individual_with_a_window_of_messages() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        for _ in range(4):
            end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.attach(Topic("news"), prefetch=7, selector="a = 'b:c'", no_local=True)
        session.attach(prefetch=0)
        link = session.attach(prefetch=None)
        assert link.prefetch == 100
        frames = [frame.headers for frame in broker.ends[0].taken[1:5]]
    assert [frame["ack"] for frame in frames] == ["client-individual"] * 4
    assert [frame["activemq.prefetchSize"] for frame in frames] == ["100", "7", "1", "100"]
    assert [frame["destination"] for frame in frames][:2] == ["/queue/orders", "/topic/news"]
    assert (frames[1]["selector"], frames[1]["activemq.noLocal"]) == ("a = 'b:c'", "true")
    assert len({frame["id"] for frame in frames}) == 4


@pytest.mark.parametrize(
    ("message", "body", "error"),
    [
        ("a = = b", "javax.jms.InvalidSelectorException: a = = b\n\tat org…", InvalidSelectorError),
        ("User ann is not authorized to read from: queue://orders", "", SecurityError),
        ("x", "javax.jms.InvalidDestinationException: x", InvalidDestinationError),
        ("Usage Manager Memory Limit reached", "javax.jms.ResourceAllocationException: …", ResourceAllocationError),
        ("something else", "", JMSError),
    ],
)
def test_a_refused_subscription_is_the_error_that_the_broker_means(
    message: str, body: str, error: type[JMSError]
) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.refuse(end.take("SUBSCRIBE"), message, body)
        end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        with pytest.raises(error, match=f"the broker says: .*{message}"):
            session.attach()
        session.attach()  # the connection lives on
        assert client.errors == []


@pytest.mark.parametrize("lazy", [False, True])
def test_an_acknowledgement_names_the_broker_s_id_as_it_was_written(lazy: bool) -> None:
    acked: list[list[str]] = []
    done = threading.Event()

    def then(end: BrokerEnd) -> None:
        acked.extend(lines(end.take("ACK")) for _ in range(3))
        done.set()

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(I)
        session.attach()
        first, *rest = session.receive_many(3)
        session.channel.accept([first], lazy=lazy)
        session.channel.accept(rest, lazy=lazy)
        assert done.wait(TIMEOUT)  # lazy ones leave without anybody waiting for them
        raw = broker.ends[0].taken[-1].head
    assert acked == [["ACK", "a:1"], ["ACK", "a:2"], ["ACK", "a:3"]]
    assert raw == b"ACK\nid:a\\c3\n"


def test_a_stale_delivery_is_acknowledged_nowhere() -> None:
    with ScriptedBroker(with_messages(2, lambda _: None)) as broker:
        with Client(broker.port) as client:
            session = client.session()
            link = session.attach()
            first, second = session.receive_many(2)
            session.do(session.channel.detach(link))
            with pytest.raises(IllegalStateError, match="consumer is closed"):
                session.channel.accept([first], lazy=False)
        with pytest.raises(JMSError, match="cannot be acknowledged any more"):
            session.channel.accept([second], lazy=True)
        with Client(broker.port) as again:
            other = again.session()
            other.attach()
            with pytest.raises(JMSError, match="cannot be acknowledged any more"):
                other.channel.accept([second], lazy=False)
        assert "ACK" not in [frame.command for end in broker.ends for frame in end.taken]


def test_a_commit_without_sends_is_one_write() -> None:
    packets: list[bytes] = []

    def then(end: BrokerEnd) -> None:
        packets.append(end.sock.recv(65536))
        end.send("RECEIPT", receipt_id=packets[0].rpartition(b"receipt:")[2].split(b"\n")[0].decode())

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        session.do(session.channel.commit([]))
        session.do(session.channel.commit(session.receive_many(3)))
    assert [frame.split(b"\n")[0] for frame in packets[0].split(b"\0")] == [
        b"BEGIN",
        b"ACK",
        b"ACK",
        b"ACK",
        b"COMMIT",
        b"",
    ]


def test_what_is_handed_out_enters_the_transaction_before_the_window_is_full() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(6 + 2))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(5, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach(prefetch=4)
        deliveries = session.receive_many(5)
        for delivery in deliveries[:4]:
            session.channel.handed_out(delivery)
        session.do(session.channel.rollback())
        session.channel.handed_out(deliveries[0])
        session.do(session.channel.commit(deliveries[:1]))
    (first,), (second,) = {tuple(frame[-1:]) for frame in frames[:6]}, {tuple(frame[-1:]) for frame in frames[6:]}
    assert [frame[:-1] for frame in frames] == [
        ["BEGIN"], ["ACK", "a:1"], ["ACK", "a:2"], ["ACK", "a:3"], ["ACK", "a:4"], ["ABORT"], ["BEGIN"], ["ACK", "a:1"],
    ]  # fmt: skip
    assert first != second


@pytest.mark.parametrize("mode", [A, I, AckMode.DUPS_OK])
def test_outside_transactions_handing_out_writes_nothing(mode: AckMode) -> None:
    with ScriptedBroker(with_messages(5, lambda _: None)) as broker, Client(broker.port) as client:
        session = client.session(mode)
        session.attach(prefetch=2)
        for delivery in session.receive_many(5):
            session.channel.handed_out(delivery)
        client.transport.close()
        assert [frame.command for frame in broker.ends[0].taken] == ["CONNECT", "SUBSCRIBE", "DISCONNECT"]


def test_a_commit_acknowledges_nothing_that_is_not_in_it() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(6))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(C)
        session.attach(prefetch=4)
        first, second = session.receive_many(2)
        session.channel.handed_out(first)
        session.channel.handed_out(second)
        session.do(session.channel.commit([first]))
    assert [frame[:-1] for frame in frames] == [
        ["BEGIN"],
        ["ACK", "a:1"],
        ["ACK", "a:2"],
        ["ABORT"],
        ["BEGIN"],
        ["ACK", "a:1"],
    ]


def test_a_refused_send_undoes_the_transaction() -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        frames.append(end.take("BEGIN").command)
        end.answer(end.take("SEND"))
        end.refuse(end.take("SEND"), "User ann is not authorized to write to: queue://orders")
        frames.append(end.take().command)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        delivery = session.receive()
        session.channel.send(text("1"), transacted=True, pending=None)
        session.channel.send(text("2"), transacted=True, pending=None)
        with pytest.raises(TransactionRolledBackError, match="not authorized") as caught:
            session.do(session.channel.commit([delivery]))
        assert isinstance(caught.value.__cause__, SecurityError)
    assert frames == ["BEGIN", "ABORT"]


def test_sends_are_confirmed_before_the_commit_leaves() -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        sends = [end.take("BEGIN", "SEND") for _ in range(3)][1:]
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            end.take()
        end.sock.settimeout(TIMEOUT)
        for send in sends:
            end.answer(send)
        frames.extend(end.take().command for _ in range(1))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        delivery = session.receive()
        told: list[bool] = []
        session.channel.send(
            text("1"), transacted=True, pending=Pending(on_done=lambda pending: told.append(pending.done))
        )
        session.channel.send(text("2"), transacted=True, pending=None)
        session.do(session.channel.commit([delivery]))
        assert told == [True]
    assert frames == ["ACK"]


def test_a_refused_commit_leaves_the_deliveries_ours() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("ACK")
        end.refuse(end.take("COMMIT"), "no")
        end.take("BEGIN"), end.take("ACK")
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        delivery = session.receive()
        with pytest.raises(TransactionRolledBackError, match="the commit was refused: the broker says: no"):
            session.do(session.channel.commit([delivery]))
        session.do(session.channel.commit([delivery]))


@pytest.mark.parametrize("silence", [True, False])
def test_a_commit_whose_answer_does_not_come_is_in_doubt(silence: bool) -> None:
    release = threading.Event()

    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("ACK"), end.take("COMMIT")
        if not silence:
            raise ConnectionError
        release.wait(TIMEOUT)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        delivery = session.receive()
        with pytest.raises(InDoubtError) as caught:
            session.do(session.channel.commit([delivery]), timeout=0.3 if silence else TIMEOUT)
        assert caught.value.transaction_id == broker.ends[0].taken[-1].headers["transaction"]
        assert isinstance(caught.value.__cause__, RequestTimeoutError if silence else ConnectionLostError)
        release.set()


def test_a_connection_that_went_before_the_commit_rolls_back() -> None:
    def drop(_: BrokerEnd) -> None:
        raise ConnectionError

    with ScriptedBroker(with_messages(1, drop)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        delivery = session.receive()
        with pytest.raises(ConnectionLostError):
            client.transport.wait(session.waiter, TIMEOUT)
        with pytest.raises(TransactionRolledBackError, match="lost before the commit"):
            session.do(session.channel.commit([delivery]))


def test_native_poison_is_a_nack_outside_any_transaction() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(4))
        nack = end.take("NACK")
        frames.append(lines(nack))
        end.answer(nack)
        refused = end.take("NACK")
        end.refuse(refused, "no")

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(C)
        session.attach(prefetch=4)
        first, second, third = session.receive_many(3)
        session.channel.handed_out(first)
        session.channel.handed_out(second)
        session.do(session.channel.poison(first, "why", None))
        with pytest.raises(JMSError, match="the broker says: no"):
            session.do(session.channel.poison(third, "why", None))
    assert [frame[:2] for frame in frames if frame[0] != "BEGIN"] == [
        ["ACK", "a:1"], ["ACK", "a:2"], ["ABORT", frames[0][1]], ["NACK", "a:1"],
    ]  # fmt: skip


def test_poison_does_not_abort_a_transaction_that_holds_other_things() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN")
        end.answer(end.take("SEND"))
        end.answer(end.take("NACK"))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach()
        poisoned = session.receive()
        session.channel.send(text(), transacted=True, pending=None)
        session.do(session.channel.poison(poisoned, "why", None))
        session.do(session.channel.commit([]))


@pytest.mark.parametrize("refused", ["", "SEND", "COMMIT"])
def test_a_dead_letter_and_its_ack_are_one(refused: str) -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        end.take("BEGIN")
        send = end.take("SEND")
        assert send.headers["destination"] == "/queue/DLQ"
        if refused == "SEND":
            end.refuse(send, "full")
            frames.append(lines(end.take("ABORT")))
            return
        end.answer(send)
        frames.append(lines(end.take("ACK")))
        commit = end.take("COMMIT")
        if refused:
            end.refuse(commit, "full")
        else:
            end.answer(commit)
        assert {frame[-1] for frame in frames} == {send.headers["transaction"]}

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(A)
        session.attach()
        poisoned = session.receive()
        flow = session.channel.poison(poisoned, "why", text("copy", "DLQ"))
        if refused:
            with pytest.raises(JMSError, match="full"):
                session.do(flow)
        else:
            session.do(flow)
    assert [frame[0] for frame in frames] == ["ABORT" if refused == "SEND" else "ACK"]


def test_parked_messages_are_acknowledged_until_the_abort() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(3 + 4))

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach(prefetch=2)
        first, second = session.receive_many(2)
        session.channel.park([first, second])
        session.channel.unpark([first])  # the other one is parked anew
        session.channel.unpark([first])
        session.channel.unpark([second])
    one, two = frames[0][-1], frames[4][-1]
    assert frames == [
        ["BEGIN", one], ["ACK", "a:1", one], ["ACK", "a:2", one],
        ["ABORT", one], ["BEGIN", two], ["ACK", "a:2", two], ["ABORT", two],
    ]  # fmt: skip


def test_a_consumer_of_a_pattern_asks_for_its_answer_behind_the_subscribe() -> None:
    """With a receipt of its own Classic would attach it with a window of 0, and wake one queue only."""

    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        client.session().attach(Topic("news.#"))
        frames = broker.ends[0].taken[1:4]
    assert [frame.command for frame in frames] == ["SUBSCRIBE", "BEGIN", "ABORT"]
    assert frames[0].headers["destination"] == "/topic/news.>"
    assert ["receipt" in frame.headers for frame in frames] == [False, False, True]


def test_a_refused_consumer_of_a_pattern_is_refused_though_the_answer_names_nobody() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.take("SUBSCRIBE")
        end.take("BEGIN")
        end.send("ERROR", message="User ann is not authorized to read from: queue://orders.>")
        end.answer(end.take("ABORT"))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(SecurityError):
        client.session().attach("orders.>")


def test_a_commit_puts_what_is_parked_aside_or_classic_would_forget_it() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        while len(frames) < 8:
            frame = end.take()
            frames.append(lines(frame))
            if "receipt" in frame.headers:
                end.answer(frame)

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach(prefetch=2)
        first, second = session.receive_many(2)
        session.channel.park([first])
        session.do(session.channel.commit([second]))
        session.channel.unpark([first])
    one, own, two = frames[0][-1], frames[3][-1], frames[6][-1]
    assert frames[:8] == [
        ["BEGIN", one], ["ACK", "a:1", one],
        ["ABORT", one], ["BEGIN", own], ["ACK", "a:2", own], ["COMMIT", own],
        ["BEGIN", two], ["ACK", "a:1", two],
    ]  # fmt: skip


def test_a_few_that_wait_are_left_in_the_window() -> None:
    def then(end: BrokerEnd) -> None:
        end.goodbye()

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach(prefetch=8)  # half of it enters the transaction together; half of that may wait loose
        first, second, third = session.receive_many(3)
        session.channel.park([first])
        session.channel.park([second])
        session.channel.unpark([first])
        session.channel.park([third])
        session.channel.unpark([second, third])
        commands = [frame.command for frame in broker.ends[0].taken]
    assert "BEGIN" not in commands


def test_closing_undoes_and_unsubscribes_and_is_answered() -> None:
    frames: list[str] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        one = end.subscribed()
        end.subscribed()
        end.message(one, 1)
        end.message(one, 2)
        while True:
            frame = end.take()
            frames.append(frame.command)
            if "receipt" in frame.headers:
                end.answer(frame)

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach(prefetch=2)
        session.attach("others")
        first, second = session.receive_many(2)
        session.channel.handed_out(first)
        session.channel.park([second])
        session.do(session.channel.close())
        session.do(session.channel.close())
    assert frames == ["BEGIN", "ACK", "BEGIN", "ACK", "ABORT", "ABORT", "UNSUBSCRIBE", "UNSUBSCRIBE", "DISCONNECT"]


def test_closing_never_fails_for_a_lost_connection_and_reports_a_silent_broker() -> None:
    def ignore_one(end: BrokerEnd) -> None:
        end.take("UNSUBSCRIBE")

    with ScriptedBroker(with_messages(0, ignore_one)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.do(session.channel.close(), timeout=0.2)
        assert isinstance(client.errors[0], RequestTimeoutError)
        other = client.session()
        client.transport.abort()
        other.do(other.channel.close())
        session.do(session.channel.close())


def test_messages_of_a_closed_consumer_are_dropped_those_of_others_arrive() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        one, two = end.subscribed(), end.subscribed()
        leave = end.take("UNSUBSCRIBE")
        end.message(one, 1)
        end.message(two, 2)
        end.message(one, 3)
        end.answer(leave)
        end.message(two, 4)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        first = session.attach()
        session.attach("others")
        session.do(session.channel.detach(first))
        assert [each.header("message_id") for each in session.receive_many(2)] == ["m2", "m4"]


def test_an_error_that_answers_nobody_goes_to_the_listener_and_the_connection_lives() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("ACK")
        end.send("ERROR", b"trace", message="Unexpected ACK received for message-id [a:1]")

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.channel.accept([session.receive()], lazy=False)
        assert session.receive(0.2) is None
        assert client.error_event.wait(TIMEOUT)
        assert "Unexpected ACK" in str(client.errors[0])
        assert client.lost == []


def test_a_topic_is_a_topic_and_a_pattern_is_no_target() -> None:
    sent: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        sent.append(end.answer(end.take("SEND")))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        with pytest.raises(InvalidDestinationError, match="pattern"):
            session.send(text(destination="a.>"))
        assert session.send(text(destination=Topic("news"))) is None
    assert sent[0].headers["destination"] == "/topic/news"


# an unknown broker: the safest meaning


def test_unknown_no_ack_leaves_before_the_commit_is_confirmed() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(2))
        commit = end.take("COMMIT")
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            end.take()
        end.sock.settimeout(TIMEOUT)
        end.answer(commit)
        frames.append(lines(end.take("ACK")))
        last = end.take("ACK")
        frames.append(lines(last))
        end.answer(last)

    with ScriptedBroker(with_messages(2, then, server="Strange/1")) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.attach(prefetch=2)
        deliveries = session.receive_many(2)
        for delivery in deliveries:
            session.channel.handed_out(delivery)
        session.channel.park(deliveries)
        session.channel.send(text(), transacted=True, pending=None)
        session.do(session.channel.commit(deliveries))
    assert [frame[0] for frame in frames] == ["BEGIN", "SEND", "ACK", "ACK"]
    assert [frame[1:] for frame in frames[2:]] == [["a:1"], ["a:2"]]


def test_unknown_an_error_between_begin_and_commit_undoes_it() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        end.take("BEGIN"), end.take("SEND")
        end.send("ERROR", message="no permission")
        end.take("ABORT")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(T)
        session.channel.send(text(), transacted=True, pending=None)
        client.transport.wait(session.waiter, 0.2)
        with pytest.raises(TransactionRolledBackError, match="no permission"):
            session.do(session.channel.commit([]))


def test_unknown_poison_is_a_confirmed_copy_and_then_the_ack() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.append(lines(end.answer(end.take("SEND"))))
        frames.append(lines(end.take("ACK")))

    with ScriptedBroker(with_messages(1, then, server="Strange/1")) as broker, Client(broker.port) as client:
        session = client.session(A)
        session.attach()
        poisoned = session.receive()
        with pytest.raises(UnsupportedError, match="NACK may delete"):
            session.do(session.channel.poison(poisoned, "why", None))
        session.do(session.channel.poison(poisoned, "why", text("copy", "DLQ")))
    assert frames == [["SEND"], ["ACK", "a:1"]]


@pytest.mark.parametrize("options", [{"selector": "a = 1"}, {"no_local": True}])
def test_unknown_what_brokers_may_ignore_is_refused(options: dict[str, object]) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(UnsupportedError):
        client.session().attach(Queue("q"), **options)


def test_unknown_an_error_that_names_nobody_answers_whoever_asked() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        end.take("SUBSCRIBE")
        end.send("ERROR", message="no permission")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(SecurityError):
        client.session().attach()
