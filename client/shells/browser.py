"""A browser, but for its calls that wait."""

from __future__ import annotations

from typing import Any, cast

from redelivery.client.operations.browse import BrowseState, begin, poll_once
from redelivery.client.session.state import SessionState
from redelivery.model.destinations import Queue
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message, Receipt
from redelivery.transports.seam import Flow, Link


class BaseBrowser:
    """Of both shells."""

    _core: SessionState
    _message: type[Message] = Message  # the class of what the application gets

    def __init__(self, core: SessionState, state: BrowseState) -> None:
        self._core = core
        self._state = state
        self._closed = False

    @property
    def queue(self) -> Queue:
        """The queue that it browses."""
        return self._state.queue

    @property
    def selector(self) -> str | None:
        """The selector, if there is one."""
        return self._state.spec.selector

    @property
    def closed(self) -> bool:
        """True: it was closed."""
        return self._closed

    def check_open(self, action: str) -> None:
        """Raise IllegalStateError where it is closed; the text names ``action``."""
        if self._closed:
            raise IllegalStateError(f"{action}: the browser of {self.queue} was closed by close()")

    def __repr__(self) -> str:
        return f"<QueueBrowser {self.queue}{' closed' if self._closed else ''}>"

    def _begin(self) -> Flow[Link]:
        self.check_open("browse")
        return (yield from begin(self._core, self._state))

    def _poll_once(self, link: Link) -> Flow[Any]:
        """The next message of an iteration; None: that was all."""
        self.check_open("browse")
        if link is not self._state.link:
            raise IllegalStateError(f"browse: another iteration over {self.queue} has begun, which ended this one")
        delivery = yield from poll_once(self._state, link)
        return None if delivery is None else self._message.received(delivery, 0, cast(Receipt, self))

    @property
    def _nothing_there(self) -> bool:
        """True: there is nothing of it at the broker, or not any more."""
        return self._state.channel is None or self._core.life.ended or self._core.lost is not None
