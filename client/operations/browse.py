"""Browsing: a look at what a queue holds, on a channel of its own, so that the session's transaction goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from redelivery.client.arguments import check_evaluates, check_selector
from redelivery.client.operations.reattach import await_loss, connected
from redelivery.client.session.state import SessionState
from redelivery.model.destinations import Destination, Queue
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConnectionLostError, InvalidDestinationError, JMSError, UnsupportedError
from redelivery.model.modes import AckMode
from redelivery.model.selectors.selector import Selector
from redelivery.transports.seam import Channel, Delivery, Flow, Link, LinkSpec, Peer, Transport, Waiter


class BrowseState:
    """One browser: its channel, and the iteration that is under way."""

    def __init__(self, queue: Queue, selector: str | None, window: int | None, waiter: Waiter) -> None:
        self.spec = LinkSpec(queue, selector, window=window, browse=True)
        self.queue = queue
        self.events = BrowserEvents(waiter)
        self.channel: Channel | None = None  # of its own: the session's inbox and transaction are not its affair
        self.transport: Transport | None = None  # that the channel is of
        self.link: Link | None = None  # of the iteration that is under way
        self.more = False


class BrowserEvents:
    """Of what a browser's channel notifies it: `redelivery.transports.seam.SessionEvents`."""

    def __init__(self, waiter: Waiter) -> None:
        self.inbox: deque[Delivery] = deque()
        self.waiter = waiter  # the session's: its one thread is the one that looks

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """See SessionEvents."""
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents: `Channel.browse_more` raises it."""


def begin(s: SessionState, b: BrowseState) -> Flow[Link]:
    """A new iteration; it ends the one that is under way. Raises as `Transport.channel`, and `Channel.attach`."""
    while True:
        try:
            channel = yield from _own_channel(s, b)
            yield from end(b)
            link = Link(b.spec)
            yield from channel.attach(link)
        except ConnectionLostError as error:  # nothing was shown yet
            yield from await_loss(s, error)
        else:
            b.link, b.more = link, True
            return link


def _own_channel(s: SessionState, b: BrowseState) -> Flow[Channel]:
    """Open its channel on the connection that its session has now."""
    yield from connected(s, "browse")
    s.temporaries.check_destination(b.queue)
    s.temporaries.check_own(b.queue)
    if b.channel is None or b.transport is not s.epoch.transport:
        check_evaluates(
            s.epoch.transport.peer, check_selector(b.spec.selector)
        )  # it may be another broker than the one before
        b.link = None
        b.channel = yield from s.epoch.transport.channel(AckMode.AUTO, b.events)
        b.transport = s.epoch.transport
        s.browsing.append(b.channel)
    return b.channel


def poll_once(b: BrowseState, link: Link) -> Flow[Delivery | None]:
    """The next message of the iteration; None: that was all."""
    assert b.channel is not None, "begun"
    while not b.events.inbox and b.more:
        b.more = yield from b.channel.browse_more(link)
    if b.events.inbox:
        return b.events.inbox.popleft()
    yield from end(b)
    return None


def end(b: BrowseState) -> Flow[None]:
    """End the iteration that is under way, if one is."""
    link, b.link = b.link, None
    if link is not None and b.channel is not None:
        yield from b.channel.detach(link)
    b.events.inbox.clear()


def leave(s: SessionState, b: BrowseState) -> Flow[None]:
    """Close its channel."""
    if b.channel is not None and b.channel in s.browsing:
        s.browsing.remove(b.channel)
        yield from b.channel.close()


def browse_state(s: SessionState, queue: Destination | str, selector: str | None) -> BrowseState:
    """The first state of a browser, of what the application gave.

    Raises:
        ConfigError, InvalidSelectorError: the selector is none.
        InvalidDestinationError: it is a topic.
        UnsupportedError: it is a pattern, or the broker cannot do it, or not with this selector.
    """
    condition = check_selector(selector)
    found = _check_browsable(s.epoch.transport.peer, parse_destination(queue), condition)
    text = None if condition is None else condition.text
    return BrowseState(found, text, s.options.prefetch.for_destination(found, browser=True), s.waiter)


def _check_browsable(peer: Peer, target: Destination, selector: Selector | None) -> Queue:
    if not isinstance(target, Queue):
        raise InvalidDestinationError(f"{target}: a topic holds no messages; browse a queue")
    if target.is_pattern:
        raise UnsupportedError(f"{target} is a pattern: a browser looks at one queue; make a browser for each")
    if not peer.capabilities.browse:
        raise UnsupportedError(
            f"{peer.provider_name} over {peer.protocol} has no browsing: it would hand the "
            "messages out to be consumed; use its own tools to look, or a broker and protocol that browse"
        )
    check_evaluates(peer, selector)
    return target
