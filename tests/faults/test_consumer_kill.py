"""kill -9 of a consumer at any moment: nothing is lost, and every duplicate has its reason.

A process moves messages from one queue to another in transactions and is killed at a random point of its output; then
the next one goes on. Lost: not on the target queue at the end. Every delivery after the first is explained by the end
of the one before: its transaction was rolled back, or was open at a kill, or its commit was under way then (in doubt).
The target queue shows which of the two an in-doubt commit was: each message stands there exactly once.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from tests.conformance.stage import Stage, numbered

# The long form, 1,000 messages and 20 kills, is what CI runs.
KILLS = int(os.environ.get("REDELIVERY_KILLS", "5"))
MESSAGES = 50 * KILLS if KILLS > 5 else 200

Fate = Literal["open at the kill", "rolled back", "in doubt", "committed"]


@dataclass
class Account:
    """What all processes did with each message, in order, from their own words."""

    deliveries: dict[str, list[Fate]] = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)

    def read(self, lines: list[str]) -> None:
        """The output of one process, up to its kill or its end."""
        batch: list[str] = []
        fate: Fate = "open at the kill"
        for line in lines:
            verb, *words = line.split()
            if verb == "got":
                batch.append(words[0])
                self.counts.setdefault(words[0], []).append(int(words[1]))
            elif verb == "commit":
                fate = "in doubt"
            elif verb in {"committed", "rolled-back"}:
                self._end(batch, "committed" if verb == "committed" else "rolled back")
                batch, fate = [], "open at the kill"
        self._end(batch, fate)

    def _end(self, batch: list[str], fate: Fate) -> None:
        for body in batch:
            self.deliveries.setdefault(body, []).append(fate)


def victim(stage: Stage, target: str, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("victim.py"))]
    command += [stage.pair.url, stage.queue, target, str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own script


def lines_until_kill(process: subprocess.Popen[str], count: int) -> Iterator[str]:
    """Its lines; it is killed when ``count`` of them have come, and what it said meanwhile follows."""
    assert process.stdout is not None
    for number, line in enumerate(process.stdout, start=1):
        if number == count:
            process.kill()
        if line.endswith("\n"):
            yield line


@pytest.mark.timeout(60 + 10 * KILLS)
def test_a_consumer_killed_at_random_moments_loses_nothing(stage: Stage) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311  # a test that can be repeated
    bodies = numbered(MESSAGES)
    target = f"{stage.queue}.target"
    stage.send(*bodies)
    account = Account()
    ended = False
    for kill in range(KILLS):
        with victim(stage, target, seed + kill) as process:
            lines = list(lines_until_kill(process, chance.randrange(1, 2 * MESSAGES // KILLS)))
        account.read(lines)
        ended = "end\n" in lines
    if not ended:
        with victim(stage, target, seed + KILLS) as process:
            assert process.stdout is not None
            lines = list(process.stdout)
        assert process.returncode == 0
        assert lines[-1] == "end\n"
        account.read(lines)

    moved = Counter(stage.left_bodies(target))
    assert sorted(set(bodies) - set(moved)) == [], "lost"
    assert {body: n for body, n in moved.items() if n > 1} == {}, "committed twice"
    assert stage.left_bodies() == []
    assert stage.dead_letters() == []

    for body in bodies:
        *earlier, last = account.deliveries[body]
        assert "committed" not in earlier, f"{body} came again after its commit: {account.deliveries[body]}"
        assert last in {"committed", "in doubt"}, f"{body} was moved, but nobody committed it: {last}"
        assert all(count > 1 for count in account.counts[body][1:]), f"{body} came again without the redelivered flag"
    print("fates:", Counter(fate for fates in account.deliveries.values() for fate in fates))
