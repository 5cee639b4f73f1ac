"""Sending from any thread, a producer for each on a session of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Unpack

from redelivery.client.connection.threads import closes_elsewhere
from redelivery.client.shells.producer import BasePublisher
from redelivery.client.sync.made import Closing
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.transports.wire.threads.guard import holding, uninterruptible


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
        self._lock = threading.Lock()  # guards the one below, and the close; a session is opened under it
        self._lanes: dict[threading.Thread, tuple[Session, Producer]] = {}

    @suggesting(SYNONYMS)
    def send(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Message:
        """As `Producer.send`, from any thread. A persistent message is the broker's when this returns.

        ``body_or_message``, ``destination`` and the options are those of `Producer.send`.
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
        if not closes_elsewhere((self,), self.close, self._close_timeout):
            self._close()

    @uninterruptible
    def _close(self) -> None:
        until = monotonic() + self._close_timeout
        with self._lock:
            self._closed = True
            lanes, self._lanes = self._lanes, {}
        for session, _ in lanes.values():
            session._close_until(until)

    def _sessions_now(self) -> int:
        return len(self._lanes)

    @uninterruptible
    def _lane(self) -> tuple[Session, Producer]:
        """A session for the current thread: that of one that has ended, or a new one."""
        thread = threading.current_thread()
        with holding(self._lock):
            self.check_open("send")
            ended = next((each for each in self._lanes if not each.is_alive()), None)
            if ended is None:
                session = self._new_session()
                lane = session, session.producer()
            else:
                lane = self._lanes.pop(ended)
            self._lanes[thread] = lane
        return lane
