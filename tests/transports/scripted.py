"""A broker that follows a script frame by frame, and the sessions that talk to it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from tests.run.opening import open_transport

from redelivery.client.session.epoch import Bare
from redelivery.client.sync.driver import close_transport, run
from redelivery.model.destinations import Destination, Queue
from redelivery.model.destinations import destination as parse
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Channel, Delivery, Flow, Link, LinkSpec, Pending, T, TransportOptions
from redelivery.transports.stomp.adapter import StompTransport
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.reader import FrameReader
from redelivery.transports.wire.clock import monotonic

TIMEOUT = 5.0
SHARING = "redelivery/1"  # a server on which the sessions of a connection share its socket


def as_destination(destination: str | Destination) -> Destination:
    """A name without a scheme is a queue's, whatever it holds."""
    if isinstance(destination, str) and "://" not in destination:
        return Queue(destination)
    return parse(destination)


class LookedError(ConnectionError):
    """The connection was one that looks for a queue: there is none with other arguments."""


class BrokerEnd:
    """The broker's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(TIMEOUT)
        self.sock = sock
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self.taken: list[Frame] = []

    def take(self, *commands: str) -> Frame:
        """The next frame, which must be one of these commands."""
        while not self._frames:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("the client has closed")
            self._frames += [Frame(*raw) for raw in self._reader.feed(data)]
        frame = self._frames.popleft()
        if frame.command == "BEGIN" and frame.headers["transaction"] == "redelivery-look":
            for command in ("SEND", "ABORT", "SEND"):
                frame = self.take(command)
            self.answer(frame)
            raise LookedError
        if frame.headers.get("destination") == "redelivery.answers":  # there are no queues of other names
            for question in [self.take("SEND") for _ in range(4)]:
                number = question.headers["correlation-id"]
                self.send("MESSAGE", b'["{\\"data\\":[]}"]', _AMQ_OperationSucceeded="true", correlation_id=number)
            raise LookedError
        self.taken.append(frame)
        assert not commands or frame.command in commands, f"{frame.command} came, not {commands}"
        return frame

    def send(self, command: str, body: bytes = b"", **headers: str) -> None:
        named = {name if name[0] == "_" else name.replace("_", "-"): value for name, value in headers.items()}
        self.write(encode(command, named, body))

    def write(self, data: bytes) -> None:
        self.sock.sendall(data)

    def log_in(self, server: str = "ActiveMQ/5.18.3", heart_beat: str = "0,0", version: str = "1.2") -> Frame:
        frame = self.take("CONNECT")
        self.send("CONNECTED", version=version, server=server, heart_beat=heart_beat)
        return frame

    def answer(self, frame: Frame) -> Frame:
        self.send("RECEIPT", receipt_id=frame.headers["receipt"])
        return frame

    def refuse(self, frame: Frame, message: str, body: str = "") -> None:
        self.send("ERROR", body.encode(), receipt_id=frame.headers["receipt"], message=message)

    def subscribed(self) -> str:
        """Take a SUBSCRIBE and answer it; the subscription's id."""
        frame = self.take("SUBSCRIBE")
        if "receipt" in frame.headers:
            self.answer(frame)
        else:  # of a pattern: an empty transaction behind it asks
            self.take("BEGIN")
            self.answer(self.take("ABORT"))
        return frame.headers["id"]

    def message(self, subscription: str, number: int, body: bytes = b"x", **headers: str) -> None:
        self.send("MESSAGE", body, subscription=subscription, ack=f"a:{number}", message_id=f"m{number}", **headers)

    def greet(self) -> None:
        """Let a client in, which then leaves."""
        self.log_in()
        self.goodbye()

    def goodbye(self) -> None:
        """Answer whatever asks for a receipt until the client has gone."""
        try:
            while True:
                frame = self.take()
                if "receipt" in frame.headers:
                    self.answer(frame)
        except OSError:
            return


Script = Callable[[BrokerEnd], None]


class ScriptedBroker:
    """Listens on a port of its own; each connection follows the script. Leaving raises what a script raised."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.problems: list[BaseException] = []
        self.ends: list[BrokerEnd] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._follow, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _follow(self, sock: socket.socket) -> None:
        try:
            sock = sock if self._tls is None else self._tls.wrap_socket(sock, server_side=True)
            end = BrokerEnd(sock)
            self.ends.append(end)
            self._script(end)
        except LookedError:
            self.ends.remove(end)
        except OSError:
            pass
        except BaseException as problem:  # noqa: BLE001  # shown by the test's thread
            self.problems.append(problem)
        finally:
            sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(TIMEOUT)
        if self.problems:
            raise self.problems[0]


class Session:
    """A session's side of the seam, without a ledger."""

    def __init__(self, client: Client, mode: AckMode) -> None:
        self.transport = client.transport
        self.inbox: deque[Delivery] = deque()
        self.waiter = client.transport.new_waiter()
        self.channel: Channel = self.do(client.transport.channel(mode, self))

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        raise AssertionError((link, error))

    def do(self, flow: Flow[T], timeout: float = TIMEOUT) -> T:
        return run(flow, Bare(self.transport), self.waiter, timeout)

    def attach(self, destination: str | Destination = "orders", **options: Any) -> Link:
        link = Link(LinkSpec(as_destination(destination), **options))
        self.do(self.channel.attach(link))
        return link

    def receive(self, timeout: float = TIMEOUT) -> Any:
        """The next delivery (Any: tests look at what is STOMP's own), None after the time-out."""
        deadline = monotonic() + timeout
        while not self.inbox:
            remaining = deadline - monotonic()
            if remaining <= 0:
                return None
            self.transport.wait(self.waiter, remaining)
        return self.inbox.popleft()

    def receive_many(self, number: int) -> list[Any]:
        return [self.receive() for _ in range(number)]

    def send(self, message: Message) -> JMSError | None:
        """Send and wait for the answer; the error that it is."""
        pending = Pending(self.waiter)
        self.channel.send(message, transacted=False, pending=pending)
        while not pending.done:
            self.transport.wait(self.waiter, TIMEOUT)
        return pending.error


class Client:
    """A transport that is open, and of what it notified its connection."""

    def __init__(self, port: int, *, opened: bool = True, **options: Any) -> None:
        self.lost: list[JMSError] = []
        self.errors: list[JMSError] = []
        self.lost_event = threading.Event()
        self.error_event = threading.Event()
        defaults = {"scheme": "stomp", "host": "127.0.0.1", "port": port, "heartbeat": 0.0, "close_timeout": 2.0}
        self.transport = StompTransport(TransportOptions(**{**defaults, **options}), self)
        if opened:
            self.open()

    def open(self) -> None:
        open_transport(self.transport)

    def close(self) -> None:
        close_transport(self.transport)

    def abort(self) -> None:
        self.transport.abort()

    def on_lost(self, error: JMSError) -> None:
        self.lost.append(error)
        self.lost_event.set()

    def on_error(self, error: JMSError) -> None:
        self.errors.append(error)
        self.error_event.set()

    def session(self, mode: AckMode = AckMode.AUTO) -> Session:
        return Session(self, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.transport.abort()


def text(body: object = "x", destination: str | Destination = "orders", **stamps: object) -> Message:
    """A message as a producer stamps it."""
    message = body if isinstance(body, Message) else Message(body)
    message.stamp(**{"destination": as_destination(destination), "persistent": True, "priority": 4, **stamps})
    return message


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
