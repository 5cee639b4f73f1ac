"""ActiveMQ's prefetch policy: what a broker may send ahead of its acknowledgement, in messages and in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from redelivery.model.destinations import Destination, Topic
from redelivery.policies.checks import check_known, check_whole, read_whole

MAX_PREFETCH: Final = 32767
MAX_BYTES: Final = 1 << 40
_FIRST: Final = 10  # messages of unknown size
_ALL: Final = "all"
BEAN: Final[Mapping[str, str]] = {
    "queuePrefetch": "queue",
    "topicPrefetch": "topic",
    "durableTopicPrefetch": "durable_topic",
    "queueBrowserPrefetch": "browser",
    _ALL: "",
}
"""Name of an option -> the field of PrefetchPolicy; "" for all of them."""


@dataclass(frozen=True, slots=True)
class PrefetchPolicy:
    """Messages sent ahead, by kind of consumer; 0 to 32767, None for the dialect's default.

    ``queue``: to a consumer of a queue.
    ``topic``: to one of a topic.
    ``durable_topic``: to one of a durable subscription.
    ``browser``: to a browser.
    ``max_bytes``: about so many bytes of them, where the protocol can count them or the window can be changed (AMQP,
    and STOMP but on ActiveMQ). The numbers are the most then, and at most what is good for the broker: a window begins
    with few messages, and grows while they are small. Browsers have no such bound. None: numbers alone decide.

    Raises:
        ConfigError: a value of a wrong type or out of its range; the text names it.
    """

    queue: int | None = None
    topic: int | None = None
    durable_topic: int | None = None
    browser: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("queue", "topic", "durable_topic", "browser"):
            value = getattr(self, name)
            if value is not None:
                check_whole(f"prefetch of {name}", value, 0, MAX_PREFETCH)
        if self.max_bytes is not None:
            check_whole("max_bytes of a prefetch", self.max_bytes, 1, MAX_BYTES)

    @classmethod
    def of(cls, value: PrefetchPolicy | int | None) -> PrefetchPolicy:
        """A policy from itself, from one number for every kind of consumer, or from None (all defaults)."""
        if isinstance(value, PrefetchPolicy):
            return value
        if value is None:
            return cls()
        number = check_whole("prefetch", value, 0, MAX_PREFETCH)
        return cls(number, number, number, number)

    @classmethod
    def from_activemq(cls, options: Mapping[str, object], *, prefix: str = "") -> PrefetchPolicy:
        """A policy from ``options`` with ActiveMQ's names, as str or values; ``all``: where nothing nearer is named.

        ``prefix`` stands before the names in errors.

        Raises:
            ConfigError: an unknown name, or a value that does not fit it; the text names it.
        """
        check_known(BEAN, options, prefix)
        numbers = {name: read_whole(prefix + name, value, 0, MAX_PREFETCH) for name, value in options.items()}
        every = numbers.pop(_ALL, None)
        fields = {field: numbers.get(name, every) for name, field in BEAN.items() if name != _ALL}
        return cls(**fields)

    def for_destination(self, destination: Destination, *, durable: bool = False, browser: bool = False) -> int | None:
        """The number for a consumer of this destination; None where the dialect decides."""
        if browser:
            return self.browser
        if isinstance(destination, Topic):
            return self.durable_topic if durable else self.topic
        return self.queue


class GrowingWindow:
    """A window in messages that is to hold about so many bytes: few at first, as nobody knows how large they are.

    ``most``: messages, however small they are.
    """

    def __init__(self, most: int, max_bytes: int) -> None:
        self._most = most
        self._bytes = max_bytes
        self.size = min(most, _FIRST)
        """Messages, from the last `grow` on."""

    def grow(self, number: int, size: int) -> int:
        """Return the window after so many more messages of ``size`` bytes together: at most twice that before."""
        if number:
            self.size = max(1, min(self._most, 2 * self.size, self._bytes * number // max(1, size)))
        return self.size
