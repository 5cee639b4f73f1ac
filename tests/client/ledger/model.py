"""The rules of redelivery once more, written from ActiveMQ's and JMS's words, slow and plain: what a ledger must do.

Nothing here knows how the ledger works. Lists are searched, orders are noted as effects, and every question is
answered from the history of each letter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy

CHANCE = 0.75
"""What every draw of the machine's random numbers gives: jitter goes up by three quarters of its width."""


@dataclass(frozen=True)
class Limits:
    """A redelivery policy in ActiveMQ's milliseconds."""

    maximum: int
    first: int
    later: int
    multiplier: int | None = None
    cap: int | None = None
    spread: bool = False

    def delay(self, count: int) -> float:
        """Seconds before the redelivery of that count, 1 for the first: never jittered, never capped."""
        ms = self.first
        for _ in range(count - 1):
            if self.multiplier and ms > 0:
                ms *= self.multiplier
                if self.cap is not None and ms > self.cap:
                    ms = max(self.cap, self.later)
            else:
                ms = self.later
            if self.spread:
                ms = int(ms + ms * (0.15 * CHANCE))
        return ms / 1000

    def ended(self, count: int) -> bool:
        return self.maximum != -1 and count > self.maximum

    def policy(self) -> RedeliveryPolicy:
        return RedeliveryPolicy(
            maximum_redeliveries=self.maximum,
            initial_redelivery_delay=self.first / 1000,
            redelivery_delay=self.later / 1000,
            use_exponential_back_off=self.multiplier is not None,
            back_off_multiplier=self.multiplier or 5,
            maximum_redelivery_delay=None if self.cap is None else self.cap / 1000,
            use_collision_avoidance=self.spread,
        )


class Place(Enum):
    """Where a letter is: in exactly one place."""

    READY = "ready"
    HELD = "held"
    DELAYED = "delayed"
    SETTLED = "settled"
    POISONED = "poisoned"
    BROKER = "back at the broker"


@dataclass(eq=False)
class Letter:
    """One message and its history."""

    name: str
    lane: Lane
    wire: int
    expires: int
    failures: int = 0
    reason: str = "null"
    place: Place = Place.READY
    verdict: tuple[str, bool] | None = None  # cause, expired: once condemned, always

    @property
    def count(self) -> int:
        return self.wire - 1 + self.failures


@dataclass(eq=False)
class Lane:
    """One consumer."""

    name: str
    limits: Limits
    check: bool
    ready: list[Letter] = field(default_factory=list)
    blocked: float = 0.0  # until when it stands still
    closing: bool = False


@dataclass(eq=False)
class Wait:
    """A batch on the side."""

    release: float
    lane: Lane
    letters: list[Letter]


@dataclass
class Effects:
    """What must be said to the broker, by kind."""

    poisoned: list[tuple[str, str, bool]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)
    unparked: list[str] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)


