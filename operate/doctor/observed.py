"""What a broker reports of its queues and its clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from redelivery.operate.doctor.findings import Finding

LARGEST_SKEW: Final = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class QueueState:
    """``messages``: on the queue; ``consumers``: None where the broker does not say; ``address``: on Artemis."""

    name: str
    messages: int
    consumers: int | None = None
    address: str | None = None


def check_queues(
    before: Mapping[str, QueueState], after: Mapping[str, QueueState], dead_letters: frozenset[str]
) -> Iterator[Finding]:
    """The findings of queues that were looked at twice.

    Args:
        before: the first look, by name.
        after: the second one.
        dead_letters: which of them, or of their addresses, hold dead letters.
    """
    for name, state in after.items():
        grew = state.messages - before[name].messages if name in before else 0
        if not state.messages or state.consumers or (state.consumers is None and grew < 0):
            continue  # there are none, or somebody reads them
        number = state.messages
        if name in dead_letters or state.address in dead_letters:
            grows = f", {grew} more than a moment ago" if grew > 0 else ""
            unread = "" if state.consumers is None else ", and nobody reads them"
            yield Finding(
                "error" if grew > 0 else "warning",
                "dead-letters",
                f"{number} dead letter{' is' if number == 1 else 's are'} in {name}{grows}{unread}",
                "each is work that was not done, and they fill the broker",
                f"read them, then send them again or delete them; watch the depth of {name}",
            )
        elif state.consumers == 0:
            yield Finding(
                "warning",
                "backlog",
                f"{number} message{' is' if number == 1 else 's are'} in {name}, which has no consumer",
                "nobody works on them, and they fill the broker",
                "start its consumer, or stop sending to it",
            )


def check_bound(dead_letter_addresses: Iterable[str], queues: Mapping[str, QueueState]) -> Iterator[Finding]:
    """The dead-letter addresses that no queue is bound to, where these are all queues of an Artemis broker.

    Of an address with ``::`` the broker makes the queue itself.
    """
    bound = {each.address for each in queues.values()}
    for address in dict.fromkeys(dead_letter_addresses):
        if "::" not in address and address not in bound and bound - {None}:
            yield Finding(
                "error",
                "unbound",
                f"the broker has no queue on the dead-letter address {address}",
                "a dead letter without a queue is removed",
                "make a queue on the dead-letter address, or let the broker create them",
            )


def check_clock(skew: float) -> Iterator[Finding]:
    """``skew``: seconds by which the broker's clock is ahead."""
    if abs(skew) > LARGEST_SKEW:
        yield Finding(
            "warning",
            "clock",
            f"the broker's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's",
            "messages with a time to live expire too early or too late, and delayed ones come at the wrong time",
            "let both machines take the time from NTP",
        )
