"""Both brokers' results side by side: what is the same, and how a difference is said."""

from __future__ import annotations

from collections.abc import Iterator

from tests.differential.scenarios import Played, Scenario

# How much later than its rules say a delivery may come on a machine that does other things, in milliseconds.
SLOW = 250


def differences(scenario: Scenario, real: Played, ours: Played) -> list[str]:
    """What the embedded broker does otherwise; empty where it does the same."""
    return list(_differences(scenario, real, ours))


def _differences(scenario: Scenario, real: Played, ours: Played) -> Iterator[str]:
    if real.deliveries != ours.deliveries:
        yield f"deliveries: {shown(real)}, here {shown(ours)}"
    if real.dead != ours.dead:
        yield f"dead letters: {real.dead or 'none'}, here {ours.dead or 'none'}"
    if real.left != ours.left:
        yield f"left in the queue: {real.left}, here {ours.left}"
    far = [
        (there, here)
        for there, here in zip(real.waits, ours.waits, strict=False)
        if not -SLOW <= there - here <= scenario.tolerance + SLOW
    ]
    if far:
        yield f"waits in ms: {real.waits}, here {ours.waits}"


def shown(played: Played) -> str:
    """``1:0 1:1``: each delivery's body and count."""
    return " ".join(f"{body}:{count}" for body, count in played.deliveries) or "none"
