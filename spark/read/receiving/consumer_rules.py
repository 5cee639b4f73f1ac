"""The rules of the source's consumers: how much is sent ahead, and how a message is redelivered."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.policies.prefetch import MAX_PREFETCH, PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.spark.options.query import SourceOptions

_AHEAD: Final = 16 << 20  # bytes, of all consumers together


def window(options: SourceOptions, quota: int | None) -> PrefetchPolicy:
    """The option `prefetch`; without it as many as the broker is best with, and not much memory beside the segment."""
    most = MAX_PREFETCH if quota is None else min(quota, MAX_PREFETCH)
    if options.prefetch is not None:
        return PrefetchPolicy.of(min(options.prefetch, most))
    numbers = PrefetchPolicy() if quota is None else PrefetchPolicy.of(most)
    return replace(numbers, max_bytes=max(1, _AHEAD // len(options.destinations)))


def policy(options: SourceOptions) -> RedeliveryPolicy | None:
    """Without a limit unless there is one: a job that is restarted must not dead-letter what it never looked at.

    None: the URL has a policy of its own.
    """
    if "jms.redeliveryPolicy." in options.url:
        return None
    delay = options.redelivery_delay
    return RedeliveryPolicy(
        maximum_redeliveries=options.max_redeliveries, initial_redelivery_delay=delay, redelivery_delay=delay
    )
