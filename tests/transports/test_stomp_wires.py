"""Which session has which socket: a wire of its own for each on ActiveMQ Classic, one for all elsewhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from tests.transports.scripted import SHARING, TIMEOUT, BrokerEnd, Client, ScriptedBroker

import redelivery
from redelivery import ConnectError, Connection, ConnectionLostError, IllegalStateError, JMSError, SecurityError
from redelivery.model.errors import ProtocolError
from redelivery.transports.seam import Pending
from redelivery.transports.stomp.codec.frames import Frame
from redelivery.transports.wire.clock import monotonic

Open = Callable[..., Connection]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class Wires:
    """A broker that answers all, and the commands that each connection has sent."""

    def __init__(self, server: str = "ActiveMQ/5.18.3") -> None:
        self.commands: list[list[str]] = []
        self.logins: list[Frame] = []
        self.refuse_login: str | None = None
        self.mute = False  # no login is answered
        self.silent_at: set[str] = set()  # commands that nothing answers
        self.gone = threading.Semaphore(0)  # connections that the client has closed
        self._server = server

    def __call__(self, end: BrokerEnd) -> None:
        commands: list[str] = []
        self.commands.append(commands)
        if self.refuse_login is not None:
            end.take("CONNECT")
            end.send("ERROR", message=self.refuse_login)
            return
        try:
            login = end.take("CONNECT")
            if not self.mute:
                self.logins.append(login)
                end.send("CONNECTED", version="1.2", server=self._server)
            while True:
                frame = end.take()
                commands.append(frame.command)
                if "receipt" in frame.headers and frame.command not in self.silent_at:
                    end.answer(frame)
        except (OSError, ProtocolError):  # the latter: who got no answer asks whether the port speaks AMQP
            self.gone.release()

    def wait_gone(self, number: int) -> None:
        for _ in range(number):
            assert self.gone.acquire(timeout=TIMEOUT), "a socket stays open"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def connect(opened: ExitStack) -> Callable[..., tuple[Connection, ScriptedBroker]]:
    def connect_to(wires: Wires, **options: Any) -> tuple[Connection, ScriptedBroker]:
        broker = opened.enter_context(ScriptedBroker(wires))
        url = f"stomp://ann:secret@127.0.0.1:{broker.port}"
        options = {"close_timeout": 2.0, "heartbeat": 0, **options}
        return opened.enter_context(redelivery.connect(url, **options)), broker

    return connect_to


Connect = Callable[..., tuple[Connection, ScriptedBroker]]


def test_each_session_has_a_wire_and_the_first_one_that_of_the_connection(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires)
    assert len(wires.logins) == 1
    for number in range(3):
        connection.session().consumer(f"q{number}")
    assert wires.commands == [["SUBSCRIBE"]] * 3
    assert {(login.headers["login"], login.headers["passcode"]) for login in wires.logins} == {("ann", "secret")}


def test_the_wire_of_the_client_id_is_for_the_session_with_durable_subscriptions(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires, client_id="me")
    sessions = [connection.session() for _ in range(2)]
    sessions[0].consumer("q0")
    sessions[1].durable_consumer("topic://t", "sub").close()
    assert [login.headers.get("client-id") for login in wires.logins] == ["me", None, None]  # it is taken once
    assert wires.commands[:2] == [["SUBSCRIBE", "UNSUBSCRIBE"], ["SUBSCRIBE"]]
    with pytest.raises(IllegalStateError, match="before its other consumers"):
        sessions[0].durable_consumer("topic://t", "other")
    third = connection.session()
    with pytest.raises(IllegalStateError, match="another one has that place"):
        third.durable_consumer("topic://t", "other")
    third.consumer("q2")  # it lives on
    sessions[1].close()
    connection.session().durable_consumer("topic://t", "other")
    assert wires.commands[0][-1] == "SUBSCRIBE"


def test_elsewhere_all_share_one(connect: Connect) -> None:
    wires = Wires(SHARING)
    connection, _ = connect(wires)
    for number in range(3):
        connection.session().consumer(f"q{number}")
    assert wires.commands == [["SUBSCRIBE"] * 3]


def test_of_the_wires_that_are_free_one_is_kept_beside_the_connection_s(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires)
    sessions = [connection.session() for _ in range(4)]
    for session in sessions:
        session.close()
    wires.wait_gone(2)
    asked = ["BEGIN", "ABORT"]  # all was answered, and nothing is left
    assert sorted(wires.commands) == [asked, asked, ["DISCONNECT"], ["DISCONNECT"]]
    for _ in range(2):
        connection.session()
    assert len(wires.logins) == 4
    connection.session()
    assert len(wires.logins) == 5


def test_a_broker_that_hangs_up_with_the_answer_to_a_wire_s_goodbye_takes_nothing_else_down() -> None:
    gone = threading.Semaphore(0)

    def script(end: BrokerEnd) -> None:
        end.log_in()
        while (frame := end.take()).command != "DISCONNECT":
            end.answer(frame) if "receipt" in frame.headers else None
        end.answer(frame)
        end.sock.shutdown(2)
        gone.release()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        sessions = [client.session() for _ in range(3)]
        sessions[1].do(sessions[1].channel.close())  # its wire is kept
        flow = sessions[2].channel.close()
        pending = next(flow)
        assert isinstance(pending, Pending)
        assert gone.acquire(timeout=TIMEOUT)
        waiter: Any = sessions[2].waiter
        assert waiter.place.leader.read_now()  # as the housekeeping thread reads: all that is there
        assert pending.done
        with pytest.raises(StopIteration):
            next(flow)
        assert client.lost == []
        sessions[0].do(sessions[0].channel.close())


def test_opening_and_closing_sessions_leaves_no_descriptor_behind(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires)
    with connection.session(), connection.session():
        pass
    before, threads = descriptors(), threading.active_count()
    for _ in range(20):
        with connection.session(), connection.session(), connection.session():
            pass
    wires.wait_gone(20)
    assert descriptors() <= before + 1  # the broker's end of the last
    connection.close()
    wires.wait_gone(2)
    assert threading.active_count() <= threads


@pytest.mark.parametrize(
    ("words", "error"), [("Exceeded the maximum number of connections", ConnectError), ("access denied", SecurityError)]
)
def test_a_wire_that_is_refused_is_an_error_of_that_session_alone(
    connect: Connect, words: str, error: type[JMSError]
) -> None:
    wires = Wires()
    reported: list[JMSError] = []
    connection, _ = connect(wires, exception_listener=reported.append)
    first = connection.session()
    wires.refuse_login = words
    before = descriptors()
    with pytest.raises(error, match=rf"session: with ActiveMQ over STOMP each session has a socket.*{words}"):
        connection.session()
    assert descriptors() <= before + 1
    first.producer("q").send("x")
    assert (connection.connected, reported) == (True, [])
    wires.refuse_login = None
    connection.session().producer("q").send("x")


def test_a_broker_that_does_not_answer_the_login_of_a_wire_is_waited_for_within_the_time(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires, connect_timeout=0.3)
    connection.session()
    wires.mute = True
    began = monotonic()
    with pytest.raises(ConnectError, match=r"did not answer CONNECT within connect_timeout=0\.3 s"):
        connection.session()
    assert monotonic() - began < 2.0
    assert connection.connected
    wires.wait_gone(1)


def test_the_loss_of_one_wire_is_the_loss_of_the_connection_reported_once(connect: Connect) -> None:
    wires = Wires()
    reported: list[JMSError] = []
    heard = threading.Event()

    def listen(error: JMSError) -> None:
        reported.append(error)
        heard.set()

    connection, broker = connect(wires, exception_listener=listen)
    sessions = [connection.session() for _ in range(3)]
    consumers = [session.consumer("q") for session in sessions]
    broker.ends[1].sock.shutdown(2)
    for consumer in (consumers[1], consumers[0], consumers[2]):
        with pytest.raises(ConnectionLostError):
            consumer.receive(TIMEOUT)
    wires.wait_gone(3)
    assert heard.wait(TIMEOUT)
    with pytest.raises(ConnectionLostError):
        connection.session()
    connection.close()
    assert [type(each) for each in reported] == [ConnectionLostError]


def test_a_session_that_waits_hears_of_the_loss_of_another_ones_wire(connect: Connect) -> None:
    wires = Wires()
    connection, broker = connect(wires, heartbeat=0)
    sessions = [connection.session() for _ in range(3)]
    consumers = [session.consumer("q") for session in sessions]
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(consumer.receive, TIMEOUT) for consumer in consumers]
        broker.ends[2].sock.shutdown(2)
        for each in waiting:
            assert isinstance(each.exception(TIMEOUT), ConnectionLostError)


def test_close_says_goodbye_on_all_and_is_bounded_as_a_whole(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires, close_timeout=0.5)
    for _ in range(5):
        connection.session()
    wires.silent_at = {"DISCONNECT", "ABORT"}
    began = monotonic()
    connection.close()
    assert monotonic() - began < 2.5  # the sessions share one close_timeout, the wires another
    wires.wait_gone(5)


def test_a_wire_on_which_a_session_s_end_was_not_answered_is_not_used_again(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires, close_timeout=0.3)
    one, two = connection.session(), connection.session()
    wires.silent_at = {"ABORT"}
    one.close()
    two.close()
    wires.wait_gone(1)  # the further one
    wires.silent_at = set()
    connection.session()
    assert len(wires.logins) == 3
    assert connection.connected


@pytest.mark.parametrize("which", [0, 1])
def test_the_futures_of_a_session_that_is_closed_are_done(connect: Connect, which: int) -> None:
    wires = Wires()
    connection, _ = connect(wires)
    sessions = [connection.session() for _ in range(2)]
    producer = sessions[which].producer("q")
    futures = [producer.send_async(str(each)) for each in range(50)]
    sessions[which].close()
    assert all(each.done() and each.exception() is None for each in futures)


def test_a_future_is_answered_though_its_session_does_nothing_more(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires)
    connection.session()
    assert connection.session().producer("q").send_async("x").result(TIMEOUT).body == "x"


def test_a_session_that_is_made_while_the_connection_closes_leaves_nothing_open(connect: Connect) -> None:
    wires, reached, go_on = Wires(), threading.Event(), threading.Event()

    class Slow(Wires):
        def __call__(self, end: BrokerEnd) -> None:
            if self.logins:
                reached.set()
                go_on.wait(TIMEOUT)
            super().__call__(end)

    wires = Slow()
    connection, _ = connect(wires)
    connection.session()
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(connection.session)
        assert reached.wait(TIMEOUT)
        connection.close()  # does not wait for it
        go_on.set()
        assert isinstance(making.exception(TIMEOUT), JMSError)
    wires.wait_gone(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # threads and fork: that is what is tested
def test_a_child_after_fork_opens_no_wire_for_its_parent_s_connection(connect: Connect) -> None:
    wires = Wires()
    connection, _ = connect(wires)
    connection.session()
    child = os.fork()
    if child == 0:
        try:
            connection.session()
        except ConnectionLostError as error:
            os._exit(0 if "before fork()" in str(error) else 2)
        except BaseException:  # noqa: BLE001 - a child of a test must end here
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    connection.session().producer("q").send("x")
    assert len(wires.logins) == 2
