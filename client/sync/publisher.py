"""Sending from any thread, a producer for each on a session of its own; and requests, which wait for their replies."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol, Unpack

from redelivery.client.connection.replies import PAUSE, Replies, check_sent, reply_of, request_options
from redelivery.client.connection.threads import closes_elsewhere
from redelivery.client.shells.publisher import BasePublisher
from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.made import Closing
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.transports.seam import Pending
from redelivery.transports.wire.clock import follow, session_time
from redelivery.transports.wire.threads.waiter import ThreadWaiter


class Publisher(BasePublisher, Closing):
    """Sends from any number of threads, also while listeners run. Made by `Connection.publisher`; a context manager.

    Each thread that sends gets a session of its own (AUTO: a send is not part of any transaction), which keeps the
    order of what the thread sends. The session of a thread that has ended is used for the next new thread, so there
    are never more of them than threads that were alive at the same time.
    """

    def __init__(
        self, new_session: Callable[[], Session], check_open: Callable[[str], None], what: str, close_timeout: float
    ) -> None:
        super().__init__(check_open, what)
        self._new_session = new_session
        self._close_timeout = close_timeout
        self._lock = threading.Lock()  # guards the one below, and the close
        self._lanes: dict[threading.Thread, tuple[Session, Producer]] = {}

    @suggesting(SYNONYMS)
    def send(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Message:
        """As `Producer.send`, from any thread. A persistent message is the broker's when this returns.

        A Message that is sent by several threads at once must be a copy for each.

        Raises:
            IllegalStateError: the publisher or the connection is closed.
            JMSError: as `Producer.send`.
        """
        lane = self._lanes.get(threading.current_thread()) or self._lane()
        return lane[1].send(body_or_message, destination, **options)

    def close(self) -> None:
        """Close its sessions; a send that is under way is waited for, within close_timeout. Twice is harmless.

        In a signal handler that has interrupted one: see `Connection.close`.
        """
        if closes_elsewhere((self,), self.close, self._close_timeout):
            return
        until = monotonic() + self._close_timeout
        with self._lock:
            self._closed = True
            lanes, self._lanes = self._lanes, {}
        for session, _ in lanes.values():
            session._close_until(until)

    def _sessions_now(self) -> int:
        return len(self._lanes)

    def _lane(self) -> tuple[Session, Producer]:
        """A session for the current thread: that of one that has ended, or a new one."""
        thread = threading.current_thread()
        with self._lock:
            self.check_open("send")
            ended = next((each for each in self._lanes if not each.is_alive()), None)
            if ended is None:
                session = self._new_session()
                lane = session, session.producer()
            else:
                lane = self._lanes.pop(ended)
            self._lanes[thread] = lane
        return lane


class RequestingCore(Protocol):
    """The part of a connection's core that its requests need."""

    def await_connection(self, action: str, until: float) -> None:
        """Wait while there is none, until ``until`` (see `session_time`)."""


class Requesting(Protocol):
    """The part of a connection that makes what its requests need."""

    def session(self) -> Session:
        """A new session."""

    def publisher(self) -> Publisher:
        """A new publisher."""

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost."""

    @property
    def _core(self) -> RequestingCore:
        """The connection's core."""


class Requester:
    """The requests of one connection: a session that consumes replies from a temporary queue, made by the first one."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._lock = threading.Lock()  # guards the making of those below
        self._publisher: Publisher | None = None
        self._consumer: Consumer | None = None

    def request(
        self,
        connection: Requesting,
        destination: Destination | str,
        body: object,
        timeout: float,
        options: SendKeywords,
    ) -> Message:
        """See `Connection.request`."""
        until = session_time() + timeout
        correlation_id, options = request_options(options, timeout)
        waiter = ThreadWaiter()
        follow(waiter)
        pending = Pending(waiter)
        with self._replies.expected(correlation_id, pending):
            connection._core.await_connection("request", until)
            self._send(connection, destination, body, options, pending, until)
            while not pending.done and (left := until - session_time()) > 0:
                waiter.wait(left)
        return reply_of(pending, destination, timeout)

    def _send(
        self,
        connection: Requesting,
        destination: Destination | str,
        body: object,
        options: SendKeywords,
        pending: Pending,
        until: float,
    ) -> None:
        while not pending.done:
            publisher, consumer = self._opened(connection)
            reply_to = consumer.destination
            try:
                keywords: SendKeywords = {**options, "reply_to": reply_to}
                publisher.send(body, destination, **keywords)
            except InvalidDestinationError:
                # it went with a lost connection meanwhile, so nothing was sent
                if session_time() >= until:
                    raise
                if consumer.destination == reply_to and not consumer.closed:  # its session has not come back yet
                    if not consumer._core.temporaries.replaced(reply_to):
                        raise
                    sleep(PAUSE)
            except InDoubtError as error:
                check_sent(error)
                return
            else:
                return

    def _opened(self, connection: Requesting) -> tuple[Publisher, Consumer]:
        with self._lock:
            connection.check_open("request")
            if self._publisher is None:
                self._publisher = connection.publisher()
            if self._consumer is None or self._consumer.closed:
                session = connection.session()
                try:
                    self._consumer = session.consumer(session.temporary_queue())
                    self._consumer.listen(self._replies.arrived)
                except BaseException:
                    self._consumer = None
                    session.close()
                    raise
            return self._publisher, self._consumer