class Model:
    """One session."""

    def __init__(self, mode: AckMode, *, non_blocking: bool, max_delayed: int) -> None:
        self.mode = mode
        self.non_blocking = non_blocking
        self.max_delayed = max_delayed
        self.now = 1000.0
        self.wall = 1_700_000_000_001  # odd, expirations are even: never the very same millisecond
        self.lanes: list[Lane] = []
        self.held: list[Letter] = []
        self.waits: list[Wait] = []
        self.effects = Effects()
        self.condemned: list[Letter] = []  # dead-lettered by the fact under way

    def arrive(self, letter: Letter) -> None:
        letter.lane.ready.append(letter)

    def tick(self) -> None:
        for wait in sorted(self.waits, key=lambda each: each.release):  # stable: equal ones in the order of failing
            if wait.release <= self.now:
                self.waits.remove(wait)
                self._place(wait.letters, Place.READY)
                at = 0 if wait.letters[0].verdict else len(wait.lane.ready)
                wait.lane.ready[at:at] = wait.letters
                self.effects.unparked += [each.name for each in wait.letters]

    def show(self, lane: Lane) -> Letter | None:
        """What a receive gets, held from now on."""
        if lane.blocked > self.now or lane.closing:
            return None
        while lane.ready:
            letter = lane.ready.pop(0)
            verdict = letter.verdict or self._verdict(letter)
            if verdict is None:
                self._place([letter], Place.HELD)
                self.held.append(letter)
                return letter
            self._condemn(letter, *verdict)
        return None

    def fail(self, letters: list[Letter], reason: str | None) -> None:
        """Rollback, recover or a listener that raised."""
        for lane in dict.fromkeys(each.lane for each in letters):
            again = []
            for letter in [each for each in letters if each.lane is lane]:
                self.held.remove(letter)
                letter.failures += 1
                letter.reason = reason or letter.reason
                if lane.limits.ended(letter.count):
                    text = f"Delivery[{letter.count}] exceeds redelivery policy limit:{lane.limits.policy()}"
                    self._condemn(letter, f"{text}, cause:{letter.reason}", expired=False)
                else:
                    again.append(letter)
            if lane.closing:
                self._place(again, Place.BROKER)
                self._finish_close(lane)
            elif again:
                self._wait(lane, again, lane.limits.delay(again[-1].count))

    def settle(self, letters: list[Letter]) -> None:
        """Acknowledged, or nobody will ever know."""
        for letter in letters:
            self.held.remove(letter)
            letter.place = Place.SETTLED
        for lane in [each for each in self.lanes if each.closing]:
            self._finish_close(lane)

    def put_back(self, letter: Letter) -> None:
        self.held.remove(letter)
        letter.place = Place.READY
        letter.lane.ready.insert(0, letter)
        self._finish_close(letter.lane)

    def poison_failed(self, letter: Letter) -> None:
        lane = letter.lane
        if lane not in self.lanes or lane.closing:
            letter.place = Place.BROKER  # with the detach
            return
        until = self.now + max(1.0, lane.limits.delay(max(1, letter.count)))
        if self._beside() < self.max_delayed:  # the others of its queue go on
            letter.place = Place.DELAYED
            self.waits.append(Wait(until, lane, [letter]))
            self.effects.parked.append(letter.name)
            return
        letter.place = Place.READY
        lane.ready.insert(0, letter)
        lane.blocked = max(lane.blocked, until)

    def close_lane(self, lane: Lane) -> None:
        lane.closing = True
        self._finish_close(lane)

    def close(self) -> None:
        for lane in self.lanes:
            lane.closing = True
        if self.mode == AckMode.TRANSACTED:
            self.fail(list(self.held), None)

    def held_by(self, lane: Lane) -> list[Letter]:
        return [each for each in self.held if each.lane is lane]

    def releases(self) -> list[float]:
        """When something becomes ready by itself, from now on."""
        times = {wait.release for wait in self.waits}
        times |= {lane.blocked for lane in self.lanes if lane.ready}
        return sorted(each for each in times if each > self.now)

    def _verdict(self, letter: Letter) -> tuple[str, bool] | None:
        """Why it is not shown."""
        lane = letter.lane
        if letter.expires and letter.expires < self.wall:
            return f"Message Expired. Expiration:{letter.expires}", True
        if lane.check and not letter.failures and lane.limits.ended(letter.wire - 1):
            return (
                f"Dispatch[{letter.count}] to {lane.name} exceeds redelivery policy limit:{lane.limits.policy()}",
                False,
            )
        return None

    def _condemn(self, letter: Letter, cause: str, expired: bool) -> None:
        letter.verdict = (cause, expired)
        letter.place = Place.POISONED
        self.condemned.append(letter)
        self.effects.poisoned.append((letter.name, cause, expired))

    def _wait(self, lane: Lane, letters: list[Letter], delay: float) -> None:
        if self.non_blocking and delay > 0 and self._beside() + len(letters) <= self.max_delayed:
            self._place(letters, Place.DELAYED)
            self.waits.append(Wait(self.now + delay, lane, letters))
            self.effects.parked += [each.name for each in letters]
            return
        self._place(letters, Place.READY)
        if self.non_blocking and delay <= 0:
            lane.ready += letters
        else:
            lane.ready[:0] = letters
            lane.blocked = max(lane.blocked, self.now + delay)

    def _beside(self) -> int:
        return sum(len(wait.letters) for wait in self.waits)

    def _finish_close(self, lane: Lane) -> None:
        if not lane.closing or self.held_by(lane):
            return
        for wait in sorted((each for each in self.waits if each.lane is lane), key=lambda each: each.release):
            self.waits.remove(wait)
            self._place(wait.letters, Place.BROKER)
            self.effects.unparked += [each.name for each in wait.letters]
        # released as never seen; what was seen or condemned goes back with the detach
        self.effects.released += [each.name for each in lane.ready if not each.failures and not each.verdict]
        self._place(lane.ready, Place.BROKER)
        lane.ready = []
        self.lanes.remove(lane)
        self.effects.detached.append(lane.name)

    def _place(self, letters: list[Letter], place: Place) -> None:
        for letter in letters:
            letter.place = place
