"""Both brokers' results side by side: what is the same, and how a difference is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.differential.scenario import Played, Scenario

# How much earlier than promised a delivery may come, since clocks have ticks, and how much later on a machine that does
# other things, in milliseconds.
EARLY = 30
SLOW = 400


def differences(scenario: Scenario, real: Played, ours: Played) -> list[str]:
    """What the embedded broker does otherwise, and waits that are not what the file promises; empty if all is well."""
    return list(_differences(scenario, real, ours))


def _differences(scenario: Scenario, real: Played, ours: Played) -> Iterator[str]:
    if real.deliveries != ours.deliveries:
        yield f"deliveries: {shown(real)}, here {shown(ours)}"
    if real.dead != ours.dead:
        yield f"dead letters: {real.dead or 'none'}, here {ours.dead or 'none'}"
    if real.left != ours.left:
        yield f"left in the queue: {real.left}, here {ours.left}"
    for whose, waits, late in (("there", real.waits, SLOW + scenario.tolerance), ("here", ours.waits, SLOW)):
        promised = promised_waits(scenario, len(waits))
        if not all(
            delay is None or delay - EARLY <= wait <= delay + late for wait, delay in zip(waits, promised, strict=True)
        ):
            yield f"waits in ms: {promised} promised, {whose} {waits}"


def promised_waits(scenario: Scenario, number: int) -> Sequence[int | None]:
    """Milliseconds before each delivery but the first; the last of the scenario's counts for all after it."""
    delays = scenario.delays
    return [delays[min(index, len(delays) - 1)] for index in range(number)]


def shown(played: Played) -> str:
    """``1:0 1:1``: each delivery's body and count."""
    return " ".join(f"{body}:{count}" for body, count in played.deliveries) or "none"
