"""Address settings as the policy of a client that redelivers by itself."""

from __future__ import annotations

from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.redelivery import NO_LIMIT, RedeliveryPolicy


def client_policy(settings: AddressSettings) -> RedeliveryPolicy:
    """Return the policy of a client that waits and gives up as these settings say."""
    attempts = settings.max_delivery_attempts
    multiplier = settings.redelivery_delay_multiplier
    factor = settings.redelivery_collision_avoidance_factor
    first = settings.redelivery_delay if factor > 0 else min(settings.redelivery_delay, settings.longest_delay)
    return RedeliveryPolicy(
        maximum_redeliveries=attempts - 1 if attempts > 0 else NO_LIMIT,
        initial_redelivery_delay=first,
        redelivery_delay=first,
        use_exponential_back_off=multiplier > 1,
        back_off_multiplier=multiplier if multiplier > 1 else 5.0,
        maximum_redelivery_delay=settings.longest_delay if multiplier > 1 or factor > 0 else None,
        use_collision_avoidance=factor > 0,
        collision_avoidance_percent=round(factor * 100) if factor > 0 else 15,
        move_first_delay=factor > 0,
        pre_dispatch_check=None,
        pre_dispatch_check_set=False,
    )
