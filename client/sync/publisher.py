"""Sending from any thread: a producer for each, on a session of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Unpack

from redelivery.client.sync.closing import Closing
from redelivery.client.sync.producer import Producer
from redelivery.client.sync.session import Session
from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.model.sending import SYNONYMS, SendKeywords
from redelivery.model.suggestions import suggesting


class Publisher(Closing):
    """Sends from any number of threads, also while listeners run. Made by `Connection.publisher`; a context manager.

    Each thread that sends gets a session of its own (AUTO: a send is not part of any transaction), which keeps the
    order of what the thread sends. The session of a thread that has ended is used for the next new thread, so there
    are never more of them than threads that were alive at the same time.
    """

    def __init__(self, new_session: Callable[[], Session], check_open: Callable[[str], None], what: str) -> None:
        self._new_session = new_session
        self._check_connection = check_open
        self._what = what
        self._lock = threading.Lock()  # guards the two below
        self._lanes: dict[threading.Thread, tuple[Session, Producer]] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @suggesting(SYNONYMS)
    def send(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        **options: Unpack[SendKeywords],
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
        """Close its sessions; a send that is under way is waited for, within close_timeout. Twice is harmless."""
        with self._lock:
            self._closed = True
            lanes, self._lanes = self._lanes, {}
        for session, _ in lanes.values():
            session.close()

    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection closed or lost."""
        self._check_connection(action)
        if self._closed:
            raise IllegalStateError(f"{action}: the publisher was closed by close()")

    def __repr__(self) -> str:
        return f"<Publisher of {self._what}{' closed' if self._closed else f', {len(self._lanes)} sessions'}>"

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
